"""What a streaming reply has put on the screen so far."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agentsh.base.clock import Clock
from agentsh.engine.journal import Journal
from agentsh.engine.saver import Saver
from agentsh.engine.secret_stream import SecretStream
from agentsh.events.event import NewFact
from agentsh.events.signals import ReasoningDelta, ReasoningEnded, Retrying, TextDelta
from agentsh.events.turn import PartialMessage, Thought


class Shown:
    """Passes previews on once the request is durable, and has them saved while they grow.

    thought: how long was reasoned before the answer; None where no reasoning came, or none before the answer.
    """

    def __init__(self, journal: Journal, built_seq: int, clock: Clock) -> None:
        self.built_seq = built_seq
        self.thought: Thought | None = None
        self._journal = journal
        self._clock = clock
        self._thinking_from_s: float | None = None
        self._texts: list[str] = []
        self._text_stream = SecretStream(journal.secrets)
        self._reasoning_stream = SecretStream(journal.secrets)
        self._reasonings: list[str] = []
        self._text_saver = Saver(journal, clock, lambda t: NewFact(PartialMessage(text=t), built_seq))
        self._reasoning_saver = Saver(
            journal, clock, lambda t: NewFact(PartialMessage(text="", reasoning=t), built_seq)
        )
        self._synced: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._texts)

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return "".join(self._reasonings)

    async def gate(self) -> None:
        """Return once the prompt and the request are durable: before that, nothing of the answer is shown."""
        if self._synced is not None:
            await asyncio.shield(self._synced)

    async def show(self, item: TextDelta | ReasoningDelta | Retrying) -> None:
        """Preview one item."""
        await self.gate()
        if isinstance(item, TextDelta):
            self._show_text(self._text_stream.feed(item.text))
        elif isinstance(item, ReasoningDelta):
            self._show_reasoning(self._reasoning_stream.feed(item.text))
        else:  # what was thought before a retry is not part of the next answer
            self._reasonings.clear()
            self._thinking_from_s = self.thought = None
            self._reasoning_stream = SecretStream(self._journal.secrets)
            self._journal.signal(item)

    def end(self) -> None:
        """Show what was held back: nothing more comes."""
        self._show_reasoning(self._reasoning_stream.rest())
        self._end_thinking()
        self._show_text(self._text_stream.rest())

    def _show_text(self, text: str) -> None:
        if text:
            self._end_thinking()
            self._journal.signal(TextDelta(text))
            self._texts.append(text)
            self._text_saver.add(text)

    def _show_reasoning(self, text: str) -> None:
        if text:
            if self._thinking_from_s is None:
                self._thinking_from_s = self._clock.monotonic_s()
            self._journal.signal(ReasoningDelta(text))
            self._reasonings.append(text)
            self._reasoning_saver.add(text)

    def _end_thinking(self) -> None:
        """Take down what is told of the reasoning: the answer begins, or nothing more comes."""
        if self._thinking_from_s is None or self.thought is not None or self._texts:
            return
        ms = round((self._clock.monotonic_s() - self._thinking_from_s) * 1000)
        self.thought = Thought(ms=ms, words=len(self.reasoning.split()))
        self._journal.signal(ReasoningEnded(self.thought.ms, self.thought.words))

    @contextlib.asynccontextmanager
    async def saving(self) -> AsyncIterator[None]:
        """Sync the request beside the model call, and record what is shown while the block runs."""
        self._synced = asyncio.create_task(self._journal.durable(self.built_seq))
        try:
            async with self._text_saver.running(), self._reasoning_saver.running():
                yield
        finally:
            await asyncio.wait([self._synced])
            if not self._synced.cancelled():
                self._synced.exception()  # whoever needed the sync has seen it at the gate
