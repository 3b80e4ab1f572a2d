"""What became of every event of a log in a request: kept, pruned, summarised, left out, not for the model. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from agentsh.base.light import dataclass
from agentsh.base.text import one_line
from agentsh.context.budget import MESSAGE_TOKENS, count_message
from agentsh.context.images import is_image
from agentsh.context.items import is_stub
from agentsh.context.state import AgentItem, SessionState
from agentsh.context.view import Block, View
from agentsh.context.weights import shared_out
from agentsh.events.base import BlobRef, Text
from agentsh.events.compaction import Compaction
from agentsh.events.event import Event, Opaque
from agentsh.events.session import EnvironmentChanged
from agentsh.events.tool import ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, Attachment, ContextBuilt, TurnFinished, UserMessage
from agentsh.events.user import UserCommand, UserCommandEnded
from agentsh.ports.model import Message
from agentsh.ports.tokens import TokenCounter

Fate = Literal["kept", "pruned", "summarised", "left out", "not for the model", "unreadable"]
TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One event. tokens: what it costs in the request, by the counter. turn: seq of the message that opened its turn.

    why: for what is not kept: which event did it, and where the whole is.
    """

    seq: int
    type: str
    fate: Fate
    tokens: int = 0
    why: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """A request, event by event. titles: first words of each turn, by the seq of its message.

    parts: tokens of what does not come from the conversation: `system`, `instructions`, `tools`.
    """

    rows: tuple[Row, ...]
    titles: Mapping[int, str]
    parts: Mapping[str, int]

    @property
    def tokens(self) -> int:
        """Return the tokens of all rows: the whole request."""
        return sum(row.tokens for row in self.rows)


def manifest(
    events: Sequence[Event], state: SessionState, view: View, blocks: Sequence[Block], *, prompt: str, tools: str,
    counter: TokenCounter, tokens: int | None = None,
) -> Manifest:  # fmt: skip
    """Return the manifest of a request.

    events: all before it. state: what they fold to. view, blocks: as sent. prompt: the system prompt without the
    instructions. tools: the JSON list. tokens: of the whole, as recorded or known; the parts are made to add up to
    it, each in its proportion by `counter`.
    """
    teller = _Teller(events, state, view, blocks, counter)
    whole = sum(count_message(m, counter) for b in blocks if b.kind == "system" for m in b.messages)
    instructions = whole - counter.count(prompt) - MESSAGE_TOKENS if whole else 0
    parts = {"system": whole - instructions, "instructions": instructions, "tools": counter.count(tools)}
    rows = [teller.row(event, parts) for event in events]
    if tokens is not None:
        shares = shared_out(tokens, [row.tokens for row in rows])
        rows = [replace(row, tokens=share) for row, share in zip(rows, shares, strict=True)]
        start = sum(row.tokens for row in rows if row.type == "environment_changed")
        parts = dict(zip(parts, shared_out(start, list(parts.values())), strict=True))
    return Manifest(tuple(_with_gaps(rows, events)), teller.titles, parts)


def _with_gaps(rows: list[Row], events: Sequence[Event]) -> list[Row]:
    """Put in a row for each run of events that do not read."""
    found, before = [], 0
    for row in rows:
        if row.seq > before + 1:
            lost = row.seq - before - 1
            found.append(Row(before + 1, "damaged", "unreadable", why=f"{lost:,} of the log do not read"))
        found.append(row)
        before = row.seq
    return found


class _Teller:
    """Knows what of a state is in the blocks."""

    def __init__(
        self, events: Sequence[Event], state: SessionState, view: View, blocks: Sequence[Block], counter: TokenCounter
    ) -> None:
        self._state, self._view, self._counter = state, view, counter
        self.titles: dict[int, str] = {}
        self._turn = 0
        self._messages = {b.seq: b.messages[0] for b in blocks if b.kind in ("user", "reply", "summary")}
        self._results = {m.seq: m for b in blocks for m in b.messages if m.role == "tool"}
        self._images = _tokens_of_images(blocks, counter)
        self._items = {item.seq: item for item in state.talk}
        self._calls = {c.seq: c for item in state.talk if isinstance(item, AgentItem) for c in item.calls}
        # From the events, since the state forgets what was cut: each call by what may answer it.
        self._asked = {e.seq: e.seq for e in events if isinstance(e.fact, ToolCall)}
        self._asked |= {e.seq: e.cause for e in events if isinstance(e.fact, ToolStarted) and e.cause in self._asked}
        self._joining = {e.seq for e in events if isinstance(e.fact, UserCommand) and e.fact.joins}
        self._answered: set[int] = set()
        self._open = False
        self._cutter = max((e.seq for e in events if isinstance(e.fact, ContextBuilt) and e.fact.cut), default=None)
        whole = [e.seq for e in events if isinstance(e.fact, EnvironmentChanged) and not e.fact.changes]
        self._environment = max(whole, default=0)
        self._joins = {told.seq: told.joins for told in state.changes}

    def row(self, event: Event, parts: Mapping[str, int]) -> Row:
        """Return what became of an event."""
        fact, seq = event.fact, event.seq
        if isinstance(fact, Opaque):
            fate: Fate = "unreadable" if fact.problem else "not for the model"
            return Row(seq, fact.type, fate, why=one_line(fact.problem, TITLE_CHARS), turn=self._turn)
        if isinstance(fact, UserMessage) and not self._open:
            self._turn, self._open = seq, True
            self.titles[seq] = _title(fact.text)
        self._open = self._open and not isinstance(fact, TurnFinished)
        told = self._told(event, parts)
        return Row(seq, fact.type, *told, turn=self._turn)

    def _told(self, event: Event, parts: Mapping[str, int]) -> tuple[Fate, int, str]:
        fact, seq = event.fact, event.seq
        if isinstance(fact, UserMessage | AgentMessage):
            return self._message(seq, [a for a in getattr(fact, "attachments", ()) if is_image(a)])
        if isinstance(fact, UserCommandEnded):
            joined = event.cause in self._joining
            return self._message(seq, ()) if joined else ("not for the model", 0, "")
        if isinstance(fact, ToolCall):
            return self._call(seq)
        if isinstance(fact, ToolResult):
            return self._result(event, fact)
        if isinstance(fact, EnvironmentChanged) or seq in self._joins:
            return self._surroundings(seq, parts)
        if isinstance(fact, Compaction):
            message = self._messages.get(seq)
            return ("left out", 0, "does not hold") if message is None else ("kept", self._count(message), "")
        return "not for the model", 0, ""

    def _surroundings(self, seq: int, parts: Mapping[str, int]) -> tuple[Fate, int, str]:
        if seq == self._environment:
            return "kept", sum(parts.values()), ""
        if joins := self._joins.get(seq):
            return "kept", 0, f"told in event {joins}" if joins in self._messages else "told in front of the rest"
        if seq in self._joins:
            return "left out", 0, "no message came after it yet"
        return "left out", 0, f"replaced by event {self._environment}"

    def _message(self, seq: int, images: Sequence[Attachment]) -> tuple[Fate, int, str]:
        message = self._messages.get(seq)
        if message is None:
            return self._gone(seq)
        text = replace(message, calls=())  # its calls have rows of their own
        return "kept", self._count(text), _unseen(images) if len(images) > len(message.images) else ""

    def _call(self, seq: int) -> tuple[Fate, int, str]:
        call = self._calls.get(seq)
        message = self._messages.get(call.agent_seq) if call else None
        if call is None or message is None:
            return self._gone(seq)
        item = self._items[call.agent_seq]
        assert isinstance(item, AgentItem)
        sent = message.calls[next(n for n, c in enumerate(item.calls) if c.seq == seq)]
        tokens = self._counter.count(sent.name) + self._counter.count(sent.arguments)
        if call.result is None and seq in self._results:  # what stands for its result
            tokens += self._count(self._results[seq])
        return "kept", tokens, ""

    def _result(self, event: Event, fact: ToolResult) -> tuple[Fate, int, str]:
        seq = self._asked.get(event.cause or 0)
        if event.seq in self._messages:
            return "kept", self._count(self._messages[event.seq]), "its call is lost"
        if seq is None or seq in self._answered:
            return "left out", 0, "answers no open call"
        self._answered.add(seq)
        message = self._results.get(seq)
        if message is None:
            return self._gone(seq)
        if seq < self._view.pruned_before and is_stub(message.text):
            return "pruned", self._count(message), f"the whole is {_where(fact.for_model, event.seq)}"
        tokens = self._count(message) + self._images.get(seq, 0)
        if fact.images and seq not in self._images:
            return "kept", tokens, _unseen(fact.images)
        return "kept", tokens, ""

    def _gone(self, seq: int) -> tuple[Fate, int, str]:
        compaction = self._state.compaction
        if compaction is not None and seq <= compaction.upto_seq:
            return "summarised", 0, f"by event {compaction.seq}"
        if seq < self._view.from_seq:
            by = f" by event {self._cutter}" if self._cutter else ""
            return "left out", 0, f"cut{by}"
        return "left out", 0, "says nothing"

    def _count(self, message: Message) -> int:
        return count_message(message, self._counter)


def _tokens_of_images(blocks: Sequence[Block], counter: TokenCounter) -> dict[int, int]:
    """Return what the images of results cost, by the event of the call; the first pays for their message."""
    found: dict[int, int] = {}
    for message in (m for b in blocks if b.kind == "reply" for m in b.messages if m.images):
        frame = count_message(replace(message, images=()), counter)
        for image in message.images:
            found[image.seq] = found.get(image.seq, 0) + image.tokens + frame
            frame = 0
    return found


def _unseen(images: Sequence[Attachment]) -> str:
    """Return where images are that are named and not shown."""
    places = [f"blob {i.content.blob}" if isinstance(i.content, BlobRef) else "the log" for i in images]
    return f"not shown: {', '.join(i.name for i in images)} (in {', '.join(dict.fromkeys(places))})"


def _where(text: Text, seq: int) -> str:
    return f"blob {text.blob}" if isinstance(text, BlobRef) else f"in event {seq}"


def _title(text: Text) -> str:
    return one_line(text if isinstance(text, str) else text.head, TITLE_CHARS)


@dataclass(frozen=True, slots=True)
class Group:
    """Turns that stand in one line of a table. first, last: seq. events: for the model, among them `kept`, ….

    says: what became of them, in a few words.
    """

    first: int
    last: int
    turns: int
    title: str
    tokens: int
    says: str


def groups(found: Manifest, *, most: int = 40) -> list[Group]:
    """Return the conversation in at most about `most` lines: a line for each turn, the oldest ones together."""
    by_turn: dict[int, list[Row]] = {}
    for row in found.rows:
        if row.turn:
            by_turn.setdefault(row.turn, []).append(row)
    single = [_group(rows, found.titles.get(turn, "")) for turn, rows in by_turn.items()]
    merged: list[Group] = []
    for n, group in enumerate(single):
        before = merged[-1] if merged else None
        old = n < len(single) - most and _is_kept(group.says) and before is not None and _is_kept(before.says)
        if before is not None and (old or (before.says == group.says and not _is_kept(group.says))):
            merged[-1] = _together(before, group)
        else:
            merged.append(group)
    return merged


def _group(rows: Sequence[Row], title: str) -> Group:
    told = Counter((row.fate, row.why if row.fate in ("summarised", "left out") else "") for row in rows)
    told.pop(("not for the model", ""), None)
    if ("kept", "") not in told and len(told) == 1:
        ((fate, why),) = told
        says = f"{fate}: {why}" if fate == "left out" else f"{fate} {why}".strip()
    else:
        more = [
            f"{count} {fate}" + (f" ({why})" if why else "")
            for (fate, why), count in told.items()
            if fate != "kept" and why != "says nothing"
        ]
        says = "; ".join(["kept", *more])
    return Group(rows[0].seq, rows[-1].seq, 1, title, sum(row.tokens for row in rows), says)


def _is_kept(says: str) -> bool:
    return says.startswith("kept")


def _together(a: Group, b: Group) -> Group:
    says = a.says if a.says == b.says else "kept, in part pruned or left out"
    return Group(a.first, b.last, a.turns + b.turns, a.title, a.tokens + b.tokens, says)
