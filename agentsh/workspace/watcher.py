"""A process beside agentsh that outlives it by an instant: when agentsh is killed, it ends unsandboxed commands.

A sandbox ends its commands by itself. Others would go on after a SIGKILL of agentsh until the session is opened the
next time. Such a command begins only when that process has been told of it: until then it waits behind a `Gate`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentsh.base.ids import random_hex
from agentsh.workspace.environ import PROCESS_MARK

LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Some interpreters do not start without."""
PROGRAM = str(Path(__file__).with_name("watcher_main.py"))


_WAITS = 'read -r _ && exec "$@" </dev/null'


class Gate:
    """Holds a command back until `let_in`; if this process dies before that, it ends without having begun.

    stdin: for the process that waits; the command itself gets /dev/null. Costs one start of a shell, some 0.6 ms.
    """

    def __init__(self) -> None:
        self.stdin, self._fd = os.pipe()

    @staticmethod
    def before(argv: Sequence[str]) -> list[str]:
        """Return a command line that waits, and becomes `argv`."""
        return ["/bin/sh", "-c", _WAITS, "agentsh", *argv]

    def let_in(self) -> None:
        """Let it begin."""
        with suppress(BrokenPipeError):  # somebody ended it
            os.write(self._fd, b"\n")

    def close(self) -> None:
        """Close both ends here. Idempotent."""
        for fd in (self.stdin, self._fd):
            if fd >= 0:
                os.close(fd)
        self.stdin = self._fd = -1


class Watcher:
    """This process's end of the pipe. Started with the first command that it is told of; no method raises.

    value: of the variable PROCESS_MARK, for the environment of the commands.
    """

    def __init__(self) -> None:
        self.value = random_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def began(self, group: int) -> None:
        """A process group has begun."""
        self._groups.add(group)
        if not self._tell(b"+%d\n" % group):
            self._start()
            self._tell(b"".join(b"+%d\n" % each for each in self._groups))

    def ended(self, group: int) -> None:
        """Its leader is about to be reaped, and all of it is dead."""
        self._groups.discard(group)
        self._tell(b"-%d\n" % group)

    def _start(self) -> None:
        with suppress(OSError):  # no more processes: the next opening of the session cleans up
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM, f"{PROCESS_MARK}={self.value}"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                env={name: os.environ[name] for name in LIBRARY_PATHS if name in os.environ},
                start_new_session=True,  # no key and no closed terminal is meant for it
            )  # fmt: skip

    def close(self) -> None:
        """Nothing runs any more. Idempotent; waits for its end, some milliseconds."""
        if self._process is None:
            return
        self._tell(b".\n")
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)

    def _tell(self, line: bytes) -> bool:
        """Tell whether there is somebody to be told."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            os.write(self._process.stdin.fileno(), line)
        except OSError:  # somebody ended it: the next command starts another, which is told of all that run
            process, self._process = self._process, None
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
            process.poll()
            return False
        return True
