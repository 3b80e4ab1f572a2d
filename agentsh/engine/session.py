"""A session that is open for writing: submit, queue, interrupt, change its settings, close."""

import asyncio
from dataclasses import dataclass
from typing import Any

from agentsh.base.errors import UsageProblem
from agentsh.context.repairs import repairs
from agentsh.context.state import SessionState
from agentsh.engine.gate import Gate
from agentsh.engine.journal import Journal
from agentsh.engine.turn import Turn, TurnOutcome
from agentsh.events.event import NewFact
from agentsh.events.session import Mode, ModeChanged, ModelChanged, Renamed, Tagged
from agentsh.events.turn import Attachment, TextQueued, TextWithdrawn
from agentsh.log.store import OpenLog
from agentsh.ports.model import Model


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of; put together by the composition root."""

    log: OpenLog
    journal: Journal
    turn: Turn
    gate: Gate
    model: Model


class Session:
    """One session of this process. Use it as an async context manager, or close it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._journal = parts.journal
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    @property
    def state(self) -> SessionState:
        """The folded state; read only."""
        return self._journal.state

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return not self._idle.is_set()

    @property
    def unasked(self) -> int:
        """How many calls were denied because nobody could be asked."""
        return self._parts.gate.unasked

    async def submit(
        self, text: str, attachments: tuple[Attachment, ...] = (), *, cause: int | None = None
    ) -> TurnOutcome:
        """Run one turn to its end. Cancelling the caller interrupts the turn.

        Raises:
            UsageProblem: a turn is running; `queue` the text instead.
            LogError: the log cannot be written.
        """
        if self.busy:
            raise UsageProblem("a turn is running")
        self._idle.clear()
        try:
            await self._journal.settled()  # what was held while the disk was full is written first
            if self.state.turn is not None:
                await self._journal.record_all(repairs(self.state))
            return await self._parts.turn.run(text, attachments, cause)
        finally:
            self._idle.set()

    async def queue(self, text: str, *, steer: bool) -> int:
        """Keep a text that was typed while a turn runs; return its seq. steer: it joins at the next step."""
        return (await self._journal.record(TextQueued(text=text, steer=steer), durable=True)).seq

    async def withdraw(self, queued_seq: int) -> bool:
        """Take a queued text back; return False where it has joined a turn already."""

        def take_back(state: SessionState) -> list[NewFact]:
            return [NewFact(TextWithdrawn(queued=queued_seq), queued_seq)] if queued_seq in state.queue else []

        return bool(await self._journal.record_from(take_back))

    def interrupt(self) -> bool:
        """Stop the running turn; return whether there was one. `submit` returns once all is recorded."""
        if self.busy:
            self._parts.turn.interrupt()
        return self.busy

    async def set_mode(self, mode: Mode) -> None:
        """Change the approval mode."""
        if mode != self.state.mode:
            await self._journal.record(ModeChanged(mode=mode), durable=True)

    async def set_model(self, model: str, request: dict[str, Any] | None = None) -> None:
        """Change the model that the next request goes to. request: what is recorded of another wire or profile."""
        if model == self.state.model and request is None:
            return
        changed = ModelChanged(model=model) if request is None else ModelChanged(model=model, request=request)
        await self._journal.record(changed, durable=True)

    async def rename(self, title: str) -> None:
        """Give the session a title."""
        await self._journal.record(Renamed(title=title, by="user"), durable=True)

    async def tag(self, tags: tuple[str, ...]) -> None:
        """Set the whole set of tags."""
        if tags != self.state.tags:
            await self._journal.record(Tagged(tags=tags), durable=True)

    async def close(self) -> None:
        """Interrupt what runs, sync, and give the lease back. Idempotent."""
        self.interrupt()
        await self._idle.wait()
        try:
            await self._journal.settled()
            await self._parts.model.close()
        finally:
            await self._parts.log.close()
