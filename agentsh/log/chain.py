"""Puts the segments of one log together: records in the order of their seq, and a verdict about every damage."""

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from agentsh.log.files import READ, FileSystem
from agentsh.log.frame import CRC_TAIL
from agentsh.log.head import HEAD_BYTES, read_head
from agentsh.log.scan import Entry, Flaw, Head, SegmentScan, durable_in, last_seq_in
from agentsh.log.sealed import SHORTEST_RECORD, SealedFile
from agentsh.log.segment import OPEN_NAME, Closed, chunks, closed_segments
from agentsh.log.store import Damage

_NOTHING_LOST = frozenset({"conflict", "late", "session", "foreign"})
REORDER_WINDOW = 64
"""Lines that are held back at a gap, in case the missing ones come late."""
LISTING_TRIES = 10
"""A writer may close or seal a segment between our listing and our opening."""
END_BYTES = 64 << 10
"""Last bytes of a closed segment that are searched for its last record; two of the longest lines."""


class Segment(NamedTuple):
    """One file of a log. ordinal: from its name, for the open one from its header, else one more than the last.

    limit: bytes that belong to this log, or None for all (a parent goes on behind a fork).
    cap: records from this seq on are superseded by a later segment, or None.
    supersedes: seq from which this one stands for all that came before it, or None.
    sealed: how to read it where it is sealed, else None.
    """

    name: str
    fd: int
    inode: int
    ordinal: int
    head: Head
    limit: int | None
    cap: int | None
    inherited: bool
    supersedes: int | None
    sealed: SealedFile | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether this is the segment that is written."""
        return self.name == OPEN_NAME

    def place(self, offset: int) -> str:
        """Return `ORDINAL:OFFSET`, which stays the same when the segment is closed."""
        return f"{self.ordinal:06}:{offset}"


class Anchor(NamedTuple):
    """A line of the log. offset: where it *begins* in the content of its segment. crc: its eight hex digits."""

    seq: int
    ordinal: int
    offset: int
    crc: str


def scans(files: FileSystem, segment: Segment) -> Iterator[SegmentScan]:
    """Yield a scan for each part of a segment that can be read: one of a plain one, one for each frame of a sealed.

    Raises:
        OSError: it cannot be read.
    """
    if segment.sealed is None:
        yield SegmentScan(segment.head, chunks(files, segment.fd, segment.head.start, segment.limit))
        return
    for run in segment.sealed.runs(segment.head, segment.limit, 0):
        if not isinstance(run, Flaw):
            yield run.scan


def content_bytes(files: FileSystem, segment: Segment) -> int:
    """Return how many bytes of content a segment has for this log, unpacked where it is sealed.

    Raises:
        OSError: it cannot be read.
    """
    size = files.fstat(segment.fd).size if segment.sealed is None else segment.sealed.content_bytes
    return size if segment.limit is None else min(size, segment.limit)


class LogScan:
    """One pass over a log. The attributes below hold once `entries` has ended; call `close` at last.

    conflict: two different lines claim one seq. newer: a format that is not ours, or None.
    last: the scan of the open segment, or None where there is none. end: where that ends to read, or the next
    segment begins, as ordinal and offset.
    """

    def __init__(self, files: FileSystem, directory: str, session: str) -> None:
        self.damages: list[Damage] = []
        self.last_seq = 0
        self.durable_seq = 0
        self.conflict = False
        self.last: SegmentScan | None = None
        self.end = (0, 0)
        self._files = files
        self.session = session
        self._seen = _Seen()
        self._held: dict[int, tuple[Entry, int, str, int]] = {}  # the last: `_lost_lines` before it
        self._lost_lines = self._lost_told = 0  # in bad bytes, at most; those that explain a gap, or did not have to
        self.segments = _open_segments(files, directory)
        self.newer = next((s.head.newer for s in self.segments if s.head.newer), None)

    @property
    def open_segment(self) -> Segment | None:
        """The segment that is written, or None where it is missing."""
        return self.segments[-1] if self.segments and self.segments[-1].is_open else None

    def close(self) -> None:
        """Give the descriptors back. Idempotent."""
        while self.segments:
            self._files.close(self.segments.pop().fd)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Yield every record that reads, once, by seq.

        after_seq: records up to here are of no interest. Closed segments that hold no others are not read, and of
        sealed ones only the frames that do; nothing is said then about damage in what was passed over.
        """
        segments = tuple(self.segments)
        for segment in segments[self._pass_over(segments, after_seq) :]:
            yield from self._segment(segment, after_seq)
        yield from self._end()

    def entries_from(self, anchor: Anchor) -> Iterator[Entry]:
        """Yield the record at `anchor`, which must stand there, and every one behind it, as `entries` does.

        All up to it is taken for durable, as whoever names an anchor has synced it. Nothing is said about damage
        before it, nor about its segment's header.
        """
        self.last_seq, self.durable_seq = anchor.seq - 1, anchor.seq
        for segment in tuple(self.segments):
            if segment.ordinal >= anchor.ordinal:
                at = anchor.offset if segment.ordinal == anchor.ordinal else None
                yield from self._segment(segment, anchor.seq - 1, at)
        yield from self._end()

    def _end(self) -> Iterator[Entry]:
        yield from self._release(all_of_them=True)
        self.damages = [d._replace(rot=self._was_synced(d)) for d in self.damages]
        if self.last is not None:
            self.end = self.segments[-1].ordinal, self.last.good_end
        elif self.segments:
            self.end = self.segments[-1].ordinal + 1, 0

    def _pass_over(self, segments: tuple[Segment, ...], after_seq: int) -> int:
        """Return the number of segments, from the first, that hold no record beyond `after_seq`."""
        for n, segment in enumerate(segments):
            last = None if segment.is_open or not after_seq else self._last_in(segment)
            if last is None or last > after_seq:
                return n
            self.last_seq = max(self.last_seq, last)
        return len(segments)

    def _last_in(self, segment: Segment) -> int | None:
        """Return the last seq that a closed segment has for this log, or None where that takes reading all of it."""
        if segment.sealed is not None:
            about = segment.sealed.description
            last = about.last_seq if about is not None else None
        else:
            end = self._files.fstat(segment.fd).size if segment.limit is None else segment.limit
            data = b"".join(chunks(self._files, segment.fd, max(0, end - END_BYTES), end))
            last = None if segment.head.salt is None else last_seq_in(data, segment.head.salt)
        return last if last is None or segment.cap is None else min(last, segment.cap - 1)

    def _was_synced(self, damage: Damage) -> bool:
        return not damage.harmless and damage.kind not in _NOTHING_LOST and damage.after_seq < self.durable_seq

    def _segment(self, segment: Segment, after_seq: int, start: int | None = None) -> Iterator[Entry]:
        head = segment.head
        if start is not None:
            head = head._replace(start=start, ended=True, flaws=())
        for flaw in head.flaws:
            self._report(segment, flaw)
        foreign = head.header is not None and head.header.session != self.session and not segment.inherited
        if foreign and start is None:
            self._report(segment, Flaw(0, 0, "session", 0))
        if segment.sealed is None:
            scan = SegmentScan(head, chunks(self._files, segment.fd, head.start, segment.limit))
            yield from self._lines(segment, scan)
            if segment.is_open:
                self.last = scan
            return
        for run in segment.sealed.runs(head, segment.limit, after_seq):
            if isinstance(run, Flaw):
                self._report(segment, run)
                continue
            if run.base is not None and not self._held:
                self.last_seq = max(self.last_seq, run.base)
            yield from self._lines(segment, run.scan)

    def _lines(self, segment: Segment, scan: SegmentScan) -> Iterator[Entry]:
        salt, cap, last = segment.head.salt or 0, segment.cap, None
        crcs: array[int] | None = None
        for item in scan.items():
            if isinstance(item, Flaw):
                self._report(segment, item)
            elif cap is not None and item[0] >= cap:
                continue
            elif item[0] == self.last_seq + 1 and not self._held:
                self.last_seq, _, crc, _ = last = item
                self._lost_told = self._lost_lines
                if crcs is None:
                    crcs = self._seen.run(self.last_seq, salt)
                crcs.append(crc)
                yield item
            else:
                crcs = None
                yield from self._out_of_order(segment, item, salt)
        if last is not None:  # it only grows, so that the last line has the most
            self.durable_seq = max(self.durable_seq, durable_in(last))
        if not segment.is_open:
            if scan.tail is not None:
                self._report(segment, scan.tail)
            if scan.needs_newline:
                self._report(segment, Flaw(scan.good_end, 0, "newline", 0))

    def _report(self, segment: Segment, flaw: Flaw) -> None:
        if segment.cap is not None and self.last_seq + 1 >= segment.cap and flaw.kind not in ("header", "session"):
            return  # a later segment has all that could have stood there
        where = segment.place(flaw.offset)
        after = max(self._held, default=self.last_seq)
        self.damages.append(Damage(where, flaw.kind, flaw.bytes, after))
        if flaw.lines:
            self._lost_lines += max(flaw.lines, flaw.bytes // SHORTEST_RECORD)

    def _out_of_order(self, segment: Segment, entry: Entry, salt: int) -> Iterator[Entry]:
        seq, text, _, offset = entry
        where, size = segment.place(offset), len(text) + 1
        known = self._seen.get(seq)
        if seq in self._held:
            other, other_salt, _, _ = self._held[seq]
            known = (other[2], other_salt)
        if known is not None:
            same = crc32(text[: 1 - CRC_TAIL], known[1]) == known[0]
            self.conflict = self.conflict or not same
            self.damages.append(Damage(where, "doubled" if same else "conflict", size, seq))
        elif seq <= self.last_seq:
            self.damages.append(Damage(where, "late", size, self.last_seq))
        else:
            self._held[seq] = (entry, salt, where, self._lost_lines)
            missing = seq - self.last_seq - len(self._held)
            yield from self._release(all_of_them=0 < missing <= self._lost_lines - self._lost_told)

    def _release(self, *, all_of_them: bool) -> Iterator[Entry]:
        """Yield what is held back, as far as it joins on, or all of it where the missing ones will not come."""
        while self._held:
            seq = min(self._held)
            joins = seq == self.last_seq + 1
            if not (joins or all_of_them or len(self._held) > REORDER_WINDOW):
                return
            entry, salt, where, lost_before = self._held.pop(seq)
            missing = seq - self.last_seq - 1
            if missing > max(lost_before - self._lost_told, 0):  # what is lost behind a line excuses no gap before it
                self.damages.append(Damage(where, "gap", 0, self.last_seq))
            self.last_seq, self._lost_told = seq, max(self._lost_told, lost_before)
            self.durable_seq = max(self.durable_seq, durable_in(entry))
            self._seen.run(seq, salt).append(entry[2])
            yield entry


class _Seen:
    """The crc of every record so far, four bytes each, to tell a doubled line from two writers."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[tuple[int, array[int]]] = []

    def run(self, seq: int, salt: int) -> "array[int]":
        """Return the array to append to from `seq` on."""
        if self._runs and self._runs[-1][0] == salt and self._firsts[-1] + len(self._runs[-1][1]) == seq:
            return self._runs[-1][1]
        self._firsts.append(seq)
        self._runs.append((salt, array("I")))
        return self._runs[-1][1]

    def get(self, seq: int) -> tuple[int, int] | None:
        """Return (crc, salt) of a record, or None where it was not seen."""
        at = bisect_right(self._firsts, seq) - 1
        if at < 0:
            return None
        salt, crcs = self._runs[at]
        place = seq - self._firsts[at]
        return (crcs[place], salt) if place < len(crcs) else None


def _open_segments(files: FileSystem, directory: str) -> list[Segment]:
    """Open all segments of one moment, in order.

    Raises:
        OSError: the directory or a file cannot be read.
    """
    closed: dict[str, Segment] = {}  # what is closed stays as it is: it is opened once, however often we look
    newest: list[Segment] = []
    try:
        for _ in range(LISTING_TRIES):
            names = files.listdir(directory)
            try:
                found = [_once(files, directory, one, closed) for one in closed_segments(names)]
                if OPEN_NAME in names:
                    one = Closed(found[-1].ordinal + 1 if found else 0, 0, OPEN_NAME, False)
                    newest.append(_opened(files, directory, one))
                found += newest
                if _unchanged(files, directory, names, found):
                    used = {segment.fd for segment in found}
                    _close(files, [segment for segment in closed.values() if segment.fd not in used])
                    return _ruled(found)
            except FileNotFoundError:
                pass
            _close(files, newest)
            newest.clear()
        raise OSError(f"the segments in {directory} change too fast")
    except BaseException:
        _close(files, [*closed.values(), *newest])
        raise


def _once(files: FileSystem, directory: str, one: Closed, known: dict[str, Segment]) -> Segment:
    if one.name not in known:
        known[one.name] = _opened(files, directory, one)
    return known[one.name]


def _close(files: FileSystem, found: list[Segment]) -> None:
    for segment in found:
        files.close(segment.fd)


def _unchanged(files: FileSystem, directory: str, names: list[str], found: list[Segment]) -> bool:
    now = files.listdir(directory)
    # Whether a closed one was sealed meanwhile does not matter: both forms have the same content.
    if [c[:2] for c in closed_segments(now)] != [c[:2] for c in closed_segments(names)]:
        return False
    if (OPEN_NAME in now) != (OPEN_NAME in names):
        return False
    return OPEN_NAME not in now or files.stat(os.path.join(directory, OPEN_NAME)).inode == found[-1].inode


def _opened(files: FileSystem, directory: str, closed: Closed) -> Segment:
    fd = files.open(os.path.join(directory, closed.name), READ)
    try:
        sealed = SealedFile(files, fd) if closed.sealed else None
        data, head = sealed.head() if sealed is not None else _read_head(files, fd)
        ordinal = closed.ordinal
        if closed.name == OPEN_NAME and head.header is not None:
            ordinal = max(ordinal, head.header.ordinal)
        supersedes = _supersedes(data, head)
        return Segment(closed.name, fd, files.fstat(fd).inode, ordinal, head, None, None, False, supersedes, sealed)
    except BaseException:
        files.close(fd)
        raise


def _supersedes(data: bytes, head: Head) -> int | None:
    """Return where a rescue begins; a header beyond repair is taken for one, as only a rescue goes back in seq."""
    if head.header is not None:
        return head.header.first_seq if head.header.rescue else None
    lines = SegmentScan(head, [data[head.start :]]).items()
    return next((line[0] for line in lines if not isinstance(line, Flaw)), None)


def _read_head(files: FileSystem, fd: int) -> tuple[bytes, Head]:
    """Return the first bytes and what they say; more of them where the header is damaged and its salt is wanted."""
    data = files.read(fd, 4096, 0)
    head = read_head(data)
    if not head.intact and len(data) == 4096:
        data = b"".join(chunks(files, fd, 0, HEAD_BYTES))
        head = read_head(data)
    return data, head


def _ruled(found: list[Segment]) -> list[Segment]:
    """Apply what later headers say about earlier segments: a rescue supersedes, a fork takes only a part."""
    ruled: list[Segment] = []
    cap: int | None = None
    limit: int | None = None
    inherited = False
    for segment in reversed(found):
        ruled.append(segment._replace(cap=cap, limit=limit, inherited=inherited))
        header, limit = segment.head.header, None
        if segment.supersedes is not None:
            cap = min(segment.supersedes, cap or segment.supersedes)
        if header is not None and header.parent is not None:
            inherited = True
            upto, length = header.parent.get("upto_seq"), header.parent.get("upto_bytes")
            limit = length if type(length) is int and length >= 0 else None
            if type(upto) is int:
                cap = min(upto + 1, cap or upto + 1)
    return ruled[::-1]
