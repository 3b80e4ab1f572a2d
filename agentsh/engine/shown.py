"""What a streaming reply has put on the screen so far, and getting it onto the disk."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agentsh.base.clock import Clock
from agentsh.engine.journal import Journal
from agentsh.events.event import NewFact
from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta
from agentsh.events.turn import PartialMessage

SAVE_AFTER_S = 0.9
"""A streamed text is on disk this long after it was shown, so that kill -9 loses at most the last second."""
PARTIAL_CHARS = 5_000
"""A partial_message never outgrows its line: 5,000 characters of four bytes are 20,000 of the 25,000 bytes."""


class Shown:
    """Passes previews on once the request is durable, and records them about once a second."""

    def __init__(self, journal: Journal, built_seq: int, clock: Clock) -> None:
        self.built_seq = built_seq
        self._journal = journal
        self._clock = clock
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._saved = (0, 0)
        self._fresh = asyncio.Event()
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
        if isinstance(item, TextDelta):
            self._texts.append(item.text)
        elif isinstance(item, ReasoningDelta):
            self._reasonings.append(item.text)
        if not isinstance(item, Retrying):
            self._fresh.set()

    @contextlib.asynccontextmanager
    async def saving(self) -> AsyncIterator[None]:
        """Sync the request beside the model call, and record what is shown while the block runs."""
        self._synced = asyncio.create_task(self._journal.durable(self.built_seq))
        saver = asyncio.create_task(self._save())
        try:
            yield
        finally:
            saver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await saver
            if not self._synced.done():
                await asyncio.wait([self._synced])
            if not self._synced.cancelled():
                self._synced.exception()  # whoever needed the sync has seen it at the gate

    async def _save(self) -> None:
        while True:
            await self._fresh.wait()
            await self._clock.sleep(SAVE_AFTER_S)
            self._fresh.clear()
            await self._journal.record_all(self._unsaved())

    def _unsaved(self) -> list[NewFact]:
        texts, reasonings = self._saved
        self._saved = (len(self._texts), len(self._reasonings))
        facts = [
            NewFact(PartialMessage(text="", reasoning=piece), self.built_seq)
            for piece in _pieces("".join(self._reasonings[reasonings:]))
        ]
        facts += [
            NewFact(PartialMessage(text=piece), self.built_seq) for piece in _pieces("".join(self._texts[texts:]))
        ]
        return facts


def _pieces(text: str) -> list[str]:
    return [text[n : n + PARTIAL_CHARS] for n in range(0, len(text), PARTIAL_CHARS)]
