"""One model call: build the context, send it, follow the stream, record the reply."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal, NamedTuple

from agentsh.base.clock import Clock
from agentsh.base.errors import (
    ContextInvalid,
    ContextOverflow,
    ModelError,
    RequestRejected,
    StreamCut,
    UsageProblem,
)
from agentsh.base.light import dataclass
from agentsh.base.text import one_line
from agentsh.base.typed import some
from agentsh.context.budget import Scale, fit, floor_tokens
from agentsh.context.compaction import patient
from agentsh.context.images import images_of
from agentsh.context.marks import Marks
from agentsh.context.rendered import RenderCache
from agentsh.context.request import prompt_of, tools_of
from agentsh.context.room import Room
from agentsh.context.state import AgentItem, SessionState
from agentsh.context.validate import problems
from agentsh.context.view import view_of
from agentsh.engine.journal import Journal
from agentsh.engine.open import unread
from agentsh.engine.overflow import hopeless, learned, reason
from agentsh.engine.scout import Scout
from agentsh.engine.secrets import Secrets
from agentsh.engine.shown import Shown
from agentsh.events.base import Usage
from agentsh.events.event import Event, NewFact
from agentsh.events.model import WindowLearned
from agentsh.events.tool import ToolCall
from agentsh.events.turn import AgentMessage, ContextBuilt, ImageDropped, Thought
from agentsh.ports.model import Call, Image, Model, Reply, Streamed
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import Improves, TokenCounter

MAX_NAME_CHARS = 256
"""Of a call's id and name. Providers take 64; what is longer is a model gone wrong, and must not burst its line."""


MAX_REASON_CHARS = 300
NEAR_SHARE = 0.2
"""Of a mark: so near to it, an estimate is not good enough."""
UNSURE_SHARE = 0.05
"""Of a mark: where less than that is estimated, no better counter changes what is done."""
LOADING_S = 2.0
"""At most, for ranks that take 0.2 s, and only where something would be left out on the word of an estimate."""


def _fact(built: Event) -> ContextBuilt:
    assert isinstance(built.fact, ContextBuilt)
    return built.fact


def _call(call: Call, secrets: Secrets) -> ToolCall:
    arguments = secrets.json(call.arguments)
    return ToolCall(call=call.id[:MAX_NAME_CHARS], name=call.name[:MAX_NAME_CHARS], arguments=arguments)


class Price(NamedTuple):
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

    compacts: the context is compacted by itself. summarises: the model can be asked for a summary. room: what decides
    the budget as more is learned of the model; None where it stays as it is.
    """

    budget_tokens: int
    price: Price | None = None
    compacts: bool = True
    summarises: bool = True
    room: Room | None = None

    def at(self, state: SessionState, model: str | None = None) -> "StepSettings":
        """Return the settings with the budget that holds by what was learned of the model: of now, or of `model`."""
        if self.room is None:
            return self
        return replace(self, budget_tokens=self.room.budget(state.windows.get(model or state.model)))

    def cost_of(self, usage: Usage | None) -> float | None:
        """Return the price of a reply in US dollars; None where it is not known."""
        return self.price.of(usage) if self.price and usage else None

    @property
    def marks(self) -> Marks:
        """Return how full a request may get."""
        if self.room is None:
            return Marks(self.budget_tokens)
        return self.room.shares(self.budget_tokens)


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
        self._images: list[Image] = []
        self._scout = Scout(journal)

    async def run(self) -> list[Event]:
        """Return the tool_call events that the reply asked for; empty when the model is done.

        A request that the provider refuses for its length is shortened and sent again, once; and so is one that it
        refuses for an image, without the images that it had not taken before.

        Raises:
            ModelError: the model did not answer; what was shown of a broken reply is recorded.
        """
        body, built = await self._build()
        try:
            reply, thought = await self._sent(body, built)
        except ContextOverflow as refused:
            body, built = await self._shortened(built, refused)
            try:
                reply, thought = await self._sent(body, built)
            except ContextOverflow as again:
                await self._journal.record(self._learned(built, again), cause=built.seq, happened=True)
                raise hopeless(_fact(built), again) from again
        except RequestRejected as refused:
            body, built = await self._without_images(refused)
            reply, thought = await self._sent(body, built)
        self._scout.look(self._model, reply.usage.prompt if reply.usage else _fact(built).tokens)
        return await self._record(reply, thought, built.seq)

    async def close(self) -> None:
        """End what goes on in the background. Idempotent."""
        await self._scout.close()

    async def _shortened(self, built: Event, refused: ContextOverflow) -> tuple[bytes, Event]:
        """Record what a refusal taught, and build a shorter request.

        Raises:
            ContextOverflow: there is none.
        """
        learned = self._learned(built, refused)
        await self._journal.record(learned, cause=built.seq, happened=True)
        try:
            body, shorter = await self._build(reason(learned, refused))
        except ContextOverflow as nothing_left:
            raise hopeless(_fact(built), refused) from nothing_left
        if _fact(shorter).cut is None:
            raise hopeless(_fact(built), refused) from refused
        return body, shorter

    async def _without_images(self, refused: RequestRejected) -> tuple[bytes, Event]:
        """Record that images are left out from here on, and build the request again.

        What providers say of images differs, so they are decoded before they are recorded; this is for what is left.

        Raises:
            RequestRejected: it does not speak of an image, or there was none.
        """
        if not self._images or "image" not in refused.message.lower():
            raise refused
        replies = [item.seq for item in self._journal.state.talk if isinstance(item, AgentItem)]
        new = [image for image in self._images if image.seq > max(replies, default=0)]
        names = ", ".join(image.name for image in new or self._images)
        from_seq = min(image.seq for image in new) if new else 0
        reason = one_line(f"refused: {refused.message}", MAX_REASON_CHARS)
        await self._journal.record(ImageDropped(image=names, reason=reason, from_seq=from_seq), happened=True)
        return await self._build()

    def _learned(self, built: Event, refused: ContextOverflow) -> WindowLearned:
        return learned(self._journal.state.model, _fact(built), refused)

    async def _sent(self, body: bytes, built: Event) -> tuple[Reply, Thought | None]:
        shown = Shown(self._journal, built.seq, self._clock)
        try:
            async with shown.saving(), contextlib.aclosing(self._model.stream(body)) as stream:
                return await self._follow(stream, shown), shown.thought
        except ModelError:
            await self._record_broken(shown, "cut")
            raise
        except asyncio.CancelledError:
            await self._record_broken(shown, "interrupted")
            raise

    async def _follow(self, stream: AsyncIterator[Streamed], shown: Shown) -> Reply:
        async for item in stream:
            if isinstance(item, Reply):
                await shown.gate()
                shown.end()
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
        return self._settings.at(self._journal.state)

    async def make_sure(self) -> None:
        """Have the exact counter where an estimate would decide something: near a mark, of much that is not known.

        It is loaded in the background; only where something would be left out is it waited for, a moment.
        """
        counter, state = self._counter, self._journal.state
        if not isinstance(counter, Improves):
            return
        counter.adopt(state.model)
        marks, whole = self.settings.marks, self.scale().whole(view_of(state))
        near = whole.total >= marks.high_tokens * (1 - NEAR_SHARE)
        if near and whole.raw >= marks.high_tokens * UNSURE_SHARE and counter.load(state.model):
            if whole.total > marks.high_tokens:
                await asyncio.to_thread(counter.wait, LOADING_S)
            counter.adopt(state.model)

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

    def check_budget(self, state: SessionState, model: str = "", settings: StepSettings | None = None) -> None:
        """Refuse a budget that no request of the session can keep to. model, settings: of one that is to be used.

        Raises:
            UsageProblem: what every request starts with is above the high-water mark.
        """
        fixed = self._counter.count(tools_of(state, self._texts))
        floor = floor_tokens(state, self._texts, self._counter, fixed_tokens=fixed)
        how = (settings or self._settings).at(state, model or None)
        marks = how.marks
        if floor > marks.high_tokens:
            needed = -(-floor * 2 // 1000) * 1000
            window = how.room is not None and how.room.budget_tokens != marks.budget_tokens
            raise UsageProblem(
                f"a budget of {marks.budget_tokens:,} tokens is too small for this session: what each request starts "
                f"with takes about {floor:,}",
                hint="the window of this model leaves no more: take one with a larger one"
                if window
                else f"--budget {needed}, or budget_tokens below [context], leaves room to work",
            )

    async def _build(self, why: str | None = None) -> tuple[bytes, Event]:
        """Build the request from a state that nothing else is changing, and record it with the same breath.

        why: what the user is told where it takes a cut; None for what the budget says.
        """
        bodies: list[bytes] = []

        def make(state: SessionState) -> list[NewFact]:
            body, fact = self._request(state)
            if why is not None and fact.cut is not None:
                fact = fact.model_copy(update={"cut": fact.cut.model_copy(update={"reason": why})})
            bodies.append(body)
            told = unread(state, fact.missing or ())
            return [NewFact(fact, state.last_seq), *([NewFact(told)] if told is not None else [])]

        event, *_ = await self._journal.record_from(make)
        return bodies[0], event

    def _request(self, state: SessionState) -> tuple[bytes, ContextBuilt]:
        settings, tools = self._settings.at(state), tools_of(state, self._texts)
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
        self._images = images_of(fitted.messages)
        body = self._model.encode(prompt_of(state, fitted.messages, tools))
        fact = ContextBuilt(
            request_sha256=hashlib.sha256(body).hexdigest(),
            bytes=len(body),
            estimator=self._counter.name,
            tokens=fitted.tokens,
            budget=settings.budget_tokens,
            cut=fitted.cut,
            rules=fitted.view.rules,
            **some(missing=fitted.missing or None, counted=fitted.counted or None),
            **some(raw=fitted.raw if fitted.raw != fitted.tokens - fitted.counted else None),
        )
        return body, fact

    async def _record(self, reply: Reply, thought: Thought | None, built_seq: int) -> list[Event]:
        message = AgentMessage(
            text=reply.text,
            reasoning=reply.reasoning,
            model=reply.model,
            finish=reply.finish,
            usage=reply.usage,
            cost_usd=self._settings.cost_of(reply.usage),
            **some(thought=thought if reply.reasoning else None),
        )
        # One append for the reply and its calls: a log that is cut between them would ask for less than was said.
        calls = [NewFact(_call(c, self._journal.secrets), within=0) for c in reply.calls]
        events = await self._journal.record_all([NewFact(message, built_seq), *calls], happened=True)
        return events[1:]

    async def _record_broken(self, shown: Shown, finish: Literal["cut", "interrupted"]) -> None:
        shown.end()
        if not shown.text and not shown.reasoning:
            return
        message = AgentMessage(
            text=shown.text,
            reasoning=shown.reasoning or None,
            model=self._journal.state.model,
            finish=finish,
            usage=None,
            cost_usd=None,
            **some(thought=shown.thought),
        )
        await self._journal.record(message, cause=shown.built_seq, happened=True)
