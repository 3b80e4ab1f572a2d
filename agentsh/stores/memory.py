"""Logs and blobs in memory: for tests and for sessions that nobody wants to keep."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from agentsh.base.errors import BlobMissing, LogWriteFailed, SessionExists, SessionHeld, SessionMissing, UsageProblem
from agentsh.base.ids import random_hex
from agentsh.log.frame import decode_event, encode_event, encode_header
from agentsh.log.record import Draft, Record
from agentsh.log.spill import spill
from agentsh.log.store import BlobStore, Capabilities, Damage, Folded, Holder, Opened, OpenLog, Recovery


class MemoryBlobs:
    """A dictionary of bytes by their hash."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}

    def keep_room(self, more: int) -> None:
        """There is always some."""

    def writing(self) -> AbstractContextManager[None]:
        """Nobody collects garbage here."""
        return nullcontext()

    def put(self, data: bytes) -> str:
        """Keep `data` and return its ref."""
        ref = "sha256:" + hashlib.sha256(data).hexdigest()
        self._bytes[ref] = bytes(data)
        return ref

    def get(self, ref: str) -> bytes:
        """Return the bytes of `ref`."""
        try:
            return self._bytes[ref]
        except KeyError:
            raise BlobMissing(f"no blob {ref}") from None


class _Kept:
    """What a session has, whoever has it open. lease: the one handle that may append, or None.

    folded: the checkpoints, oldest first, each with its reducer.
    """

    def __init__(self, salt: int) -> None:
        self.salt = salt
        self.records: list[Record] = []
        self.lease: _MemoryLog | None = None
        self.folded: list[tuple[str, Folded]] = []


class _MemoryLog:
    def __init__(self, session: str, kept: _Kept, blobs: BlobStore) -> None:
        self.session = session
        self._kept = kept
        self._blobs = blobs
        kept.lease = self

    @property
    def last_seq(self) -> int:
        return self._kept.records[-1].seq if self._kept.records else 0

    @property
    def durable_seq(self) -> int:
        return self.last_seq

    async def append(self, drafts: Sequence[Draft], *, awaited: bool = False) -> list[Record]:
        await asyncio.sleep(0)  # as any other store would, so that tests see what can come between
        if self._kept.lease is not self:
            raise LogWriteFailed(f"the log of {self.session} is closed")
        durable, records = self.durable_seq, []
        for seq, draft in enumerate(drafts, self.last_seq + 1):
            fitted = spill(draft, self._blobs)
            line = encode_event(fitted, seq=seq, dur=durable, salt=self._kept.salt)
            records.append(decode_event(line, self._kept.salt))
        self._kept.records.extend(records)
        return records

    async def wait_durable(self, seq: int) -> None:
        await asyncio.sleep(0)

    def checkpoint(self, state: bytes, *, reducer: str, keep: int) -> Awaitable[str | None]:
        return self._checkpoint(reducer, Folded(self.last_seq, state), keep)

    async def _checkpoint(self, reducer: str, folded: Folded, keep: int) -> str | None:
        await asyncio.sleep(0)
        if self._kept.lease is not self or not folded.upto_seq:
            return None
        self._kept.folded = [*self._kept.folded, (reducer, folded)][-keep:]
        return f"{folded.upto_seq:012}"

    async def verify_skipped(self) -> Sequence[Damage]:
        return ()

    async def turn_ended(self) -> None:
        return

    async def nearly_full(self) -> int | None:
        return None

    async def close(self) -> None:
        if self._kept.lease is self:
            self._kept.lease = None


class MemoryStore:
    """Sessions of one process. Nothing is durable; the rest of the contract holds."""

    capabilities = Capabilities(durable=False, multi_host=False)

    def __init__(self, blobs: BlobStore | None = None) -> None:
        self.blobs: BlobStore = blobs or MemoryBlobs()
        self._logs: dict[str, _Kept] = {}

    def crashed(self, session: str, keep: int | None = None) -> "MemoryStore":
        """Return a store as a crash would have left it: the first `keep` records of one session, and no lease."""
        store, kept = MemoryStore(self.blobs), self._log(session)
        store._logs[session] = _Kept(kept.salt)
        store._logs[session].records = kept.records[:keep]
        store._logs[session].folded = list(kept.folded)
        return store

    async def create(self, session: str, *, by: str) -> OpenLog:
        """Create an empty log and hold its lease."""
        if session in self._logs:
            raise SessionExists(f"session {session} is there already")
        header = encode_header(
            session, ordinal=0, first_seq=1, nonce=random_hex(8), created="1970-01-01T00:00:00.000000Z", by=by
        )
        kept = self._logs[session] = _Kept(header.salt)
        return _MemoryLog(session, kept, self.blobs)

    async def open(self, session: str, *, reducer: str | None = None) -> Opened:
        """Take the lease and hand out the records behind the newest checkpoint that fits."""
        kept = self._log(session)
        if kept.lease is not None:
            raise SessionHeld(f"session {session} is in use", holder=str(self.holder(session)))
        last = kept.records[-1].seq if kept.records else 0
        fitting = [f for name, f in kept.folded if name == reducer and f.upto_seq <= last]
        folded = fitting[-1] if fitting else None
        records = tuple(r for r in kept.records if folded is None or r.seq > folded.upto_seq)
        return Opened(_MemoryLog(session, kept, self.blobs), records, Recovery(), folded)

    async def fork(self, parent: str, child: str, *, upto_seq: int | None = None, by: str) -> OpenLog:
        """Create a log that begins with the parent's records."""
        kept = self._log(parent)
        last = kept.records[-1].seq if kept.records else 0
        upto = last if upto_seq is None else upto_seq
        if child in self._logs:
            raise SessionExists(f"session {child} is there already")
        if not 1 <= upto <= last:
            raise UsageProblem(f"session {parent} has no event {upto}", hint=f"the last one is {last}")
        log = await self.create(child, by=by)
        self._logs[child].records = [record for record in kept.records if record.seq <= upto]
        return log

    def read(self, session: str, *, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records beyond `after_seq`."""
        return (r for r in tuple(self._log(session).records) if r.seq > after_seq)

    def newest(self, session: str) -> Iterator[Record]:
        """Yield the records from the last one back."""
        return iter(self._log(session).records[::-1])

    def damages(self, session: str) -> Sequence[Damage]:
        """Memory does not rot."""
        self._log(session)
        return ()

    def sessions(self) -> list[str]:
        """Return the ids of all sessions."""
        return list(self._logs)

    def holder(self, session: str) -> Holder | None:
        """Return this process, where the session is open."""
        kept = self._logs.get(session)
        if kept is None or kept.lease is None:
            return None
        return Holder(os.getpid(), "localhost", None, "1970-01-01T00:00:00.000000Z")

    def _log(self, session: str) -> _Kept:
        try:
            return self._logs[session]
        except KeyError:
            raise SessionMissing(f"no session {session}") from None
