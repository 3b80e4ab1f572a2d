"""Uploads beside a session: a process of its own does them, so that no turn, and no exit, ever waits for a server.

It is there from the beginning and looks at the place at once, so that the end of the first turn knows what is wrong.
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
from agentsh.app.upload_state import remember_begin
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

    def __init__(self, home: Home, session: str, url: str, env: Mapping[str, str]) -> None:
        self._home = home
        self._session = session
        self._url = url
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start the process: it looks at the place while the first turn runs, so that its end knows of trouble."""
        with suppress(OSError):  # no more processes: the end of a turn tries again
            if self._process is None:
                self._process = self._started()

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
        remember_begin(self._home, self._session, self._url)
        # The settings in force are the session's: those of its home may name another place, or none.
        command = [sys.executable, "-P", "-m", "agentsh", "push", self._session, "--outbox", "--to", self._url]
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

    def begin(self, *, wake: bool) -> None:
        """Start the outbox, and have brought up what is left where it is to wake."""
        self._outbox.begin()
        if wake:
            self._outbox.wake(self._log.durable_seq)

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


def with_uploads(log: "OpenLog", home: Home, url: str | None) -> "OpenLog":
    """Return the log, with an outbox where uploads are configured; `begin_uploads` starts that."""
    if url is None:
        return log
    return cast("OpenLog", UploadedLog(log, Outbox(home, log.session, url, os.environ)))


def begin_uploads(log: "OpenLog", *, wake: bool = False) -> None:
    """Start the outbox of a log that was opened to the end. wake: something may be left from before."""
    if isinstance(log, UploadedLog):
        log.begin(wake=wake)


def serve(fd: int, ready: Callable[[], None], attempt: Callable[[int], None], sweep: Callable[[], None]) -> None:
    """Be the process: read lines from the pipe `fd`, try what they ask for, and at its end once more.

    ready: looks at the place before there is anything to bring. attempt: brings the session up to a seq that is
    durable, 0 for all there is. sweep: brings up what others left.
    """
    wanted: int | None = None
    pause, not_before, open_ = FIRST_PAUSE_S, 0.0, True
    if not select.select([fd], [], [], 0)[0]:  # else there is something to bring already, which tells as much
        try:
            ready()
        except StorageUnavailable:
            not_before = time.monotonic() + pause
        except AgentshError:
            pass  # remembered, and asked again when there is something to bring
    while open_:
        wait = None if wanted is None else max(not_before - time.monotonic(), 0.0)
        readable, _, _ = select.select([fd], [], [], wait)
        if readable:
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
