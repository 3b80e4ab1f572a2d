"""One model call: build the context, send it, follow the stream, record the reply."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from agentsh.base.clock import Clock
from agentsh.base.errors import ContextInvalid, ModelError, StreamCut, UsageProblem
from agentsh.context.budget import Scale, fit, floor_tokens
from agentsh.context.compaction import patient
from agentsh.context.marks import Marks
from agentsh.context.rendered import RenderCache
from agentsh.context.request import prompt_of, tools_of
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.engine.journal import Journal
from agentsh.engine.shown import Shown
from agentsh.events.base import Usage
from agentsh.events.event import Event, NewFact
from agentsh.events.tool import ToolCall
from agentsh.events.turn import AgentMessage, ContextBuilt
from agentsh.ports.model import Call, Model, Reply, Streamed
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import TokenCounter

MAX_NAME_CHARS = 256
"""Of a call's id and name. Providers take 64; what is longer is a model gone wrong, and must not burst its line."""


def _call(call: Call) -> ToolCall:
    return ToolCall(call=call.id[:MAX_NAME_CHARS], name=call.name[:MAX_NAME_CHARS], arguments=call.arguments)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    cached: float
    completion: float

    def of(self, usage: Usage) -> float:
        """Return the price of one reply, to a millionth of a dollar."""
        fresh = usage.prompt - usage.cached
        total = fresh * self.prompt + usage.cached * self.cached + usage.completion * self.completion
        return round(total / 1_000_000, 6)


@dataclass(frozen=True, slots=True)
class StepSettings:
    """budget_tokens: for the whole request, the schemas of tools included. price: None where it is not known.

    compacts: the context is compacted by itself. summarises: the model can be asked for a summary.
    """

    budget_tokens: int
    price: Price | None = None
    compacts: bool = True
    summarises: bool = True

    def cost_of(self, usage: Usage | None) -> float | None:
        """Return the price of a reply in US dollars; None where it is not known."""
        return self.price.of(usage) if self.price and usage else None

    @property
    def marks(self) -> Marks:
        """Return how full a request may get."""
        return Marks(self.budget_tokens)


class ModelStep:
    """Makes one step of a turn. Reused for every step of a session."""

    def __init__(
        self,
        journal: Journal,
        model: Model,
        texts: Texts,
        counter: TokenCounter,
        settings: StepSettings,
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._model = model
        self._texts = texts
        self._counter = counter
        self._settings = settings
        self._clock = clock
        self._cache = RenderCache()

    async def run(self) -> list[Event]:
        """Return the tool_call events that the reply asked for; empty when the model is done.

        Raises:
            ModelError: the model did not answer; what was shown of a broken reply is recorded.
        """
        body, built = await self._build()
        shown = Shown(self._journal, built.seq, self._clock)
        try:
            async with shown.saving(), contextlib.aclosing(self._model.stream(body)) as stream:
                reply = await self._follow(stream, shown)
        except ModelError:
            await self._record_broken(shown, "cut")
            raise
        except asyncio.CancelledError:
            await self._record_broken(shown, "interrupted")
            raise
        return await self._record(reply, built.seq)

    async def _follow(self, stream: AsyncIterator[Streamed], shown: Shown) -> Reply:
        async for item in stream:
            if isinstance(item, Reply):
                await shown.gate()
                return item
            await shown.show(item)
        raise StreamCut("the model's answer ended without a finish reason")

    @property
    def model(self) -> Model:
        """The model that the next request goes to."""
        return self._model

    @property
    def settings(self) -> StepSettings:
        """The settings of the next request."""
        return self._settings

    def scale(self) -> Scale:
        """Return what weighs the next request.

        Raises:
            BlobMissing: the list of tools is gone.
        """
        state = self._journal.state
        fixed_tokens = self._counter.count(tools_of(state, self._texts))
        return Scale(state, self._texts, self._counter, fixed_tokens=fixed_tokens, cache=self._cache)

    def use(self, model: Model, settings: StepSettings) -> None:
        """Send the next requests through another model. The one before is the caller's to close."""
        self._model = model
        self._settings = settings

    def check_budget(self, state: SessionState) -> None:
        """Refuse a budget that no request of the session can keep to.

        Raises:
            UsageProblem: what every request starts with is above the high-water mark.
        """
        fixed = self._counter.count(tools_of(state, self._texts))
        floor = floor_tokens(state, self._texts, self._counter, fixed_tokens=fixed)
        marks = self._settings.marks
        if floor > marks.high_tokens:
            raise UsageProblem(
                f"a budget of {marks.budget_tokens:,} tokens is too small for this session: what each request starts "
                f"with takes about {floor:,}",
                hint=f"--budget {-(-floor * 2 // 1000) * 1000} leaves room to work",
            )

    async def _build(self) -> tuple[bytes, Event]:
        """Build the request from a state that nothing else is changing, and record it with the same breath."""
        bodies: list[bytes] = []

        def make(state: SessionState) -> list[NewFact]:
            body, fact = self._request(state)
            bodies.append(body)
            return [NewFact(fact, state.last_seq)]

        (event,) = await self._journal.record_from(make)
        return bodies[0], event

    def _request(self, state: SessionState) -> tuple[bytes, ContextBuilt]:
        settings, tools = self._settings, tools_of(state, self._texts)
        fitted = fit(
            state,
            self._texts,
            self._counter,
            marks=patient(state, settings.marks),
            fixed_tokens=self._counter.count(tools),
            cache=self._cache,
        )
        if wrong := problems(fitted.messages):
            raise ContextInvalid(f"the request would be refused: {wrong[0]}")
        body = self._model.encode(prompt_of(state, fitted.messages, tools))
        fact = ContextBuilt(
            request_sha256=hashlib.sha256(body).hexdigest(),
            bytes=len(body),
            estimator=self._counter.name,
            tokens=fitted.tokens,
            budget=settings.budget_tokens,
            cut=fitted.cut,
            rules=fitted.view.rules,
            **({"missing": fitted.missing} if fitted.missing else {}),
        )
        return body, fact

    async def _record(self, reply: Reply, built_seq: int) -> list[Event]:
        message = AgentMessage(
            text=reply.text,
            reasoning=reply.reasoning,
            model=reply.model,
            finish=reply.finish,
            usage=reply.usage,
            cost_usd=self._settings.cost_of(reply.usage),
        )
        # One append for the reply and its calls: a log that is cut between them would ask for less than was said.
        calls = [NewFact(_call(c), within=0) for c in reply.calls]
        events = await self._journal.record_all([NewFact(message, built_seq), *calls], happened=True)
        return events[1:]

    async def _record_broken(self, shown: Shown, finish: Literal["cut", "interrupted"]) -> None:
        if not shown.text and not shown.reasoning:
            return
        message = AgentMessage(
            text=shown.text,
            reasoning=shown.reasoning or None,
            model=self._journal.state.model,
            finish=finish,
            usage=None,
            cost_usd=None,
        )
        await self._journal.record(message, cause=shown.built_seq, happened=True)
