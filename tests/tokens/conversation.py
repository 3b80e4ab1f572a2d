"""A conversation written event by event, with a provider that counts in its own way."""

from collections.abc import Callable
from typing import Any

from agentsh.context.budget import Prepared, fit
from agentsh.context.fold import apply, fold
from agentsh.context.marks import Marks
from agentsh.context.state import SessionState
from agentsh.events.base import Fact, Usage
from agentsh.events.codec import decode, encode
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged
from agentsh.events.tool import ToolCall, ToolResult
from agentsh.events.turn import AgentMessage, ContextBuilt, TurnFinished, UserMessage
from agentsh.log.frame import decode_event, encode_event
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tokens import PieceEstimate, TokenCounter

TS = "2026-11-29T16:20:00.000000Z"
TEXTS = InlineTexts()
FIXED = 300


class Counting:
    """The estimate, and how often it was asked, for which texts."""

    name = "~pieces"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return PieceEstimate().count(text)


class Conversation:
    """truth: what the provider counts of a prepared request; None where it reports nothing."""

    def __init__(self, truth: Callable[[Prepared], int] | None, budget: int = 1_000_000) -> None:
        self.state = SessionState()
        self.events: list[Event] = []
        self.truth = truth
        self.marks = Marks(budget)
        self.counter: TokenCounter = PieceEstimate()
        self.sent: list[ContextBuilt] = []
        self.add(EnvironmentChanged(system_prompt="You are a test of counting.", tools="[]", instructions=()))

    def add(self, fact: Fact, cause: int | None = None) -> int:
        line = encode_event(encode(fact, ts=TS, cause=cause), seq=self.state.last_seq + 1, dur=0, salt=1)
        event = decode(decode_event(line, 1))
        self.events.append(event)
        apply(self.state, event)
        return event.seq

    def prepare(self) -> Prepared:
        """What the next request would be, by a cache that knows nothing yet, as after a resume."""
        return fit(self.state, TEXTS, self.counter, marks=self.marks, fixed_tokens=FIXED)

    def ask(self) -> tuple[int, Prepared]:
        """Record a request."""
        made = self.prepare()
        members: dict[str, Any] = {"counted": made.counted} if made.counted else {}
        if made.raw != made.tokens - made.counted:
            members["raw"] = made.raw
        built = ContextBuilt(
            request_sha256="0" * 64, bytes=1, estimator=self.counter.name, tokens=made.tokens,
            budget=self.marks.budget_tokens, cut=made.cut, rules=made.view.rules, **members,
        )  # fmt: skip
        self.sent.append(built)
        return self.add(built, self.state.last_seq), made

    def step(
        self, text: str = "", result: str | None = None, *, completion: int = 20, reasoning: int = 0
    ) -> Prepared:
        """One request, its reply, and the result of the one tool it asked for, where there is one."""
        seq, made = self.ask()
        usage = None
        if self.truth is not None:
            usage = Usage(prompt=self.truth(made), cached=0, completion=completion, reasoning=reasoning)
        reply = self.add(
            AgentMessage(text=text, reasoning=None, model="m", finish="stop", usage=usage, cost_usd=None), seq
        )
        if result is not None:
            call = self.add(ToolCall(call=f"c{reply}", name="look", arguments='{"path":"a"}'), reply)
            self.add(ToolResult(call=f"c{reply}", status="ok", for_model=result, for_user="", duration_ms=1), call)
        return made

    def say(self, text: str) -> None:
        self.add(UserMessage(text=text, attachments=()))

    def end(self) -> None:
        usage = Usage(prompt=0, cached=0, completion=0, reasoning=0)
        self.add(TurnFinished(reason="done", steps=1, usage=usage, cost_usd=None, duration_ms=1))

    def folded(self) -> SessionState:
        """The state after a resume: from the log alone."""
        return fold(self.events)


def bytes_by(divisor: float) -> Callable[[Prepared], int]:
    """A provider that counts so many bytes a token."""

    def count(made: Prepared) -> int:
        size = sum(len(m.text) + sum(len(c.name) + len(c.arguments) for c in m.calls) + 20 for m in made.messages)
        return int(size / divisor) + FIXED

    return count
