"""Puts the end of a log in order before the first append: quarantine, then cut. Idempotent; never loses a byte."""

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from agentsh.log.chain import LogScan, Segment
from agentsh.log.files import APPEND, READ, WRITE, FileSystem, make_dirs, write_all
from agentsh.log.reserve import NO_ROOM
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
    name_rescue,
    new_header,
    put,
    write_rescue,
)
from agentsh.log.spill import MAX_LINE_BYTES
from agentsh.log.store import Damage, Recovery

QUARANTINE = "quarantine"
MAX_WRITTEN_AGAIN = 16 << 20
"""Bytes; a writer that syncs never leaves so much unsynced, so that more comes from one that never did."""


class OpenSegment(NamedTuple):
    """The segment to append to. size: its bytes. salt: for its lines.

    doubt: why its unsynced lines must not be trusted to a sync of this file, or None.
    """

    fd: int
    size: int
    salt: int
    ordinal: int
    first_seq: int
    doubt: OSError | None = None


def recover(
    files: FileSystem,
    directory: str,
    session: str,
    scan: LogScan,
    by: str,
    unsynced: Sequence[tuple[int, bytes]] = (),
) -> tuple[OpenSegment, Recovery]:
    """Repair the tail of a log that was scanned to its end, and return the segment to append to.

    The caller holds the lease. by: program and version, for a header where a new segment has to begin.
    unsynced: the last records (seq, line), of which no line says that they are durable.

    Raises:
        OSError: the disk refused; nothing is lost, and another try goes on from there.
    """
    moved = _half_a_rescue(files, directory)
    segment, tail = scan.open_segment, scan.last
    told = tuple(d for d in scan.damages if not d.harmless)
    first_seq = scan.last_seq + 1
    unproven = (
        segment is None or tail is None or segment.supersedes is not None or tail.good_end == segment.head.start
    )
    if unproven:
        _make_names_durable(files, directory)
    if segment is None or tail is None:
        last = scan.segments[-1] if scan.segments else None
        if last is not None and last.sealed is not None:
            unsynced = ()  # it was synced before its name was there
        opened = _begin(files, directory, session, last, first_seq, by, unsynced)
        return opened, _recovery(0, False, moved, told)
    if segment.head.salt is None:
        opened, size = _replace(files, directory, session, scan, by, moved, unsynced)
        return opened, _recovery(size, False, moved, told)
    cut = tail.end - tail.good_end
    unfinished = _unfinished(files, segment.fd, tail)
    if cut:
        moved.append(_keep_end(files, directory, segment, tail))
    if tail.good_end == segment.head.start and segment.head.intact:
        # The sync of whoever created it may have failed: what is to be synced now must not be clean.
        _rewrite(files, os.path.join(directory, OPEN_NAME), segment.fd, 0, segment.head.start)
    fd, size = _put_in_order(
        files, os.path.join(directory, OPEN_NAME), tail, sync=unproven or not segment.head.intact
    )
    recovery = _recovery(cut, tail.needs_newline, moved, told)._replace(unfinished=unfinished)
    if segment.head.intact and segment.head.header is not None:
        doubt = _write_again(files, os.path.join(directory, OPEN_NAME), segment, size, unsynced, scan)
        return OpenSegment(
            fd, size, segment.head.salt, segment.ordinal, segment.head.header.first_seq, doubt
        ), recovery
    # Readers can do without the header, but new lines deserve a good one: the damaged segment is closed as it is.
    files.close(fd)
    first = segment.head.header.first_seq if segment.head.header else segment.supersedes or first_seq
    close_segment(files, directory, segment.ordinal, first)
    return _begin(files, directory, session, segment, first_seq, by, unsynced), recovery


def _half_a_rescue(files: FileSystem, directory: str) -> list[str]:
    """Move a rescue that came to no end aside; return its name in quarantine, if there was anything in it."""
    path = os.path.join(directory, NEW_NAME)
    if not exists(files, path):
        return []
    if files.stat(path).size:
        return [move_aside(files, directory, NEW_NAME)]
    discard(files, path)
    return []


def _make_names_durable(files: FileSystem, directory: str) -> None:
    """Sync the names of a session's files and its own, for whoever made them may have died first.

    A record behind a header proves that this was done, as nothing is appended before; a rescue has its records from
    the start.
    """
    files.sync_dir(directory)
    files.sync_dir(os.path.dirname(directory) or ".")


def _recovery(cut: int, newline: bool, moved: list[str], damages: tuple[Damage, ...]) -> Recovery:
    return Recovery(cut, newline, tuple(moved), damages)


def _begin(
    files: FileSystem, directory: str, session: str, last: Segment | None, first_seq: int, by: str,
    unsynced: Sequence[tuple[int, bytes]],
) -> OpenSegment:  # fmt: skip
    """Begin the segment behind `last`, which has its closed name by now.

    Lines of that one that may not be durable move into the new one, a rescue then: nobody syncs closed segments.
    """
    closed = [c for c in closed_segments(files.listdir(directory)) if last is not None and c.ordinal == last.ordinal]
    before = raw_sha256(files, directory, closed[0]) if closed else None
    ordinal = last.ordinal + 1 if last is not None else 0
    if unsynced:
        first_seq = unsynced[0][0]
        header = new_header(session, ordinal=ordinal, first_seq=first_seq, by=by, rescue=True, prev_sha256=before)
        fd, size = write_rescue(files, directory, header, [line for _, line in unsynced])
        try:
            name_rescue(files, directory)
        except OSError:
            files.close(fd)
            raise
        return OpenSegment(fd, size, header.salt, ordinal, first_seq)
    header = new_header(session, ordinal=ordinal, first_seq=first_seq, by=by, prev_sha256=before)
    fd = begin_segment(files, directory, header)
    return OpenSegment(fd, len(header.raw), header.salt, ordinal, first_seq)


def _replace(
    files: FileSystem, directory: str, session: str, scan: LogScan, by: str, moved: list[str],
    unsynced: Sequence[tuple[int, bytes]],
) -> tuple[OpenSegment, int]:  # fmt: skip
    """Move an open segment aside whose creation was cut short: nothing in it can have been acknowledged."""
    path = os.path.join(directory, OPEN_NAME)
    size = files.stat(path).size
    if size:
        moved.append(move_aside(files, directory, OPEN_NAME))
    else:
        discard(files, path)
    last = scan.segments[-2] if len(scan.segments) > 1 else None
    return _begin(files, directory, session, last, scan.last_seq + 1, by, unsynced), size


def move_aside(files: FileSystem, directory: str, name: str) -> str:
    """Move a whole file to quarantine, durably, and return its name there."""
    path = os.path.join(directory, name)
    fd = files.open(path, READ)
    try:
        kept = _keep(files, directory, name, fd, 0)
    finally:
        files.close(fd)
    files.unlink(path)
    files.sync_dir(directory)
    return kept


def _keep(files: FileSystem, directory: str, stem: str, source: int, start: int) -> str:
    """Copy the bytes of an open file from `start` on to a file in quarantine, durably, and return its name."""
    place = os.path.join(directory, QUARANTINE)
    make_dirs(files, place)
    taken, name, n = set(files.listdir(place)), stem, 0
    while name in taken:
        if _same(files, os.path.join(place, name), source, start):
            # An earlier opening came this far and no further. Its copy is not trusted, but replaced: where a sync of
            # it failed, the next one would say that all is well.
            break
        n += 1
        name = f"{stem}.{n}"
    path = os.path.join(place, name)
    new = os.path.join(place, f".{name}.new")  # the dot: `events.jsonl.new` may be kept here under its own name
    discard(files, new)
    put(files, path, new, chunks(files, source, start))
    return name


def _keep_end(files: FileSystem, directory: str, segment: Segment, tail: SegmentScan) -> str:
    """Copy what lies behind the last valid line to quarantine, and return its name there."""
    name = f"{segment.ordinal:06}.{tail.good_end:012}"
    try:
        return _keep(files, directory, name, segment.fd, tail.good_end)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
    fd = files.open(os.path.join(directory, OPEN_NAME), APPEND)
    try:  # frees the blocks that a writer who was killed had kept behind the end of the file
        files.truncate(fd, tail.end)
    finally:
        files.close(fd)
    return _keep(files, directory, name, segment.fd, tail.good_end)


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


def _put_in_order(files: FileSystem, path: str, tail: SegmentScan, *, sync: bool) -> tuple[int, int]:
    """Cut the file behind its last valid line, give that its LF, and return (descriptor to append with, size).

    sync: also where nothing was changed.
    """
    fd = files.open(path, APPEND)
    size = tail.good_end
    try:
        if tail.end > size:
            files.truncate(fd, size)
        if tail.needs_newline:
            write_all(files, fd, b"\n")
            size += 1
        if sync or tail.end != size:
            files.sync(fd)
    except OSError:
        files.close(fd)
        raise
    return fd, size


def _write_again(
    files: FileSystem, path: str, segment: Segment, size: int, unsynced: Sequence[tuple[int, bytes]], scan: LogScan
) -> OSError | None:
    """Write the unsynced end of a segment over itself, the same bytes; return why that failed, or None.

    Where a sync failed and its process died, the kernel shows lines that are not on the disk and takes them for
    clean: the next sync would say that all is well (Rebello et al., ATC 2020). Written again they are not clean.
    """
    length = sum(len(line) for _, line in unsynced)
    if not 0 < length <= MAX_WRITTEN_AGAIN:
        return None
    at = size - length
    if at < segment.head.start or scan.damages:
        at = segment.head.start  # what lies between the lines is not known here
    try:
        _rewrite(files, path, segment.fd, at, size)
    except OSError as error:
        return error
    return None


def _rewrite(files: FileSystem, path: str, source: int, start: int, end: int) -> None:
    """Write a part of a file over itself. source: a descriptor to read it from."""
    fd = files.open(path, WRITE)
    try:
        at = start
        for chunk in chunks(files, source, start, end):
            if files.rewrite(fd, chunk, at) != len(chunk):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            at += len(chunk)
    finally:
        files.close(fd)
