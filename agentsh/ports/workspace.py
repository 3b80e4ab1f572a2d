"""The port to a working directory: all that tools may do to files and processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from agentsh.base.light import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory. path: relative to the workspace, `/` between parts. size: bytes, of files."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


class ShellState(NamedTuple):
    """What one command leaves to the next. directory: relative to the root; None: where a new shell starts.

    exports: variables that are not as a new shell has them: name to value, None for one that is unset.
    """

    directory: str | None = None
    exports: Mapping[str, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file. data: its new bytes; None: it goes. mode_of: whose permissions a new file takes."""

    path: str
    data: bytes | None
    mode_of: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is for. literal: the pattern is a text in ASCII, no regular expression."""

    pattern: str
    ignore_case: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended.

    exit: code; negative signal number where a signal ended it; None where it was killed at its time limit.
    output: stdout and stderr as they came, decoded, with the middle left out beyond the cap.
    total_bytes: size of the whole output. whole: all of it as kept, where the cap cut it and it is within 16 MiB.
    left_running: the direct child ended but a descendant kept the pipe open; it was killed.
    stopped: why it was killed before its time, for the model. undone: files that it changed and must not, put back.
    began_in: the directory, relative to the root. shell: what it leaves to the next; None where it told nothing.
    left_workspace: it ended in this directory, which is outside, or gone. not_kept: variables that it exported and
    that are not in `shell`: secrets, and what is too long.
    """

    exit: int | None
    output: str
    total_bytes: int
    whole: bytes | None
    timed_out: bool
    left_running: bool
    duration_ms: int
    stopped: str | None = None
    began_in: str = "."
    shell: ShellState | None = None
    left_workspace: str | None = None
    not_kept: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()

    @property
    def put_back(self) -> str:
        """What is told of `undone`; empty where that is."""
        if not self.undone:
            return ""
        names = ", ".join(self.undone[:10]) + (f" and {len(self.undone) - 10} more" if len(self.undone) > 10 else "")
        return (
            f"Put back as it was: {names}. It decides what git runs outside of the sandbox; the user can change it."
        )


class Workspace(Protocol):
    """A directory that belongs to one session. Paths are relative to it, or absolute inside it.

    The file methods block; every path that leads outside, through `..`, a link or a device, is refused.
    """

    @property
    def root(self) -> str:
        """The absolute path of the directory."""
        ...

    @property
    def sandbox(self) -> str:
        """What holds commands: `none`, `bwrap`, …."""
        ...

    @property
    def guards(self) -> bool:
        """Whether commands cannot change, for good, what decides about programs outside of the sandbox."""
        ...

    def relative(self, path: str) -> str:
        """Return `path` relative to the root, normalised; `.` for the root itself.

        Raises:
            PathRefused: it leads outside.
        """
        ...

    def read_bytes(self, path: str, *, max_bytes: int) -> bytes:
        """Return the bytes of a plain file.

        Raises:
            PathRefused: outside, a directory, a device, larger than max_bytes, or not there.
        """
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace or create a file and the directories above it; the name gets a new inode, the mode stays.

        Raises:
            PathRefused: outside, or not a plain file.
            ToolFailed: the disk refused.
        """
        ...

    def change(self, changes: Sequence[Change]) -> None:
        """Change several files, each named once: all of them, or none where one cannot be changed.

        A crash in the middle may leave some changed and others not; each file is whole, old or new.

        Raises:
            PathRefused: outside, not a plain file, a link that is to go, or nothing where something is to go.
            ToolFailed: the disk refused.
        """
        ...

    def exists(self, path: str) -> bool:
        """Tell whether something of that name is inside."""
        ...

    def entries(self, path: str) -> list[Entry]:
        """Return what is in a directory, sorted by name.

        Raises:
            PathRefused: outside, or no directory.
        """
        ...

    def walk(self, path: str = ".") -> Iterator[Entry]:
        """Yield the files below `path`, sorted, without following links; `.git` and ignored files are left out."""
        ...

    async def mentions(self, wanted: Wanted, path: str, *, limit_s: float) -> tuple[str, ...] | None:
        """Return which of the files that `walk` yields below a directory may hold a match, sorted; None: not known.

        What is returned may be anything by now: read it as any other file. A pattern that means the same in Rust's
        regular expressions, with lines told apart. Cancellation ends the search.
        """
        ...

    def real(self, path: str) -> str | None:
        """Return `path` relative to the root with every link followed, whether or not it is there; None outside."""
        ...

    def expands(self, pattern: str) -> list[str]:
        """Return the paths that a shell pattern stands for now, as the shell would spell them; at most 1,000."""
        ...

    def starts_in(self, directory: str | None) -> str:
        """Return where a command starts, relative to the root: `directory` while it is there, else as a new shell."""
        ...

    async def run(
        self,
        command: str,
        *,
        timeout_s: float,
        max_bytes: int,
        on_output: Callable[[str], None] | None = None,
        on_bytes: Callable[[bytes], None] | None = None,
        outside_sandbox: bool = False,
        shell: ShellState | None = None,
    ) -> ProcessResult:
        """Run a shell command in the workspace, in a process group of its own, with a scrubbed environment.

        on_output: shown output, as text, at a pace for eyes. on_bytes: given every byte, as it comes.
        outside_sandbox: without the sandbox, where there is one. shell: what the command before left.

        Returns when the direct child has ended, even if a descendant keeps the pipe open.
        Cancellation kills the whole group before it is passed on.

        Raises:
            ToolFailed: it could not be started.
        """
        ...
