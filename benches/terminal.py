"""A program on a pseudo terminal, for benches: types, reads, and tells how much processor it has used."""

import os
import pty
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Pty:
    """One program. output: all that it has written."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str, columns: int = 80, rows: int = 24
    ) -> None:
        self.output = bytearray()
        self.began_s = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.chdir(cwd)
            os.execve(argv[0], list(argv), {**env, "TERM": "xterm-256color"})
        ioctl(self._fd, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read(self, seconds: float) -> bool:
        """Read what comes within a time; return whether there was anything."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        with suppress(OSError):
            self.output += os.read(self._fd, 1 << 16)
        return True

    def until(self, condition: Callable[[], bool], seconds: float = 120.0) -> float:
        """Read until something is so; return when it was."""
        end = time.perf_counter() + seconds
        while not condition():
            if time.perf_counter() > end:
                raise TimeoutError(self.output[-2000:].decode(errors="replace"))
            self.read(0.05)
        return time.perf_counter()

    def wait(self, seconds: float) -> None:
        """Read for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(min(left, 0.01))

    def sees(self, text: str, start: int = 0) -> bool:
        return self.output.find(text.encode(), start) >= 0

    def cpu_s(self) -> float:
        """Return the processor time so far, children that have ended included."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) * TICK_S

    def close(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)
