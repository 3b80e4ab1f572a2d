"""What holds commands: the bounds that every kind of sandbox is given, the port that each kind fills, and the choice.

Kinds, best first: `bwrap` (bubblewrap: namespaces), `landlock` (Landlock and seccomp through a helper process),
`seatbelt` (sandbox-exec of macOS). docs/sandbox.md says what each of them stops.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Literal, NamedTuple, Protocol

from agentsh.base.light import dataclass, field

Kind = Literal["auto", "bwrap", "landlock", "seatbelt", "none"]
KINDS: tuple[Kind, ...] = ("bwrap", "landlock", "seatbelt")


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


def on_path(name: str) -> str | None:
    """Return where a program is: `shutil.which`, which takes 2 ms to load."""
    places = (os.path.join(place, name) for place in os.get_exec_path())
    return next((path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)), None)


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


_probing = Lock()


def probe(kind: Kind) -> Found:
    """Try a kind with a real run; remembered for the life of the process. At most 5 s, usually 5 ms.

    Who asks while another thread tries waits for what that finds.
    """
    with _probing:
        return _probed(kind)


@cache
def _probed(kind: Kind) -> Found:
    if kind == "bwrap":
        from agentsh.workspace import sandbox_bwrap

        return sandbox_bwrap.probe()
    if kind == "landlock":
        from agentsh.workspace import sandbox_landlock

        return sandbox_landlock.probe()
    if kind == "seatbelt":
        from agentsh.workspace import sandbox_seatbelt

        return sandbox_seatbelt.probe()
    return Found(False, "no sandbox")


def choose(kind: Kind) -> tuple[Kind, str | None]:
    """Return the kind to use, `none` where none works, and what should be said about it."""
    if kind == "none":
        return "none", None
    wanted = KINDS if kind == "auto" else (kind,)
    reasons = []
    for each in wanted:
        found = probe(each)
        if found.works:
            return each, None
        reasons.append(f"{each}: {found.why}")
    return "none", "no sandbox works here (" + "; ".join(reasons) + ")"


def make(kind: Kind, bounds: Bounds) -> Sandbox | None:
    """Return the sandbox of a kind that `choose` returned; None for `none`."""
    makers: Mapping[Kind, Callable[[Bounds], Sandbox]] = {
        "bwrap": _bwrap,
        "landlock": _landlock,
        "seatbelt": _seatbelt,
    }
    maker = makers.get(kind)
    return maker(bounds) if maker is not None else None


def _bwrap(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_bwrap import Bubblewrap

    return Bubblewrap(bounds)


def _landlock(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_landlock import Landlock

    return Landlock(bounds)


def _seatbelt(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_seatbelt import Seatbelt

    return Seatbelt(bounds)


def memory_file(data: bytes, name: str) -> int:
    """Return a descriptor of a nameless file that holds `data`, at its start."""
    fd = os.memfd_create(name)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def with_limits(limits: Limits, argv: Sequence[str]) -> list[str]:
    """Return `argv` behind a shell that sets the limits and becomes it. Hard limits: they cannot be raised again."""
    return ["/bin/sh", "-c", ulimits(limits) + 'exec "$@"', "agentsh", *argv]


def ulimits(limits: Limits) -> str:
    """Return the shell commands that set the limits; one that the system refuses is left out.

    File sizes are in blocks of 512 bytes in sh and of 1,024 in bash, whatever POSIX says: each is told in its own.
    """
    lines = ["ulimit -c 0 2>/dev/null; "]
    if limits.cpu_s:
        lines.append(f"ulimit -t {limits.cpu_s} 2>/dev/null; ")
    if limits.memory_mb:
        lines.append(f"ulimit -d {limits.memory_mb * 1024} 2>/dev/null; ")
    if limits.file_mb:
        blocks = limits.file_mb * 1024
        lines.append(
            f'if [ -n "$BASH_VERSION" ]; then ulimit -f {blocks}; else ulimit -f {blocks * 2}; fi 2>/dev/null; '
        )
    if limits.processes:
        lines.append(f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes} 2>/dev/null; ")
    return "".join(lines)
