"""Keeping on disk what is on the screen: text that grows is recorded about once a second while it does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from agentsh.base.clock import Clock
from agentsh.base.errors import AgentshError
from agentsh.engine.journal import Journal
from agentsh.events.event import NewFact

SAVE_AFTER_S = 0.9
"""What was shown is on disk this long after, so that kill -9 loses at most the last second."""
PIECE_CHARS = 4_000
"""A piece never outgrows its line: 4,000 characters that all need `\\uXXXX` are 24,000 of the 25,000 bytes."""


class Saver:
    """Records text in pieces. fact: makes the fact of a piece."""

    def __init__(self, journal: Journal, clock: Clock, fact: Callable[[str], NewFact]) -> None:
        self._journal = journal
        self._clock = clock
        self._fact = fact
        self._unsaved: list[str] = []
        self._fresh = asyncio.Event()

    def add(self, text: str) -> None:
        """Take new text."""
        self._unsaved.append(text)
        self._fresh.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Save while the block runs. What is left at its end is not saved: the whole is about to be recorded."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])  # unlike awaiting the task, this cannot swallow our own cancellation
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def _run(self) -> None:
        while True:
            await self._fresh.wait()
            await self._clock.sleep(SAVE_AFTER_S)
            self._fresh.clear()
            text = "".join(self._unsaved)
            taken = len(self._unsaved)
            try:
                await self._journal.record_all([self._fact(piece) for piece in pieces(text)])
            except AgentshError:  # told by the journal's signal; the text stays for the next try
                self._fresh.set()
                continue
            del self._unsaved[:taken]


def pieces(text: str) -> Sequence[str]:
    """Return `text` in pieces of at most PIECE_CHARS characters."""
    return [text[n : n + PIECE_CHARS] for n in range(0, len(text), PIECE_CHARS)]
