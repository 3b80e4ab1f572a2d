"""The storage contract: what every place that keeps logs and blobs promises. Stores never see an event type."""

import re
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from agentsh.log.record import Draft, Record


class Capabilities(NamedTuple):
    """What a backend can have at all.

    durable: `wait_durable` means that a power cut loses nothing before it.
    multi_host: processes on several machines may share it.
    """

    durable: bool
    multi_host: bool


HARMLESS = frozenset({"bom", "blank", "crlf", "doubled", "newline", "scratch"})
"""Kinds of damage that cost no record: read all the same, and told only by `verify`."""
HEADER_BYTES = 1000
"""More than a header takes: where that much is there and nothing reads, something was lost."""


class Damage(NamedTuple):
    """A place in a log that does not read.

    where: `ORDINAL:OFFSET`, the segment and the byte in it. kind: `crc`, `gap`, `doubled`, …: docs/log-format.md.
    after_seq: the last good seq before it. rot: what stood there had been synced; else it may be an unsynced
    write that a power cut took.
    """

    where: str
    kind: str
    bytes: int
    after_seq: int
    rot: bool = False

    @property
    def harmless(self) -> bool:
        """Tell whether every record reads in spite of it."""
        return self.kind in HARMLESS


class Recovery(NamedTuple):
    """What opening found and did to the bytes; nothing of it was lost, the rest lies in quarantine.

    quarantined: names of the files below the session's `quarantine/`. unfinished: what was cut was one line that
    was just being written.
    """

    cut_bytes: int = 0
    newline_added: bool = False
    quarantined: tuple[str, ...] = ()
    damages: tuple[Damage, ...] = ()
    unfinished: bool = False

    def lost_after(self, last_seq: int) -> int:
        """Return the seq up to which something is missing behind it: what it caused may be missing too.

        0 where nothing is missing. A line that was being written when the process died is not missing: what it
        would have told had not been acknowledged yet.
        """
        behind = [d.after_seq for d in self.damages if not d.harmless]
        if self.cut_bytes and not self.unfinished:
            behind.append(last_seq)
        return max(behind, default=0)

    def __bool__(self) -> bool:
        return bool(self.cut_bytes or self.newline_added or self.quarantined or self.damages)


_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


class Holder(NamedTuple):
    """Who has the lease of a session, for people; never used to decide anything. pid: 0 where it is not known."""

    pid: int
    host: str
    tty: str | None
    since: str

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        place = f" on {self.tty}" if self.tty else ""
        return f"pid {self.pid} at {self.host}{place}, since {_to_the_second(self.since)}"


def _to_the_second(stamp: str) -> str:
    """Return a timestamp for people; what is none, as it is."""
    whole = _STAMP.fullmatch(stamp)
    return f"{whole[1]} {whole[2]} UTC" if whole else stamp


class OpenLog(Protocol):
    """One session, open for appending by its one writer. Safe to share between tasks of one event loop."""

    @property
    def session(self) -> str:
        """The session's id."""
        ...

    @property
    def last_seq(self) -> int:
        """Seq of the last record; 0 in an empty log."""
        ...

    @property
    def durable_seq(self) -> int:
        """Highest seq known to survive a power cut, as far as `capabilities.durable` promises."""
        ...

    async def append(self, drafts: Sequence[Draft], *, awaited: bool = False) -> list[Record]:
        """Append all or none and return the records as any reader would now read them.

        On return they survive the death of this process; `wait_durable` is for power cuts. awaited: the caller is
        about to wait for that, so that the sync may begin at once; whether it failed is told by `wait_durable`.
        Strings that would make a line longer than 25,000 bytes come back as blob references.
        Not to be cancelled half-way: the caller shields it.

        Raises:
            LogWriteFailed: nothing was appended and the log is as before.
            ValueError, TypeError: likewise, because a payload holds what JSON has no form for (NaN).
            SessionHeld: another writer got in; nothing was appended, and no later append will be.
        """
        ...

    async def wait_durable(self, seq: int) -> None:
        """Return once every record up to `seq` is durable. Cancelling the wait does not cancel the sync.

        Raises:
            LogWriteFailed: the sync failed.
        """
        ...

    def checkpoint(self, state: bytes, *, reducer: str, keep: int) -> Awaitable[str | None]:
        """Save what all records up to now were folded to, so that the next `open` need not read them.

        Called while no append is under way: which record is the last is noted before this returns. What it returns
        is awaited for the rest: all up to there is made durable, the state is written, those beyond the `keep`
        newest go. Returns its name, or None where it was not to be; nobody loses anything by that.
        """
        ...

    async def verify_skipped(self) -> Sequence[Damage]:
        """Read at leisure what a checkpoint spared `open`, and return the places that do not read.

        Ends early, with nothing, where the log is closed meanwhile; what was read is remembered for the next time.
        """
        ...

    async def turn_ended(self) -> None:
        """Take note of a good moment for housekeeping, such as closing and sealing a segment. Returns at once.

        What is begun goes on in the background, is told to nobody, and is taken up again where it was interrupted.
        """
        ...

    async def nearly_full(self) -> int | None:
        """Return how many bytes are left where that is less than it should be, else None: then nothing that could
        fill the place is to be started, so that what is under way can still be recorded."""
        ...

    async def close(self) -> None:
        """Sync, and give the lease back. Idempotent."""
        ...


class Folded(NamedTuple):
    """A state that somebody saved: everything up to `upto_seq`, as bytes that only its reducer understands."""

    upto_seq: int
    state: bytes


class Opened(NamedTuple):
    """What `EventStore.open` returns: the log, the records that read, and what was repaired.

    folded: what stands for all records up to its seq; `records` are those behind it. None: they are all there are.
    records: read anew at each use where there are many; to be used before anything is appended.
    """

    log: OpenLog
    records: Sequence[Record]
    recovery: Recovery
    folded: Folded | None = None


class EventStore(Protocol):
    """Ordered, append-only records per session, one writer each."""

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can promise."""
        ...

    async def create(self, session: str, *, by: str) -> OpenLog:
        """Create an empty log, durably, and hold its lease. by: program and version, for the header.

        Raises:
            SessionExists: the id is taken.
            LogWriteFailed: the place cannot be written.
        """
        ...

    async def open(self, session: str, *, reducer: str | None = None) -> Opened:
        """Take the lease, recover the tail, and read the log: from the newest checkpoint on that the log confirms.

        reducer: what folds today; checkpoints of another are passed over. None takes no checkpoint.

        Raises:
            SessionMissing: no such session; nothing was created.
            SessionHeld: somebody else has the lease.
            SessionReadOnly, LogTooNew: it can be read but not continued.
        """
        ...

    async def fork(self, parent: str, child: str, *, upto_seq: int | None = None, by: str) -> OpenLog:
        """Create a log that has the parent's records up to `upto_seq` (None: all so far), and hold its lease.

        By reference, where the store can: what the parent has is not copied. Later records of the one are never the
        other's, and deleting or repairing one never harms the other. The parent may be open for writing.

        Raises:
            SessionMissing: there is no such parent.
            SessionExists: the child's id is taken.
            UsageProblem: the parent has no such event.
            LogWriteFailed: the place cannot be written.
        """
        ...

    def read(self, session: str, *, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records beyond `after_seq` in order, without a lease and without changing a byte.

        Blocks: call it off the event loop. Damaged places are skipped; `damages` names them.

        Raises:
            SessionMissing: no such session.
            SessionReadOnly: the place cannot be read at all.
        """
        ...

    def newest(self, session: str) -> Iterator[Record]:
        """Yield the records from the last one back, as far as they read. Blocks, takes no lease, changes no byte.

        Raises:
            SessionMissing: no such session.
            SessionReadOnly: the place cannot be read at all.
        """
        ...

    def damages(self, session: str) -> Sequence[Damage]:
        """Return the places that do not read. Blocks.

        Raises:
            SessionMissing: no such session.
        """
        ...

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, unordered. Blocks. A damaged session is listed too."""
        ...

    def holder(self, session: str) -> Holder | None:
        """Return who has the lease right now, or None. Blocks; never takes the lease."""
        ...


class BlobStore(Protocol):
    """Content-addressed bytes. Blocks: call it off the event loop. A ref is `sha256:` and 64 hex digits."""

    def writing(self) -> AbstractContextManager[None]:
        """Keep `gc` out from the first `put` inside to the event that names the blob."""
        ...

    def keep_room(self, more: int) -> None:
        """Take note of a log that is being written (1), or not any more (-1): for its last records there is to be
        room for a blob or two even where the place is full, if that can be. Raises nothing."""
        ...

    def put(self, data: bytes) -> str:
        """Keep `data` durably and return its ref. Idempotent.

        Raises:
            LogWriteFailed: the place cannot be written.
        """
        ...

    def get(self, ref: str) -> bytes:
        """Return the bytes of `ref`, checked against it.

        Raises:
            BlobMissing: not there, or damaged.
        """
        ...
