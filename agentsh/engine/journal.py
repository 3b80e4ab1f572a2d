"""The only writer of a session. Its order is fixed: append, (sync,) fold, publish."""

import asyncio
from collections.abc import Sequence

from agentsh.base.clock import Clock, timestamp
from agentsh.context.fold import apply
from agentsh.context.state import SessionState
from agentsh.engine.bus import Bus
from agentsh.events.base import Fact
from agentsh.events.codec import decode, encode
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import Signal
from agentsh.log.store import OpenLog


class Journal:
    """Facts in, events out. Nobody sees a fact before its append has returned.

    What is folded and published is the record as read back, so that a live session and its replay cannot differ.
    """

    def __init__(self, log: OpenLog, state: SessionState, bus: Bus, clock: Clock) -> None:
        self.state = state
        self._log = log
        self._bus = bus
        self._clock = clock
        self._order = asyncio.Lock()

    async def record(self, fact: Fact, *, cause: int | None = None, durable: bool = False) -> Event:
        """Record one fact. durable: it is synced before anybody sees it.

        Cancelling the caller does not cancel the record: it is written, folded and published all the same,
        and before anything that is recorded later.

        Raises:
            LogWriteFailed: it was not written, or (with durable) could not be synced.
        """
        return (await self.record_all([NewFact(fact, cause)], durable=durable))[0]

    async def record_all(self, facts: Sequence[NewFact], *, durable: bool = False) -> list[Event]:
        """Record several facts with one append: all or none."""
        if not facts:
            return []
        return await asyncio.shield(asyncio.ensure_future(self._write(facts, durable)))

    async def _write(self, facts: Sequence[NewFact], durable: bool) -> list[Event]:
        async with self._order:
            ts = timestamp(self._clock.now())
            first = self._log.last_seq + 1
            causes = [f.cause if f.within is None else first + f.within for f in facts]
            drafts = [encode(f.fact, ts=ts, cause=cause) for f, cause in zip(facts, causes, strict=True)]
            records = await self._log.append(drafts)
            events = [decode(record) for record in records]
            try:
                if durable:
                    await self._log.wait_durable(events[-1].seq)
            finally:  # written is written, whatever the sync says: the state must not differ from the log
                for event in events:
                    apply(self.state, event)
                    self._bus.publish(event)
            return events

    async def settled(self) -> None:
        """Return once every record that was asked for before is in log and state, those of cancelled callers too."""
        async with self._order:
            pass

    async def durable(self, seq: int) -> None:
        """Return once everything up to `seq` would survive a power cut."""
        await self._log.wait_durable(seq)

    def signal(self, signal: Signal) -> None:
        """Preview; never logged."""
        self._bus.signal(signal)
