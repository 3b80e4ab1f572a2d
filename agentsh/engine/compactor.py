"""Compaction: older turns are replaced by a summary in the context. Either it is recorded whole, or nothing changed.

The model writes the summary; where there is none, it fails, or its summary does not make the context shorter, an
account from the log serves. What was asked and what it cost is on record whatever comes of it. See docs/adr/0007.
"""

import contextlib
import hashlib
from typing import Literal, NamedTuple

from agentsh.base.errors import ContextInvalid, ContextOverflow, ModelError, StreamCut
from agentsh.base.text import one_line
from agentsh.base.typed import some
from agentsh.context import compaction, summarising
from agentsh.context.budget import count_message, decide
from agentsh.context.planning import Plan, plan, weighed_with
from agentsh.context.rendered import NotingTexts
from agentsh.context.request import summary_prompt
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.context.view import RULES, view_of
from agentsh.engine.journal import Journal
from agentsh.engine.step import ModelStep
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryAsk, SummaryTried
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import Retrying
from agentsh.events.turn import ContextBuilt
from agentsh.ports.model import Message, Reply
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import TokenCounter

MAX_TRIES = 3
"""Requests for a summary in one compaction."""
WORDS_PER_TOKEN = 0.5
"""Of what a summary may have by the estimate of three bytes a token, which is high for prose."""
MAX_ERROR_CHARS = 300

By = Literal["auto", "user"]


class _Summary(NamedTuple):
    """A summary that may serve, and where it came from. built_seq: of its request; None for a mechanical one."""

    text: str
    built_seq: int | None = None
    reply: Reply | None = None
    tries: int = 0
    error: str | None = None


class Compactor:
    """Makes compactions, one at a time, from the same model and under the same budget as the steps."""

    def __init__(self, journal: Journal, step: ModelStep, texts: Texts, counter: TokenCounter) -> None:
        self._journal = journal
        self._step = step
        self._texts = texts
        self._counter = counter

    async def make_room(self) -> Event | None:
        """Compact if the next request calls for it; return what was recorded, or None.

        Raises:
            LogError: the log cannot be written.
        """
        await self._step.make_sure()
        scale, settings = self._step.scale(), self._step.settings
        marks = compaction.patient(self._journal.state, settings.marks)
        try:
            if decide(scale, marks, can_compact=True).kind != "compact":
                return None
        except ContextOverflow:
            return None  # the step will say so
        tokens = scale.total(view_of(scale.state))
        if not settings.compacts or not compaction.may_compact(scale.state, tokens, marks.budget_tokens):
            return None
        return await self._compact("auto", "")

    async def compact(self, instructions: str = "") -> Event | None:
        """Compact because the user said so; return what was recorded, or None where nothing would become shorter.

        Raises:
            LogError: the log cannot be written.
        """
        return await self._compact("user", instructions)

    async def undo(self) -> Event | None:
        """Take the newest compaction back; return what was recorded, or None where there is none to take back."""

        def take_back(state: SessionState) -> list[NewFact]:
            if state.compaction is None or state.replaced is None:
                return []
            return [NewFact(CompactionUndone(compaction=state.compaction.seq), state.compaction.seq)]

        events = await self._journal.record_from(take_back, durable=True)
        return events[0] if events else None

    async def _compact(self, by: By, instructions: str) -> Event | None:
        planned = plan(self._step.scale(), self._step.settings.marks)
        if planned is None:
            return None
        summary = _Summary("")
        if self._step.settings.summarises and (by == "user" or compaction.may_ask(self._journal.state)):
            summary = await self._asked(planned, instructions)
        elif self._step.settings.summarises:
            summary = _Summary("", error=f"not asked, after {self._journal.state.compacting.failed} failures")
        if not summary.text:
            summary = self._mechanical(planned, summary)
        return await self._record(planned, summary, by, instructions) if summary.text else None

    async def _asked(self, planned: Plan, instructions: str) -> _Summary:
        """Ask the model, MAX_TRIES times at most; the summary has no text where it gave none that serves."""
        max_tokens = self._step.settings.budget_tokens - planned.summary_tokens
        words = max(int(planned.summary_tokens * WORDS_PER_TOKEN), 50)
        error, tries = "", 0
        while tries < MAX_TRIES:
            ask = self._ask(tries + 1, words, instructions, max_tokens)
            if ask is None:
                error = error or "not even the request for a summary fits the budget"
                break
            tries += 1
            built = await self._built(ask)
            try:
                reply = await self._reply(built[0])
            except ModelError as failed:
                error = one_line(failed.message, MAX_ERROR_CHARS)
                await self._journal.record(SummaryTried(error=error), cause=built[1].seq, happened=True)
                if isinstance(failed, ContextOverflow):
                    max_tokens //= 2
                elif not isinstance(failed, StreamCut):
                    break  # it was retried already, as often as a request is
                continue
            problem = summarising.problem_of(reply)
            if problem is None:
                text = summarising.with_log_facts(reply.text, self._journal.state, self._texts, planned.upto_seq)
                if self._fits(planned, text):
                    return _Summary(text, built[1].seq, reply, tries, error or None)
                problem = "the model's summary was too long"
            error, words = problem, max(words // 2, 50)
            await self._journal.record(self._tried(reply, problem), cause=built[1].seq, happened=True)
        return _Summary("", tries=tries, error=error or None)

    def _ask(self, attempt: int, words: int, instructions: str, max_tokens: int) -> SummaryAsk | None:
        """Return a request that fits; None where there is none."""
        members: dict[str, object] = {"attempt": attempt, "max_words": words}
        if instructions:
            members["instructions"] = instructions
        options = (self._journal.state.request or {}).get("options") or {}
        # Only where calls were made, or are demanded: without tools some servers build another prompt, and its cache
        # is lost.
        if attempt > 1 or options.get("tool_choice") is not None:
            members["tools_off"] = True
        fixed = self._step.scale().fixed_tokens

        def weigh(messages: tuple[Message, ...]) -> int:
            return fixed + sum(count_message(m, self._counter) for m in messages)

        return summarising.ask_that_fits(
            self._journal.state, self._texts, weigh, SummaryAsk.model_validate(members), max_tokens
        )

    async def _built(self, ask: SummaryAsk) -> tuple[bytes, Event]:
        """Record a request for a summary; return its body and the event."""
        bodies: list[bytes] = []

        def make(state: SessionState) -> list[NewFact]:
            noting = NotingTexts(self._texts)
            prompt = summary_prompt(state, noting, ask)
            if wrong := problems(prompt.messages):
                raise ContextInvalid(f"the request for a summary would be refused: {wrong[0]}")
            bodies.append(self._step.model.encode(prompt))
            sizes = [count_message(m, self._counter) for m in prompt.messages]
            fact = ContextBuilt(
                request_sha256=hashlib.sha256(bodies[0]).hexdigest(),
                bytes=len(bodies[0]),
                estimator=self._counter.name,
                tokens=self._step.scale().fixed_tokens + sum(sizes),
                budget=self._step.settings.budget_tokens,
                cut=None,
                rules=RULES,
                summary=ask,
                **some(missing=tuple(sorted(noting.missing)) or None),
            )
            return [NewFact(fact, state.last_seq)]

        (event,) = await self._journal.record_from(make)
        return bodies[0], event

    async def _reply(self, body: bytes) -> Reply:
        async with contextlib.aclosing(self._step.model.stream(body)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    return item
                if isinstance(item, Retrying):
                    self._journal.signal(item)
        raise StreamCut("the model's summary ended without a finish reason")

    def _tried(self, reply: Reply, problem: str) -> SummaryTried:
        cost = self._step.settings.cost_of(reply.usage)
        return SummaryTried(error=problem, model=reply.model, usage=reply.usage, cost_usd=cost)

    def _mechanical(self, planned: Plan, failed: _Summary) -> _Summary:
        """Return an account from the log that is short enough; without text where none is."""
        max_bytes = planned.summary_tokens * 3
        while max_bytes >= 200:
            text = summarising.mechanical(self._journal.state, self._texts, planned.upto_seq, max_bytes=max_bytes)
            if self._fits(planned, text):
                return _Summary(text, tries=failed.tries, error=failed.error)
            max_bytes //= 2
        return _Summary("", tries=failed.tries, error=failed.error)

    def _fits(self, planned: Plan, text: str) -> bool:
        return weighed_with(self._step.scale(), planned.from_seq, planned.upto_seq, text) <= planned.allowed_tokens

    async def _record(self, planned: Plan, summary: _Summary, by: By, instructions: str) -> Event:
        """Record the compaction; from then on it holds. Durable before anybody sees it."""
        scale, reply = self._step.scale(), summary.reply
        members: dict[str, object] = {
            "from_seq": planned.from_seq,
            "upto_seq": planned.upto_seq,
            "summary": summary.text,
            "by": by,
            "made": "mechanical" if reply is None else "model",
            "tokens_before": scale.total(view_of(scale.state)),
            "tokens_after": weighed_with(scale, planned.from_seq, planned.upto_seq, summary.text),
            "estimator": self._counter.name,
            "budget": self._step.settings.budget_tokens,
            "tries": summary.tries,
        }
        if instructions:
            members["instructions"] = instructions
        if reply is not None:
            members |= {
                "model": reply.model,
                "usage": reply.usage,
                "cost_usd": self._step.settings.cost_of(reply.usage),
            }
        if summary.error:
            members["error"] = summary.error
        fact = Compaction.model_validate(members)
        return await self._journal.record(fact, cause=summary.built_seq, durable=True)
