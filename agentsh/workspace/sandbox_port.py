"""What every kind of sandbox is given, and the port that it fills."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from agentsh.base.light import dataclass, field


class Limits(NamedTuple):
    """What one command may use: CPU seconds, memory and file size of each process in MiB, processes together.

    0 is no limit. The defaults leave room for builds and stop what is out of hand.
    """

    cpu_s: int = 3_600
    memory_mb: int = 8_192
    file_mb: int = 4_096
    processes: int = 1_024


class Bounds(NamedTuple):
    """What commands of a session may reach. Paths are absolute, links in them followed.

    root: the workspace. tmp: the session's private temporary directory. writable, readable: further directories.
    hidden: directories and files that cannot be seen, but for what of the root lies in them. guarded: files and
    directories inside the root that cannot be changed; some need not be there. home: of the user.
    """

    root: str
    tmp: str
    home: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    network: bool = False
    limits: Limits = Limits()


@dataclass(slots=True)
class Launch:
    """How a command is started in a sandbox: what to execute, with what in its environment and which descriptors.

    reports: the read end of a pipe on which it is told that processes were left, -1 where there is none.
    """

    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    pass_fds: list[int] = field(default_factory=list)
    reports: int = -1

    def started(self) -> None:
        """Close what only the command needs. Idempotent."""
        for fd in self.pass_fds:
            with suppress(OSError):
                os.close(fd)
        self.pass_fds.clear()

    def left_running(self) -> bool:
        """Tell, once, after its end, whether it left processes behind."""
        if self.reports < 0:
            return False
        fd, self.reports = self.reports, -1
        try:
            os.set_blocking(fd, False)
            return bool(os.read(fd, 1))
        except OSError:
            return False
        finally:
            os.close(fd)


class Sandbox(Protocol):
    """One way to hold commands."""

    @property
    def name(self) -> str:
        """What the log and the status line call it."""
        ...

    @property
    def owns_processes(self) -> bool:
        """Whether nothing that a command started can outlive it."""
        ...

    @property
    def guards(self) -> bool:
        """Whether what is `guarded` cannot be changed by a command."""
        ...

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        """Return how to start `argv` in `cwd`.

        Raises:
            OSError: no descriptors are left.
        """
        ...


class Found(NamedTuple):
    """Whether a kind works here. why: in a few words, what it is or why not."""

    works: bool
    why: str
