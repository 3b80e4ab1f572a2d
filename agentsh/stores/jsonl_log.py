"""The open log of a session that lies in JSONL files: what one writer holds, and what it does on its threads."""

import threading
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from agentsh.base.errors import LogWriteFailed
from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, write_checkpoint
from agentsh.log.files import FileSystem
from agentsh.log.lease import Lease
from agentsh.log.record import Draft, Record
from agentsh.log.sealer import Sealer
from agentsh.log.skipped import skipped_damages
from agentsh.log.spill import as_it_is
from agentsh.log.store import BlobStore, Damage, Folded, Recovery
from agentsh.log.writer import Appender
from agentsh.stores.worker import BRIEF_S, Worker, outcome, told


class Parts(NamedTuple):
    """What an open log holds. records, recovery, folded: what was found when it was opened.

    blobs: the store that is to be told when nobody writes this log any more.
    """

    appender: Appender
    sealer: Sealer
    lease: Lease
    records: Sequence[Record] = ()
    recovery: Recovery = Recovery()
    folded: Folded | None = None
    blobs: BlobStore | None = None

    def close(self) -> None:
        """Give back what is held, the lease last."""
        try:
            self.sealer.stop()
            self.appender.close()
        finally:
            if self.blobs is not None:
                self.blobs.keep_room(-1)
            self.lease.release()

    def keep_house(self, segment_bytes: int) -> None:
        """Close the open segment where it is long, and have it sealed."""
        self.appender.roll(segment_bytes)
        self.sealer.wake(self.appender.ordinal)


class JsonlLog:
    """An open log, as `OpenLog` says: what blocks runs on its worker."""

    def __init__(
        self, place: tuple[FileSystem, str, str], parts: Parts, worker: Worker, segment_bytes: int, min_free: int
    ) -> None:
        self._files, self._directory, self.session = place
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free
        self._appender = parts.appender
        self._skipped = parts.folded is not None
        self._parts: Parts | None = parts._replace(records=(), folded=None)
        self._worker = worker
        self._house = Worker(f"{self.session} checkpoint")  # syncs files of its own; an append never waits for it
        self._reader = Worker(f"{self.session} verify")
        self._closing = threading.Event()

    @property
    def last_seq(self) -> int:
        """Seq of the last record."""
        return self._appender.last_seq

    @property
    def durable_seq(self) -> int:
        """Highest seq that is durable."""
        return self._appender.durable_seq

    async def append(self, drafts: Sequence[Draft], *, awaited: bool = False) -> list[Record]:
        """Append on the worker; the JSON is made here."""
        if self._parts is None:
            raise LogWriteFailed(f"the log of {self.session} is closed")
        # JSON is made of them here: it would keep the interpreter to itself on the worker as well.
        ready = [as_it_is(draft) for draft in drafts]
        return await self._worker.run(lambda: self._appender.append(drafts, ready, awaited=awaited), brief_s=BRIEF_S)

    async def wait_durable(self, seq: int) -> None:
        """Wait for the sync, without a thread that waits with us."""
        if seq > self._appender.durable_seq:
            await told(lambda tell: self._appender.when_durable(seq, tell))

    def checkpoint(self, state: bytes, *, reducer: str, keep: int) -> Awaitable[str | None]:
        """Note the last record at once, and save on a thread of its own."""
        place = self._worker.submit(self._appender.anchor)  # before whatever is appended next
        return self._checkpoint(place, reducer, state, keep)

    async def _checkpoint(self, place: "Future[Anchor | None]", reducer: str, state: bytes, keep: int) -> str | None:
        anchor = await outcome(place)
        if anchor is None or self._parts is None:
            return None
        checkpoint = Checkpoint(anchor, self.session, reducer, state)
        try:
            await self.wait_durable(anchor.seq)
            return await self._house.run(lambda: self._save(checkpoint, keep))
        except (OSError, LogWriteFailed):  # who waits for the sync of an event is told; a checkpoint nobody needs
            return None

    def _save(self, checkpoint: Checkpoint, keep: int) -> str:
        self._appender.settle()
        return write_checkpoint(self._files, self._directory, checkpoint, keep=keep)

    async def verify_skipped(self) -> Sequence[Damage]:
        """Read what a checkpoint spared, on a thread of its own."""
        if not self._skipped or self._parts is None:
            return ()
        try:
            return await self._reader.run(
                lambda: skipped_damages(self._files, self._directory, self.session, self._closing)
            )
        except OSError:  # `agentsh verify` says why it cannot be read
            return ()

    async def turn_ended(self) -> None:
        """Begin the housekeeping, and do not wait for it."""
        if self._parts is not None:
            parts, size = self._parts, self._segment_bytes
            self._worker.start(lambda: parts.keep_house(size))

    async def nearly_full(self) -> int | None:
        """Compare what is free with `min_free`."""
        if not self._min_free_bytes or self._parts is None:
            return None
        free = await self._worker.run(self._appender.free)
        return free if free is not None and free < self._min_free_bytes else None

    async def close(self) -> None:
        """Let all threads come to their end, the writer last."""
        if self._parts is not None:
            parts, self._parts = self._parts, None
            self._closing.set()
            try:
                for busy in (self._house, self._reader):  # they end before somebody else can get the lease
                    await busy.run(lambda: None)
                    busy.stop()
            finally:
                try:
                    await self._worker.run(parts.close)
                finally:
                    self._worker.stop()
