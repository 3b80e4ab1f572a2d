"""Puts the end of a log in order before the first append: quarantine, then cut. Idempotent; never loses a byte."""

import os
from typing import NamedTuple

from agentsh.log.chain import LogScan, Segment
from agentsh.log.files import APPEND, CREATE, READ, FileSystem, make_dirs, write_all
from agentsh.log.scan import SegmentScan
from agentsh.log.sealed import raw_sha256
from agentsh.log.segment import (
    NEW_NAME,
    OPEN_NAME,
    begin_segment,
    chunks,
    close_segment,
    closed_segments,
    discard,
    exists,
    new_header,
)
from agentsh.log.spill import MAX_LINE_BYTES
from agentsh.log.store import Damage, Recovery

QUARANTINE = "quarantine"


class OpenSegment(NamedTuple):
    """The segment to append to. size: its bytes. salt: for its lines."""

    fd: int
    size: int
    salt: int
    ordinal: int
    first_seq: int


def recover(files: FileSystem, directory: str, session: str, scan: LogScan, by: str) -> tuple[OpenSegment, Recovery]:
    """Repair the tail of a log that was scanned to its end, and return the segment to append to.

    The caller holds the lease. by: program and version, for a header where a new segment has to begin.

    Raises:
        OSError: the disk refused; nothing is lost, and another try goes on from there.
    """
    moved: list[str] = []
    new = os.path.join(directory, NEW_NAME)
    if exists(files, new):  # a rescue that did not come to its end
        moved.append(move_aside(files, directory, NEW_NAME))
    segment, tail = scan.open_segment, scan.last
    told = tuple(d for d in scan.damages if not d.harmless)
    first_seq = scan.last_seq + 1
    if segment is None or tail is None:
        last = scan.segments[-1] if scan.segments else None
        opened = _begin(files, directory, session, last, first_seq, by)
        return opened, _recovery(0, False, moved, told)
    if segment.head.salt is None:
        opened, size = _replace(files, directory, session, scan, by, moved)
        return opened, _recovery(size, False, moved, told)
    cut = tail.end - tail.good_end
    unfinished = _unfinished(files, segment.fd, tail)
    if cut:
        moved.append(_quarantine(files, directory, segment, tail))
    fd, size = _put_in_order(files, os.path.join(directory, OPEN_NAME), tail)
    recovery = _recovery(cut, tail.needs_newline, moved, told)._replace(unfinished=unfinished)
    if segment.head.intact and segment.head.header is not None:
        return OpenSegment(fd, size, segment.head.salt, segment.ordinal, segment.head.header.first_seq), recovery
    # Readers can do without the header, but new lines deserve a good one: the damaged segment is closed as it is.
    files.close(fd)
    first = segment.head.header.first_seq if segment.head.header else segment.supersedes or first_seq
    close_segment(files, directory, segment.ordinal, first)
    return _begin(files, directory, session, segment, first_seq, by), recovery


def _recovery(cut: int, newline: bool, moved: list[str], damages: tuple[Damage, ...]) -> Recovery:
    return Recovery(cut, newline, tuple(moved), damages)


def _begin(
    files: FileSystem, directory: str, session: str, last: Segment | None, first_seq: int, by: str
) -> OpenSegment:
    """Begin the segment behind `last`, which has its closed name by now."""
    closed = [c for c in closed_segments(files.listdir(directory)) if last is not None and c.ordinal == last.ordinal]
    before = raw_sha256(files, directory, closed[0]) if closed else None
    ordinal = last.ordinal + 1 if last is not None else 0
    header = new_header(session, ordinal=ordinal, first_seq=first_seq, by=by, prev_sha256=before)
    fd = begin_segment(files, directory, header)
    return OpenSegment(fd, len(header.raw), header.salt, ordinal, first_seq)


def _replace(
    files: FileSystem, directory: str, session: str, scan: LogScan, by: str, moved: list[str]
) -> tuple[OpenSegment, int]:
    """Move an open segment aside whose creation was cut short: nothing in it can have been acknowledged."""
    path = os.path.join(directory, OPEN_NAME)
    size = files.stat(path).size
    if size:
        moved.append(move_aside(files, directory, OPEN_NAME))
    else:
        discard(files, path)
    last = scan.segments[-2] if len(scan.segments) > 1 else None
    return _begin(files, directory, session, last, scan.last_seq + 1, by), size


def move_aside(files: FileSystem, directory: str, name: str) -> str:
    """Move a whole file to quarantine, durably, and return its name there."""
    place = os.path.join(directory, QUARANTINE)
    make_dirs(files, place)
    taken, kept, n = set(files.listdir(place)), name, 0
    while kept in taken:
        n += 1
        kept = f"{name}.{n}"
    files.rename(os.path.join(directory, name), os.path.join(place, kept))
    files.sync_dir(place)
    files.sync_dir(directory)
    return kept


def _quarantine(files: FileSystem, directory: str, segment: Segment, tail: SegmentScan) -> str:
    """Copy the bytes behind the last valid line to a file of their own, durably, and return its name."""
    place = os.path.join(directory, QUARANTINE)
    make_dirs(files, place)
    stem, n = f"{segment.ordinal:06}.{tail.good_end:012}", 0
    taken = set(files.listdir(place))
    name = stem
    while name in taken:
        if _same(files, os.path.join(place, name), segment.fd, tail.good_end):
            break  # an earlier opening came this far and no further
        n += 1
        name = f"{stem}.{n}"
    path = os.path.join(place, name)
    fd = files.open(path, APPEND if name in taken else CREATE)
    try:
        if name not in taken:
            for chunk in chunks(files, segment.fd, tail.good_end):
                write_all(files, fd, chunk)
        files.sync(fd)
    except OSError:
        files.close(fd)
        if name not in taken:
            discard(files, path)
        raise
    files.close(fd)
    files.sync_dir(place)
    return name


def _unfinished(files: FileSystem, fd: int, tail: SegmentScan) -> bool:
    """Tell whether what lies behind the last valid line is the beginning of one more line and nothing else."""
    size = tail.end - tail.good_end
    if not 0 < size < MAX_LINE_BYTES:
        return False
    data = files.read(fd, size, tail.good_end)
    return data.startswith(b'{"seq":'[:size]) and b"\n" not in data and b"\0" not in data


def _same(files: FileSystem, path: str, fd: int, start: int) -> bool:
    kept = files.open(path, READ)
    try:
        return files.fstat(kept).size == files.fstat(fd).size - start and all(
            ours == theirs for ours, theirs in zip(chunks(files, fd, start), chunks(files, kept, 0), strict=False)
        )
    finally:
        files.close(kept)


def _put_in_order(files: FileSystem, path: str, tail: SegmentScan) -> tuple[int, int]:
    """Cut the file behind its last valid line, give that its LF, and return (descriptor to append with, size)."""
    fd = files.open(path, APPEND)
    size = tail.good_end
    try:
        if tail.end > size:
            files.truncate(fd, size)
        if tail.needs_newline:
            write_all(files, fd, b"\n")
            size += 1
        if tail.end != size:
            files.sync(fd)
    except OSError:
        files.close(fd)
        raise
    return fd, size
