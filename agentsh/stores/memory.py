"""Logs and blobs in memory: for tests and for sessions that nobody wants to keep."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence

from agentsh.base.errors import BlobMissing, LogWriteFailed, SessionExists, SessionHeld, SessionMissing
from agentsh.log.frame import decode_event, encode_event, encode_header
from agentsh.log.record import Draft, Record
from agentsh.log.spill import spill
from agentsh.log.store import BlobStore, Capabilities, Damage, Holder, Opened, OpenLog, Recovery


class MemoryBlobs:
    """A dictionary of bytes by their hash."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}

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


class _MemoryLog:
    def __init__(self, session: str, salt: int, records: list[Record], blobs: BlobStore, held: set[str]) -> None:
        self.session = session
        self.records = records
        self._salt = salt
        self._blobs = blobs
        self._held = held

    @property
    def last_seq(self) -> int:
        return self.records[-1].seq if self.records else 0

    @property
    def durable_seq(self) -> int:
        return self.last_seq

    async def append(self, drafts: Sequence[Draft]) -> list[Record]:
        await asyncio.sleep(0)  # as any other store would, so that tests see what can come between
        if self.session not in self._held:
            raise LogWriteFailed(f"session {self.session} is closed")
        durable, lines = self.durable_seq, []
        for seq, draft in enumerate(drafts, self.last_seq + 1):
            fitted = spill(draft, self._blobs)
            line = encode_event(fitted, seq=seq, dur=durable, salt=self._salt)
            lines.append(decode_event(line, self._salt))
        self.records.extend(lines)
        return lines

    async def wait_durable(self, seq: int) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        self._held.discard(self.session)


class MemoryStore:
    """Sessions of one process. Nothing is durable; the rest of the contract holds."""

    capabilities = Capabilities(durable=False, multi_host=False)

    def __init__(self, blobs: BlobStore | None = None) -> None:
        self.blobs: BlobStore = blobs or MemoryBlobs()
        self._logs: dict[str, _MemoryLog] = {}
        self._held: set[str] = set()

    async def create(self, session: str, *, by: str) -> OpenLog:
        """Create an empty log and hold its lease."""
        if session in self._logs:
            raise SessionExists(f"session {session} is there already")
        header = encode_header(
            session, ordinal=0, first_seq=1, nonce=secrets.token_hex(8), created="1970-01-01T00:00:00.000000Z", by=by
        )
        log = _MemoryLog(session, header.salt, [], self.blobs, self._held)
        self._logs[session] = log
        self._held.add(session)
        return log

    async def open(self, session: str) -> Opened:
        """Take the lease and hand out the records."""
        log = self._log(session)
        if session in self._held:
            raise SessionHeld(f"session {session} is in use", holder=str(self.holder(session)))
        self._held.add(session)
        return Opened(log, tuple(log.records), Recovery())

    def read(self, session: str, *, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records beyond `after_seq`."""
        return (r for r in tuple(self._log(session).records) if r.seq > after_seq)

    def damages(self, session: str) -> Sequence[Damage]:
        """Memory does not rot."""
        self._log(session)
        return ()

    def sessions(self) -> list[str]:
        """Return the ids of all sessions."""
        return list(self._logs)

    def holder(self, session: str) -> Holder | None:
        """Return this process, where the session is open."""
        held = session in self._held
        return Holder(os.getpid(), "localhost", None, "1970-01-01T00:00:00.000000Z") if held else None

    def _log(self, session: str) -> _MemoryLog:
        try:
            return self._logs[session]
        except KeyError:
            raise SessionMissing(f"no session {session}") from None
