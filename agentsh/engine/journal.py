"""The only writer of a session. Its order is fixed: append, (sync,) fold, publish."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from agentsh.base.clock import Clock, timestamp
from agentsh.base.errors import LogWriteFailed
from agentsh.context.fold import apply
from agentsh.context.state import SessionState
from agentsh.engine.bus import Bus
from agentsh.engine.secrets import Secrets
from agentsh.events.base import Fact
from agentsh.events.codec import decode, encode
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import DiskNearlyFull, SavingStopped, Signal
from agentsh.log.record import Draft
from agentsh.log.store import OpenLog

LONG_CHARS = 100_000
Maker = Callable[[SessionState], Sequence[NewFact]]
_T = TypeVar("_T")


class Journal:
    """Facts in, events out. Nobody sees a fact before its append has returned.

    What is folded and published is the record as read back, so that a live session and its replay cannot differ.
    The order is held while a durable fact is synced: what is recorded meanwhile waits for a few milliseconds.
    written_bytes: of all lines so far. secrets: replaced in every fact before it is encoded.
    """

    def __init__(
        self, log: OpenLog, state: SessionState, bus: Bus, clock: Clock, secrets: Secrets | None = None
    ) -> None:
        self.state = state
        self.secrets = secrets or Secrets()
        self.written_bytes = 0
        self._log = log
        self._bus = bus
        self._clock = clock
        self._order = asyncio.Lock()
        self._held: list[Sequence[NewFact]] = []

    async def record(
        self, fact: Fact, *, cause: int | None = None, durable: bool = False, happened: bool = False
    ) -> Event:
        """Record one fact; see `record_all`."""
        return (await self.record_all([NewFact(fact, cause)], durable=durable, happened=happened))[0]

    async def record_all(
        self, facts: Sequence[NewFact], *, durable: bool = False, happened: bool = False
    ) -> list[Event]:
        """Record several facts with one append: all or none.

        Cancelling the caller does not cancel the record: it is written, folded and published all the same,
        and before anything that is recorded later.

        durable: they are synced before anybody sees them.
        happened: they tell of something that cannot be undone by not telling it (a tool ran, a reply was shown);
            where the log cannot be written they are held, and written before whatever comes next.

        Raises:
            LogWriteFailed: they were not written, or (with durable) could not be synced.
        """
        return await self.record_from(lambda state: facts, durable=durable, happened=happened)

    async def record_from(self, make: Maker, *, durable: bool = False, happened: bool = False) -> list[Event]:
        """Record what `make` says of the state in which nothing else is on its way into the log."""
        return await asyncio.shield(asyncio.ensure_future(self._write(make, durable, happened)))

    async def _write(self, make: Maker, durable: bool, happened: bool) -> list[Event]:
        async with self._order:
            facts: Sequence[NewFact] | None = None
            before = 0
            try:
                await self._write_held()
                facts, before = make(self.state), self._log.last_seq
                return await self._append(facts, durable)
            except LogWriteFailed as error:
                only_the_sync = facts is not None and self._log.last_seq > before
                if happened and not only_the_sync:
                    self._held.append(make(self.state) if facts is None else facts)
                self._bus.signal(SavingStopped(error.message))
                raise

    async def _write_held(self) -> None:
        while self._held:
            await self._append(self._held[0], durable=False)
            del self._held[0]

    async def _append(self, facts: Sequence[NewFact], durable: bool) -> list[Event]:
        if not facts:
            return []
        ts = timestamp(self._clock.now())
        first = self._log.last_seq + 1
        causes = [f.cause if f.within is None else first + f.within for f in facts]
        drafts = [encode(f.fact, ts=ts, cause=cause) for f, cause in zip(facts, causes, strict=True)]
        if any(_is_long(draft) for draft in drafts):  # some seconds for many megabytes: keys are to be read meanwhile
            drafts = await asyncio.to_thread(self._cleaned, drafts)
        else:
            drafts = self._cleaned(drafts)
        events = [decode(record) for record in await self._log.append(drafts, awaited=durable)]
        try:
            if durable:
                await self._log.wait_durable(events[-1].seq)
        finally:  # written is written, whatever the sync says: the state must not differ from the log
            for event in events:
                apply(self.state, event)
                self.written_bytes += len(event.raw)
                self._bus.publish(event)
        return events

    def _cleaned(self, drafts: list[Draft]) -> list[Draft]:
        return [draft._replace(payload=self.secrets.payload(draft.payload)) for draft in drafts]

    async def settled(self) -> None:
        """Return once every record that was asked for before is in log and state, those of cancelled callers too.

        Raises:
            LogWriteFailed: facts are held and still cannot be written.
        """
        async with self._order:
            await self._write_held()

    async def between(self, begin: Callable[[SessionState], Awaitable[_T]]) -> _T:
        """Call `begin` with a state in which nothing is on its way into the log; wait for what it returns after that.

        What is recorded meanwhile does not wait.
        """
        async with self._order:
            going_on = begin(self.state)
        return await going_on

    async def durable(self, seq: int) -> None:
        """Return once everything up to `seq` would survive a power cut."""
        await self._log.wait_durable(seq)

    async def nearly_full(self) -> str | None:
        """Return what is to be said where the disk is nearly full, and say it on the screen; else None."""
        free = await self._log.nearly_full()
        if free is None:
            return None
        room = f"{free / 1e6:,.0f} MB are" if free >= 2_000_000 else f"{free:,} bytes are"
        reason = f"the disk is nearly full, {room} free"
        self._bus.signal(DiskNearlyFull(reason))
        return reason

    def signal(self, signal: Signal) -> None:
        """Preview; never logged."""
        self._bus.signal(signal)


def _is_long(draft: Draft) -> bool:
    return any(isinstance(value, str) and len(value) > LONG_CHARS for value in draft.payload.values())
