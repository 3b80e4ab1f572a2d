"""The state behind rewinds: the conversation as it was at an earlier event, all else as it is. Pure.

`fold.apply` sees one event after the other, and forgets what no request can hold any more; so it cannot go back. Who
has the whole log can: what a rewind will ask for is known before the fold begins, and is kept when it comes by.
"""

import copy
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from agentsh.base.light import dataclass, field
from agentsh.context.fold import apply, tell
from agentsh.context.state import SessionState
from agentsh.events.base import Text
from agentsh.events.event import Event
from agentsh.events.session import RewindUndone, Rewound, SnapshotTaken
from agentsh.events.tool import CodeEdit
from agentsh.events.turn import TurnFinished, UserMessage
from agentsh.ports.snapshots import Step

REWINDS = frozenset({"rewound", "rewind_undone"})
"""The types of events that `targets` must see."""
MOMENTS = REWINDS | {"user_message", "turn_finished", "snapshot_taken", "code_edit"}
"""The types of events that `Moments` must see."""
CONVERSATION = (
    "environment", "surroundings", "changes", "turn", "talk", "calls", "partial", "questions", "context_from",
    "pruned_before", "images_from", "dropped_images", "compaction", "replaced", "compacting", "todo", "shell",
    "meter",
)  # fmt: skip
"""What goes back with the conversation: all that a request is made of, and what was counted of it."""


def target(event: Event, taken_back: dict[int, Any]) -> int | None:
    """Return the seq that the conversation goes back to with an event, or None. taken_back: see `SessionState`."""
    match event.fact:
        case Rewound(to_seq=to_seq, what=what):
            return to_seq if what != "files" and to_seq < event.seq else None
        case RewindUndone(rewound=rewound):
            back = rewound - 1
            return back if taken_back.get(rewound, "both") != "files" and back < event.seq else None
    return None


def targets(events: Iterable[Event]) -> list[int]:
    """Return the seqs that are gone back to, in order. events: all, or those of the types in REWINDS."""
    taken_back: dict[int, Any] = {}
    found: set[int] = set()
    for event in events:
        if isinstance(event.fact, Rewound):
            taken_back[event.seq] = event.fact.what
        to_seq = target(event, taken_back)
        if to_seq is not None:
            found.add(to_seq)
    return sorted(found)


class Folder:
    """Folds a whole log, rewinds included. targets: of `targets`, for the very same log."""

    def __init__(self, targets: Iterable[int]) -> None:
        self.state = SessionState()
        self._awaited = sorted(targets, reverse=True)
        self._kept: dict[int, dict[str, Any]] = {}

    def add(self, event: Event) -> None:
        """Bring the state up to and including `event`."""
        while self._awaited and self._awaited[-1] < event.seq:
            self._kept[self._awaited.pop()] = _conversation(self.state)
        apply(self.state, event)
        to_seq = target(event, self.state.taken_back)
        if to_seq is not None and to_seq in self._kept:
            self._restore(self._kept[to_seq])
            tell(self.state, event)

    def _restore(self, kept: dict[str, Any]) -> None:
        state = self.state
        for name, value in copy.deepcopy(kept).items():
            setattr(state, name, value)
        state.turn, state.behind = None, False  # a turn that was cut into goes on no more
        state.partial.clear()
        state.calls.clear()
        state.questions.clear()
        state.compacting.asked = None


def _conversation(state: SessionState) -> dict[str, Any]:
    return copy.deepcopy({name: getattr(state, name) for name in CONVERSATION})


def fold_whole(events: list[Event]) -> SessionState:
    """Return the state after all events of a log, rewinds included."""
    folder = Folder(targets(events))
    for event in events:
        folder.add(event)
    return folder.state


def settle(state: SessionState, whole: SessionState) -> None:
    """Make `state`, which others hold, what `whole` is."""
    for each in fields(SessionState):
        setattr(state, each.name, getattr(whole, each.name))


class Turn(NamedTuple):
    """A turn of the conversation. seq: of its user message."""

    seq: int
    prompt: Text


@dataclass(slots=True)
class Moments:
    """What there is to go back to. steps: all snapshots. turns: of the conversation as it is now."""

    steps: list[Step] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    last_seq: int = 0
    _all: list[Turn] = field(default_factory=list)
    _rewinds: list[tuple[int, int]] = field(default_factory=list)
    _taken_back: dict[int, Any] = field(default_factory=dict)
    _running: bool = False

    def add(self, event: Event) -> None:
        """Take in an event; all, or those of the types in MOMENTS."""
        self.last_seq = max(self.last_seq, event.seq)
        match event.fact:
            case UserMessage(text=text):
                if not self._running:
                    self._all.append(Turn(event.seq, text))
                    self.turns.append(self._all[-1])
                self._running = True
            case TurnFinished():
                self._running = False
            case SnapshotTaken(snapshot=ref, by=by):
                self.steps.append(Step(event.seq, ref, by))
            case CodeEdit(snapshot=str(ref)):
                self.steps.append(Step(event.seq, ref, "tool"))
            case Rewound(what=what):
                self._taken_back[event.seq] = what
        to_seq = target(event, self._taken_back)
        if to_seq is not None:
            self._rewinds.append((event.seq, to_seq))
            self._running = False
            self.turns = self._at(to_seq)

    def _at(self, seq: int) -> list[Turn]:
        ranges, upto = [], seq
        for at, to_seq in reversed(self._rewinds):
            if at <= upto:
                ranges.append((at, upto))
                upto = to_seq
        ranges.append((0, upto))
        return [turn for after, last in reversed(ranges) for turn in self._all if after < turn.seq <= last]
