"""The port to snapshots of a workspace: taken around everything that may change files, and put back by a rewind."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from agentsh.base.light import dataclass
from agentsh.base.text import plural
from agentsh.ports.tool import Edit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

By = Literal["start", "tool", "outside", "rewind"]
"""Who changed what a snapshot shows: nobody yet, the session's own tools, somebody else, a rewind."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot to record. ref: of its manifest. files, bytes: of the whole tree. left_out: where that changed."""

    ref: str
    by: By
    files: int
    bytes: int
    left_out: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A snapshot as the log names it."""

    seq: int
    ref: str
    by: By


@dataclass(frozen=True, slots=True)
class Winding:
    """What taking files back would do. paths: that change. conflicts: that somebody else changed too; left alone.

    lost: that cannot be made again, because their content was not kept. left_out: caches no snapshot looks into.
    """

    target: str
    paths: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class Changed(NamedTuple):
    """How two snapshots differ: paths, and lines of the text files among them."""

    files: int
    added: int
    removed: int

    def __str__(self) -> str:
        if not self.files:
            return "no files changed"
        return plural(self.files, "file") + (
            f" +{self.added:,} −{self.removed:,}" if self.added + self.removed else ""
        )


class Snapshots(Protocol):
    """Snapshots of one session's workspace. One caller at a time; nothing here blocks the event loop."""

    def begin(self) -> None:
        """Start on the first snapshot, where there is none yet, beside whatever goes on. Returns at once."""
        ...

    def holding(self) -> AbstractAsyncContextManager[None]:
        """Keep `gc` out from a snapshot that is taken inside to the event that names it."""
        ...

    async def before(self, *, look: bool) -> list[Taken]:
        """Return what is to be recorded before a tool starts: the first snapshot, and what others have changed.

        look: whether to look for changes of others at all; a tool that tells its edits needs it not.
        """
        ...

    async def after(self, edits: Sequence[Edit] | None) -> list[Taken]:
        """Return what a tool has changed. edits: all of it; None where anything may have changed."""
        ...

    async def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Changed]:
        """Return how much differs between the snapshots of each pair; nothing where one does not read."""
        ...

    async def plan(self, steps: Sequence[Step], to_seq: int) -> Winding:
        """Return what it takes to bring back the files of the moment after event `to_seq`. Changes nothing.

        steps: all snapshots of the log so far.

        Raises:
            WorkspaceError: there is no snapshot, or it does not read.
        """
        ...

    async def wind(self, winding: Winding) -> list[Taken]:
        """Do what was planned, and return the snapshot of what came of it.

        Raises:
            WorkspaceError: the disk refused; what was done by then is done.
        """
        ...

    def remarks(self) -> list[str]:
        """Return, once, what should be said to the user: that no snapshot can be taken, and why."""
        ...

    async def turn_ended(self) -> None:
        """Let go of what nobody needed."""
        ...

    async def close(self) -> None:
        """End the work, and keep what makes the next opening quick. Idempotent."""
        ...


class NoSnapshots:
    """For workspaces that keep none."""

    def begin(self) -> None:
        """Do nothing."""

    def holding(self) -> AbstractAsyncContextManager[None]:
        """Hold nothing."""

        @asynccontextmanager
        async def nothing() -> "AsyncIterator[None]":
            yield

        return nothing()

    async def before(self, *, look: bool) -> list[Taken]:
        """Return nothing."""
        return []

    async def after(self, edits: Sequence[Edit] | None) -> list[Taken]:
        """Return nothing."""
        return []

    async def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Changed]:
        """Return that nothing differs."""
        return [Changed(0, 0, 0) for _ in pairs]

    async def plan(self, steps: Sequence[Step], to_seq: int) -> Winding:
        """Return that nothing changes."""
        return Winding("", ())

    async def wind(self, winding: Winding) -> list[Taken]:
        """Return nothing."""
        return []

    def remarks(self) -> list[str]:
        """Return nothing."""
        return []

    async def turn_ended(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
