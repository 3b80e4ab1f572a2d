"""Questions aside: answered by the model from the context as it stands, and part of no later request."""

import asyncio
import contextlib
import hashlib

from agentsh.base.errors import AgentshError, ContextInvalid, LogWriteFailed, StreamCut, UsageProblem
from agentsh.base.text import one_line
from agentsh.base.typed import some
from agentsh.base.waiting import to_the_end
from agentsh.context.budget import count_message
from agentsh.context.messages import build
from agentsh.context.rendered import NotingTexts
from agentsh.context.request import aside_prompt
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.context.view import view_of
from agentsh.engine.journal import Journal
from agentsh.engine.step import ModelStep
from agentsh.events.event import NewFact
from agentsh.events.signals import Retrying
from agentsh.events.turn import ContextBuilt
from agentsh.events.user import SideAnswer, SideQuestion
from agentsh.ports.model import Reply
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import TokenCounter

MAX_ERROR_CHARS = 300


class Asides:
    """Asks the model of the steps, beside them: a turn that runs goes on meanwhile."""

    def __init__(self, journal: Journal, step: ModelStep, texts: Texts, counter: TokenCounter) -> None:
        self._journal = journal
        self._step = step
        self._texts = texts
        self._counter = counter

    async def ask(self, question: str) -> SideAnswer:
        """Ask, and return what was recorded of the answer, errors of the model too. Cancelling is recorded likewise.

        Raises:
            LogError: the log cannot be written.
        """
        asked = asyncio.create_task(self._journal.record(SideQuestion(text=question), durable=True))
        try:
            await to_the_end(asked)  # an interruption does not take back what is on its way into the log
            answer = self._answer(await self._reply(await self._built(asked.result().seq)))
        except asyncio.CancelledError:
            if asked.exception() is None:
                await self._record(SideAnswer(text="", error="interrupted"), asked.result().seq)
            raise
        except LogWriteFailed:
            raise
        except AgentshError as error:
            answer = SideAnswer(text="", error=one_line(error.message, MAX_ERROR_CHARS))
        await self._record(answer, asked.result().seq)
        return answer

    async def _record(self, answer: SideAnswer, seq: int) -> None:
        recording = asyncio.create_task(self._journal.record(answer, cause=seq, durable=True, happened=True))
        await to_the_end(recording)

    async def _built(self, question: int) -> bytes:
        """Record the request; return its body."""
        bodies: list[bytes] = []

        def make(state: SessionState) -> list[NewFact]:
            body, fact = self._request(state, question)
            bodies.append(body)
            return [NewFact(fact, question)]

        await self._journal.record_from(make)
        return bodies[0]

    def _request(self, state: SessionState, question: int) -> tuple[bytes, ContextBuilt]:
        noting, view = NotingTexts(self._texts), view_of(state)
        prompt = aside_prompt(state, noting, question, build(state, noting, view))
        if wrong := problems(prompt.messages):
            raise ContextInvalid(f"the question would be refused: {wrong[0]}")
        tokens = self._step.scale().fixed_tokens + sum(count_message(m, self._counter) for m in prompt.messages)
        budget = self._step.settings.budget_tokens
        if tokens > budget:
            raise UsageProblem(f"the context is too full for a question aside: {tokens:,} of {budget:,} tokens")
        body = self._step.model.encode(prompt)
        fact = ContextBuilt(
            request_sha256=hashlib.sha256(body).hexdigest(),
            bytes=len(body),
            estimator=self._counter.name,
            tokens=tokens,
            budget=budget,
            cut=None,
            rules=view.rules,
            aside=question,
            **some(missing=tuple(sorted(noting.missing)) or None),
        )
        return body, fact

    async def _reply(self, body: bytes) -> Reply:
        async with contextlib.aclosing(self._step.model.stream(body)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    return item
                if isinstance(item, Retrying):
                    self._journal.signal(item)
        raise StreamCut("the model's answer ended without a finish reason")

    def _answer(self, reply: Reply) -> SideAnswer:
        text = reply.text.strip()
        why = "the model called a tool instead of answering" if reply.calls else "the model said nothing"
        cost = self._step.settings.cost_of(reply.usage)
        answer = SideAnswer(text=text, model=reply.model, usage=reply.usage, cost_usd=cost)
        return answer if text else answer.model_copy(update={"error": why})
