"""Uploads beside a session: a process of its own does them, so that no turn, and no exit, ever waits for a server.

The session writes a line into its pipe whenever a turn has ended, and closes the pipe at its end; when the session is
killed, the kernel closes it. Either way the process brings up what is left, once, and ends.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from agentsh.app.paths import Home
from agentsh.base.errors import AgentshError, StorageUnavailable

if TYPE_CHECKING:
    from agentsh.log.store import OpenLog

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0
"""After a place did not answer: twice as long each time, up to this."""
SWEEP_LIMIT = 20
"""Other sessions with something left that one process brings up at its end."""


class Outbox:
    """The session's end of the pipe. No method blocks, and none raises."""

    def __init__(self, home: Home, session: str, env: Mapping[str, str]) -> None:
        self._home = home
        self._session = session
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def wake(self, durable_seq: int) -> None:
        """Have everything up to `durable_seq` brought up; starts the process where there is none yet."""
        try:
            if self._process is None:
                self._process = self._started()
            assert self._process.stdin is not None
            os.write(self._process.stdin.fileno(), b"%d\n" % durable_seq)  # never blocks: see _started
        except BrokenPipeError:  # somebody ended it: the next turn starts another
            self.close()
        except OSError:  # no more processes, or it is far behind: the next turn tries again
            return

    def close(self) -> None:
        """Let it finish by itself."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
            self._process.returncode = 0  # it goes on without us; nobody is to warn that it was not waited for
            self._process = None

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", "agentsh", "push", self._session, "--outbox"]
        process = subprocess.Popen(
            command, cwd=self._home.root, env={**self._env, "AGENTSH_HOME": str(self._home.root)},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,  # neither Ctrl-C nor a closed terminal is meant for it
        )  # fmt: skip
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process


class UploadedLog:
    """A log that tells an outbox when a turn has ended. Whatever else a log can do, it leaves to the log itself."""

    def __init__(self, log: "OpenLog", outbox: Outbox) -> None:
        self._log = log
        self._outbox = outbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def turn_ended(self) -> None:
        """Pass it on, and wake the outbox."""
        await self._log.turn_ended()
        self._outbox.wake(self._log.durable_seq)

    async def close(self) -> None:
        """Close; the outbox hears of it last, so that it finds the session free."""
        try:
            await self._log.close()
        finally:
            self._outbox.close()


def with_uploads(log: "OpenLog", home: Home, url: str | None, *, at_once: bool = False) -> "OpenLog":
    """Return the log, with an outbox where uploads are configured. at_once: something may be left from before."""
    if url is None:
        return log
    outbox = Outbox(home, log.session, os.environ)
    if at_once:
        outbox.wake(log.durable_seq)
    return cast("OpenLog", UploadedLog(log, outbox))


def serve(fd: int, attempt: Callable[[int], None], sweep: Callable[[], None]) -> None:
    """Be the process: read lines from the pipe `fd`, try what they ask for, and at its end once more.

    attempt: brings the session up to a seq that is durable, 0 for all there is. sweep: brings up what others left.
    """
    wanted: int | None = None
    pause, not_before, open_ = FIRST_PAUSE_S, 0.0, True
    while open_:
        wait = None if wanted is None else max(not_before - time.monotonic(), 0.0)
        ready, _, _ = select.select([fd], [], [], wait)
        if ready:
            data = os.read(fd, 65_536)
            open_ = bool(data)
            seqs = [int(word) for word in data.split() if word.isdigit()]
            wanted = max([*seqs, wanted or 0]) if seqs else wanted
            if open_ and time.monotonic() < not_before:
                continue
        if not open_ or wanted is None or time.monotonic() < not_before:
            continue
        try:
            attempt(wanted)
        except StorageUnavailable:
            not_before, pause = time.monotonic() + pause, min(2 * pause, LONGEST_PAUSE_S)
        except AgentshError:
            wanted = None  # it says no, and was remembered; the next turn, or the end, asks again
        else:
            wanted, pause = None, FIRST_PAUSE_S
    with suppress(AgentshError):
        attempt(0)
        sweep()
