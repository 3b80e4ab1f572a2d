"""What a scripted stream amounts to: the whole message, its calls put together, its finish reason and usage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from agentsh.testing.server_script import (
    AUTO,
    FRESH,
    CallDelta,
    Finish,
    ModelReply,
    Part,
    Reasoning,
    Step,
    Text,
    Together,
    Usage,
)
from agentsh.testing.server_wire import Request


@dataclass(slots=True)
class WholeCall:
    """One tool call with its fragments joined."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Whole:
    """The message that a client should end up with."""

    text: str = ""
    reasoning: str = ""
    reasoning_member: str = "reasoning_content"
    calls: list[WholeCall] = field(default_factory=list)


def with_ids(steps: Iterable[Step], reply_id: str) -> tuple[Step, ...]:
    """The steps with each FRESH id replaced; `reply_id` is unique, so the ids are."""
    fresh = (f"call_{reply_id}_{number}" for number in count())

    def named(part: Part) -> Part:
        return replace(part, id=next(fresh)) if isinstance(part, CallDelta) and part.id == FRESH else part

    def resolved(step: Step) -> Step:
        if isinstance(step, Together):
            return Together(tuple(named(part) for part in step.parts))
        return named(step) if isinstance(step, CallDelta) else step

    return tuple(resolved(step) for step in steps)


def parts(steps: Iterable[Step]) -> Iterator[Part]:
    """The parts of the message, in order, those sent together one by one."""
    for step in steps:
        if isinstance(step, Together):
            yield from step.parts
        elif isinstance(step, Part):
            yield step


class CallTable:
    """Which call a fragment belongs to: its index says so, and `starts` where an index is used twice."""

    def __init__(self) -> None:
        self.calls: list[WholeCall] = []
        self._newest: dict[int, int] = {}

    def add(self, delta: CallDelta) -> int:
        """Join one fragment; returns the position of its call in `calls`."""
        if delta.starts or delta.index not in self._newest:
            self._newest[delta.index] = len(self.calls)
            self.calls.append(WholeCall())
        position = self._newest[delta.index]
        call = self.calls[position]
        call.id += delta.id or ""
        call.name += delta.name or ""
        call.arguments += delta.arguments or ""
        return position


def whole(steps: Iterable[Step]) -> Whole:
    """All parts joined."""
    message, table = Whole(), CallTable()
    for part in parts(steps):
        match part:
            case Text(text):
                message.text += text
            case Reasoning(text, member):
                message.reasoning += text
                message.reasoning_member = member
            case CallDelta():
                table.add(part)
            case Finish():
                pass
    message.calls = table.calls
    return message


def finish_reason(reply: ModelReply) -> str | None:
    """The reason that the reply finishes with, None where it never says one."""
    explicit = [part.reason for part in parts(reply.steps) if isinstance(part, Finish)]
    if explicit:
        return explicit[-1]
    if reply.finish != AUTO:
        return reply.finish
    return "tool_calls" if any(isinstance(part, CallDelta) for part in parts(reply.steps)) else "stop"


def usage_of(reply: ModelReply, request: Request) -> Usage | None:
    """The usage to report: as scripted, or estimated at four bytes a token."""
    if reply.usage is None or isinstance(reply.usage, Usage):
        return reply.usage
    message = whole(reply.steps)
    written = [message.text, message.reasoning]
    written += [call.name + call.arguments for call in message.calls]
    completion = sum(len(piece.encode("utf-8", "replace")) for piece in written)
    reasoning = len(message.reasoning.encode("utf-8", "replace"))
    return Usage(len(request.body) // 4, -(-completion // 4), reasoning=reasoning // 4)
