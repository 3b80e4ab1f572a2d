"""What a streaming reply has put on the screen so far."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agentsh.base.clock import Clock
from agentsh.engine.journal import Journal
from agentsh.engine.saver import Saver
from agentsh.events.event import NewFact
from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta
from agentsh.events.turn import PartialMessage


class Shown:
    """Passes previews on once the request is durable, and has them saved while they grow."""

    def __init__(self, journal: Journal, built_seq: int, clock: Clock) -> None:
        self.built_seq = built_seq
        self._journal = journal
        self._texts: list[str] = []
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
        self._journal.signal(item)
        if isinstance(item, Retrying):  # what was thought before the retry is not part of the next answer
            self._reasonings.clear()
        if isinstance(item, TextDelta):
            self._texts.append(item.text)
            self._text_saver.add(item.text)
        elif isinstance(item, ReasoningDelta):
            self._reasonings.append(item.text)
            self._reasoning_saver.add(item.text)

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
