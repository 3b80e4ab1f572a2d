"""Going back to an earlier moment, and forward again: the log only grows, the files follow what it says."""

import asyncio
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.context.rewinds import Moments, settle
from agentsh.context.state import SessionState
from agentsh.engine.journal import Journal
from agentsh.engine.keeping import snapshot_fact
from agentsh.events.base import Text
from agentsh.events.event import NewFact
from agentsh.events.session import Note, RewindUndone, Rewound
from agentsh.ports.snapshots import Changed, Snapshots, Step, Winding

What = Literal["conversation", "files", "both"]
MAX_NAMED = 50
"""Conflicts in one event."""


class Outcome(NamedTuple):
    """What a rewind came to. winding: what it was about to do to files, None where it left them alone."""

    seq: int
    to_seq: int
    winding: Winding | None


class Moment(NamedTuple):
    """Right before a turn. number: of the turn in the conversation as it is now, from 1. to_seq: where to go back to.

    prompt: what the user said in it. changed: what it did to files.
    """

    number: int
    to_seq: int
    prompt: Text
    changed: Changed


async def moments(known: Moments, snapshots: Snapshots) -> list[Moment]:
    """Return the moments before each turn of the conversation, the oldest first."""
    turns = known.turns
    ends = [turn.seq - 1 for turn in turns[1:]] + [known.last_seq][: len(turns)]
    pairs = [(_at(known, turn.seq - 1), _at(known, end)) for turn, end in zip(turns, ends, strict=True)]
    found = iter(await snapshots.compare([(a, b) for a, b in pairs if a != b]))
    return [
        Moment(number, turn.seq - 1, turn.prompt, Changed(0, 0, 0) if a == b else next(found))
        for number, (turn, (a, b)) in enumerate(zip(turns, pairs, strict=True), 1)
    ]


def _at(known: Moments, seq: int) -> str:
    steps = known.steps
    step = next((s for s in reversed(steps) if s.seq <= seq), steps[0] if steps else None)
    return "" if step is None else step.ref


class WholeLog(Protocol):
    """All of a session's log, for what no state remembers. Both block."""

    def state(self) -> SessionState:
        """Return what it folds to, rewinds included."""
        ...

    def moments(self) -> Moments:
        """Return what there is to go back to."""
        ...


class Rewinder:
    """Rewinds of one session. Nothing may run meanwhile."""

    def __init__(self, journal: Journal, snapshots: Snapshots, log: WholeLog) -> None:
        self._journal = journal
        self._snapshots = snapshots
        self._log = log

    async def rewind(self, to_seq: int, what: What) -> Outcome:
        """Go back to the moment after event `to_seq`.

        Raises:
            UsageProblem: there is no such event.
            WorkspaceError: the snapshots do not read, or the disk refused half-way; the next opening goes on.
            LogError: the log cannot be written.
        """
        last = self._journal.state.last_seq
        if not 1 <= to_seq <= last:
            raise UsageProblem(f"there is no event {to_seq}", hint=f"the last one is {last}")
        return await self._go(to_seq, what, None)

    async def undo(self, rewound: int | None = None) -> Outcome:
        """Take a rewind back: all is as it was just before it. rewound: its seq; None for the last that holds.

        Raises:
            UsageProblem: there is none.
            WorkspaceError, LogError: as `rewind`.
        """
        state = self._journal.state
        seq = rewound if rewound is not None else (state.undoable[-1] if state.undoable else None)
        if seq is None or seq not in state.undoable:
            raise UsageProblem("there is no rewind to undo" if rewound is None else f"event {rewound} is no rewind")
        return await self._go(seq - 1, state.taken_back.get(seq, "both"), seq)

    async def finish(self) -> None:
        """Do what a rewind was about to do when its process died.

        Raises:
            WorkspaceError, LogError: as `rewind`.
        """
        state = self._journal.state
        if state.winding is None:
            return
        seq, to_seq = state.winding
        async with self._snapshots.holding():
            winding = await self._snapshots.plan([s for s in await self._steps() if s.seq < seq], to_seq)
            await self._wind(winding, seq)

    async def _go(self, to_seq: int, what: What, undone: int | None) -> Outcome:
        winding: Winding | None = None
        async with self._snapshots.holding():
            if what != "conversation":
                await self._look()
                steps = await self._steps()
                if steps or what == "files":
                    winding = await self._snapshots.plan(steps, to_seq)
            fact = Rewound(to_seq=to_seq, what=what) if undone is None else RewindUndone(rewound=undone)
            more: dict[str, object] = {}
            if words := told(what, winding, since=what == "conversation" and await self._changed_since(to_seq)):
                more["told"] = words
            if winding is not None:
                more["files"] = len(winding.paths)
                if winding.conflicts:
                    more["conflicts"] = winding.conflicts[:MAX_NAMED]
            event = await self._journal.record(fact.model_copy(update=more), durable=True)
            if self._journal.state.behind:
                settle(self._journal.state, await asyncio.to_thread(self._log.state))
            if winding is not None:
                await self._wind(winding, event.seq)
        return Outcome(event.seq, to_seq, winding)

    async def _steps(self) -> list[Step]:
        return (await asyncio.to_thread(self._log.moments)).steps

    async def _changed_since(self, seq: int) -> bool:
        return any(step.seq > seq for step in await self._steps())

    async def _look(self) -> None:
        """Record how the files are now: what a rewind takes away can be brought back from there."""
        taken = await self._snapshots.before(look=True)
        facts = [NewFact(snapshot_fact(t)) for t in taken]
        facts += [NewFact(Note(text=remark)) for remark in self._snapshots.remarks()]
        await self._journal.record_all(facts, durable=True)

    async def _wind(self, winding: Winding, seq: int) -> None:
        if not winding.paths:
            return
        taken = await self._snapshots.wind(winding)
        facts = [NewFact(snapshot_fact(t), seq) for t in taken]
        facts += [NewFact(Note(text=remark), seq) for remark in self._snapshots.remarks()]
        await self._journal.record_all(facts, durable=True, happened=True)


def told(what: What, winding: Winding | None, *, since: bool) -> str | None:
    """Return what the model is to know of a rewind that it cannot see in the conversation, or None.

    since: files may have changed after the moment that the conversation went back to.
    """
    if since:
        return (
            "The user took the conversation back to this point and left the files as they are: they may hold changes "
            "that you do not know of. Read before you edit."
        )
    if winding is None:
        return None
    if what == "files" and winding.paths:
        return (
            f"The user took files back to how they were at another time: {_named(winding.paths)}. What you know of "
            "them does not hold any more. Read before you edit."
        )
    if what == "both" and winding.conflicts:
        return f"The user has changed these files, so they were not taken back: {_named(winding.conflicts)}."
    return None


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED:,} more" if len(paths) > MAX_NAMED else ""
    return ", ".join(one_line(path, 200) for path in paths[:MAX_NAMED]) + more
