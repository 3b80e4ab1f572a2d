"""Learns from the provider how much its model takes: in the background, once in a process, never waited for."""

import asyncio
import contextlib

from agentsh.base.errors import AgentshError
from agentsh.base.typed import some
from agentsh.engine.journal import Journal
from agentsh.events.model import WindowLearned
from agentsh.ports.model import Model
from agentsh.ports.window import TellsWindows

ASK_AT_TOKENS = 3_000
"""A request below that fits every model; asking can wait until it matters. Ollama's smallest window is 4,096."""


class Scout:
    """Asks for the window of a model, and records what it learns where that is new."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._asked: set[tuple[int, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, model: Model, tokens: int) -> None:
        """Begin to ask, after a reply to a request of so many tokens; returns at once."""
        name = self._journal.state.model
        if tokens < ASK_AT_TOKENS or (id(model), name) in self._asked or not isinstance(model, TellsWindows):
            return
        self._asked.add((id(model), name))
        task = asyncio.create_task(self._ask(model, name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is under way. Idempotent."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, model: TellsWindows, name: str) -> None:
        window = await model.window(name)
        known = self._journal.state.windows.get(name)
        if window is None or self._journal.state.model != name:
            return
        if known is not None and (known.window, known.max_reply) == (window.tokens, window.max_reply):
            return
        said = some(max_reply=window.max_reply, max_request=window.max_request)
        fact = WindowLearned(model=name, window=window.tokens, source=window.source, **said)
        with contextlib.suppress(AgentshError):  # a log that cannot be written is told by what matters more
            await self._journal.record(fact)
