"""Snapshots around calls that may change files, as facts: what others changed before, what the call changed."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from agentsh.base.errors import LogWriteFailed, WorkspaceError
from agentsh.engine.edits import code_edit
from agentsh.engine.journal import Journal
from agentsh.events.event import NewFact
from agentsh.events.session import Note, SnapshotTaken
from agentsh.events.tool import CHANGING, Effect
from agentsh.ports.snapshots import Snapshots, Taken
from agentsh.ports.tool import Edit


def snapshot_fact(taken: Taken) -> SnapshotTaken:
    """Return the fact of a snapshot."""
    fact = SnapshotTaken(snapshot=taken.ref, files=taken.files, bytes=taken.bytes)
    more: dict[str, object] = {} if taken.by == "tool" else {"by": taken.by}
    if taken.left_out is not None:
        more["left_out"] = taken.left_out
    return fact.model_copy(update=more) if more else fact


class Keeper:
    """Takes the snapshots of one session and tells the journal."""

    def __init__(self, journal: Journal, snapshots: Snapshots) -> None:
        self._journal = journal
        self._snapshots = snapshots

    def begin(self) -> None:
        """Start on the first snapshot: a turn that uses tools will need it."""
        self._snapshots.begin()

    async def before(self, effects: Iterable[Effect]) -> None:
        """Record what others have changed, before a call with these effects starts.

        Raises:
            LogWriteFailed: the log or the blobs cannot be written.
        """
        wanted = frozenset(effects)
        if not wanted & CHANGING:
            return
        async with self._snapshots.holding():
            with suppress(WorkspaceError):  # a directory that cannot be looked at is for the tool to find out
                taken = await self._snapshots.before(look="exec" in wanted)
                facts = [NewFact(snapshot_fact(t)) for t in taken]
                facts += [NewFact(Note(text=remark)) for remark in self._snapshots.remarks()]
                await self._journal.record_all(facts)

    @asynccontextmanager
    async def after(
        self, effects: Iterable[Effect], call: str, start_seq: int, edits: Sequence[Edit] = ()
    ) -> AsyncIterator[list[NewFact]]:
        """Give the facts of what a call has changed; they are to be recorded inside, with its result."""
        wanted = frozenset(effects)
        if not wanted & CHANGING:
            yield await self._edited(call, edits, start_seq, None)
            return
        async with self._snapshots.holding():
            taken: list[Taken] = []
            with suppress(LogWriteFailed, WorkspaceError):  # the next one takes it in; the result must be recorded
                taken = await self._snapshots.after(None if "exec" in wanted else edits)
            outside = [NewFact(snapshot_fact(t)) for t in taken if t.by != "tool"]
            ours = [t for t in taken if t.by == "tool"]
            facts = await self._edited(call, edits, start_seq, ours[-1].ref if ours else None)
            if not edits:
                facts = [NewFact(snapshot_fact(t), start_seq) for t in ours]
            yield outside + facts

    async def _edited(self, call: str, edits: Sequence[Edit], start_seq: int, snapshot: str | None) -> list[NewFact]:
        # In a thread: the diff of a large file takes a while, and the screen must not stand still for it.
        return [
            NewFact(await asyncio.to_thread(code_edit, call, edit, snapshot=snapshot), start_seq) for edit in edits
        ]
