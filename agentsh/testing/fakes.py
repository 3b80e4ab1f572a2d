"""Fakes that ship beside the ports: a clock that tests own, a renderer that keeps, approvers that answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agentsh.events.event import Event
from agentsh.events.signals import Signal
from agentsh.ports.approver import Answer, Question
from agentsh.ports.tool import ToolContext, ToolOutcome, ToolSpec


class FakeClock:
    """Time stands still but for `sleep`, which moves it on at once and lets other tasks run.

    hold: `sleep` waits instead until `advance` has gone past its end.
    """

    def __init__(self, start: datetime = datetime(2026, 11, 29, 16, 20, tzinfo=UTC), *, hold: bool = False) -> None:
        self._hold = hold
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._now = start
        self._elapsed_s = 0.0

    def now(self) -> datetime:
        """Return the fake wall clock."""
        return self._now

    def monotonic_s(self) -> float:
        """Return fake seconds since the start."""
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        """Move both clocks on."""
        self._now += timedelta(seconds=seconds)
        self._elapsed_s += seconds
        for end_s, woken in self._sleepers:
            if end_s <= self._elapsed_s:
                woken.set()

    async def sleep(self, seconds: float) -> None:
        """Move on by `seconds` without waiting, or with `hold` wait for somebody to move on."""
        if self._hold:
            woken = asyncio.Event()
            self._sleepers.append((self._elapsed_s + seconds, woken))
            await woken.wait()
            return
        self.advance(seconds)
        await asyncio.sleep(0)


class KeepingRenderer:
    """Keeps all that it was shown. events: facts in order. signals: previews in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.signals: list[Signal] = []
        self.closed = False

    def on(self, event: Event) -> None:
        """Keep a fact."""
        self.events.append(event)

    def signal(self, signal: Signal) -> None:
        """Keep a preview."""
        self.signals.append(signal)

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    @property
    def types(self) -> list[str]:
        """The types of the facts, in order."""
        return [event.fact.type for event in self.events]


class ScriptedApprover:
    """Gives the answers of a list, in order. questions: what it was asked."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        """Return the next answer."""
        self.questions.append(question)
        return self._answers.pop(0)


class FunctionTool:
    """A tool made of a function (context, arguments) -> outcome, with any schema."""

    def __init__(
        self, spec: ToolSpec, function: Callable[[ToolContext, Mapping[str, Any]], Awaitable[ToolOutcome]]
    ) -> None:
        self.spec = spec
        self._function = function

    def parse(self, arguments: str) -> Mapping[str, Any]:
        """Take any JSON object."""
        import json

        from agentsh.base.errors import BadArguments

        try:
            value = json.loads(arguments)
        except ValueError as error:
            raise BadArguments(f"the arguments are not JSON: {error}") from None
        if not isinstance(value, dict):
            raise BadArguments("the arguments are not an object")
        return value

    async def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call the function."""
        return await self._function(context, arguments)
