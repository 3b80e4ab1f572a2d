"""Opens a log for writing: newest checkpoint that holds, the lines behind it, the end put in order.

A checkpoint only saves time. Where the lines behind it leave a question that what stands before them may answer
(anything but a torn end), the whole log is read as if there were none.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from agentsh.base.errors import LogTooNew, SessionReadOnly
from agentsh.log.beyond import missing_end, seq_beyond
from agentsh.log.chain import Anchor, LogScan
from agentsh.log.checkpoint import checkpoint_seqs, newest_valid
from agentsh.log.files import FileSystem
from agentsh.log.record import Record
from agentsh.log.recover import OpenSegment, recover
from agentsh.log.scan import Entry, to_record
from agentsh.log.store import Folded, Recovery

KEPT_BYTES = 32 << 20
"""Of lines that are kept from opening to their first use; those of a longer log are read again, to spare memory."""

_NEWER_HINT = "update agentsh to continue it; `agentsh replay` may still show it"


class OpenedLog(NamedTuple):
    """A log that is ready to be appended to. records: those behind `folded`, or all. anchor: where that ends.

    last_seq: of the last record that there is or was, behind which to go on; see `agentsh.log.beyond`.
    unsynced: the last records (seq, line), of which no line says that they are durable.
    """

    segment: OpenSegment
    recovery: Recovery
    records: Sequence[Record]
    folded: Folded | None
    anchor: Anchor | None
    last_seq: int
    durable_seq: int
    unsynced: Sequence[tuple[int, bytes]]


class Lines(Sequence[Record]):
    """Checked lines as records, each decoded when it is asked for: an old log costs what is looked at."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Record]:
        return map(to_record, self._lines)

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> "Lines": ...
    def __getitem__(self, at: int | slice) -> "Record | Lines":
        return Lines(self._lines[at]) if isinstance(at, slice) else to_record(self._lines[at])


class Reread(Sequence[Record]):
    """So many lines that they are read from the disk again whenever they are gone through."""

    def __init__(self, log: tuple[FileSystem, str, str], anchor: Anchor | None, last_seq: int, count: int) -> None:
        self._log = log
        self._anchor = anchor
        self._last_seq = last_seq
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        scan = LogScan(*self._log)
        try:
            for seq, text, _, _ in _entries(scan, self._anchor):
                if seq > self._last_seq:
                    return
                yield to_record(text + b"\n")
        finally:
            scan.close()

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        return list(self)[at]


def open_log(
    files: FileSystem, directory: str, session: str, *, by: str, reducer: str | None, durable: bool
) -> OpenedLog:
    """Read and repair a log whose lease the caller holds. reducer: None takes no checkpoint.

    durable: lines whose durability nothing says are made so; else nobody promises it.

    Raises:
        LogTooNew: it is in a format that we cannot write.
        SessionReadOnly: two programs have written it at once.
        OSError: the disk refused; nothing is lost, and another try goes on from there.
    """
    scan = LogScan(files, directory, session)
    try:
        if scan.newer:
            raise LogTooNew(f"session {session} is in the newer format {scan.newer[:40]}", hint=_NEWER_HINT)
        found = newest_valid(files, directory, session, scan.segments, reducer=reducer) if reducer else None
        anchor = found.anchor if found is not None else None
        read = _Tail(scan, anchor)
        if found is not None and not _answers_all(scan):
            scan.close()
            scan = LogScan(files, directory, session)
            found = anchor = None
            read = _Tail(scan, None)
        if scan.conflict:
            raise SessionReadOnly(
                f"two programs have written session {session} at once; both are kept",
                hint=f"agentsh repair {session}",
            )
        unsynced = read.behind(scan.durable_seq) if durable else []
        beyond = seq_beyond(files, directory, session, scan.last_seq, checkpoint_seqs(files, directory))
        segment, recovery = recover(files, directory, session, scan, by, unsynced)
        if beyond:
            lost = missing_end(segment.ordinal, segment.size, scan.last_seq)
            recovery = recovery._replace(damages=(*recovery.damages, lost))
    finally:
        scan.close()
    records: Sequence[Record] = (
        Lines(list(read.lines)) if read.whole
        else Reread((files, directory, session), anchor, scan.last_seq, read.count)
    )  # fmt: skip
    folded = Folded(found.anchor.seq, found.state) if found is not None else None
    last, durable_seq = max(scan.last_seq, beyond), max(scan.durable_seq, beyond)
    return OpenedLog(segment, recovery, records, folded, anchor, last, durable_seq, unsynced)


def _answers_all(scan: LogScan) -> bool:
    """Tell whether what was read from an anchor on is judged without what stands before it."""
    return not scan.conflict and all(damage.harmless for damage in scan.damages)


def _entries(scan: LogScan, anchor: Anchor | None) -> Iterator[Entry]:
    """Yield the lines behind an anchor, or all."""
    if anchor is None:
        yield from scan.entries()
    else:
        yield from (entry for entry in scan.entries_from(anchor) if entry[0] > anchor.seq)


class _Tail:
    """The lines that opening reads: all of them, or the last KEPT_BYTES where they are more. count: of all."""

    def __init__(self, scan: LogScan, anchor: Anchor | None) -> None:
        self.seqs = array("q")
        self.lines: deque[bytes] = deque()
        self.whole = True
        self.count = size = 0
        for entry in _entries(scan, anchor):
            self.seqs.append(entry[0])
            self.lines.append(entry[1] + b"\n")
            self.count += 1
            size += len(entry[1]) + 1
            while size > KEPT_BYTES:
                self.whole = False
                size -= len(self.lines.popleft())

    def behind(self, seq: int) -> list[tuple[int, bytes]]:
        """Return the lines behind a seq; no more than were kept, which is far more than a writer leaves unsynced."""
        first = len(self.seqs)
        while first > len(self.seqs) - len(self.lines) and self.seqs[first - 1] > seq:
            first -= 1
        count = len(self.seqs) - first
        return list(zip(self.seqs[first:], list(self.lines)[len(self.lines) - count :], strict=True))
