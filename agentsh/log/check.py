"""Checks a log from its bytes: the quick way over stretches without a flaw, which can be split between processes.

Where a stretch is not flawless it says only that; `survey` then reads the whole log in the ordinary way and tells
what is wrong. So the quick way cannot have an opinion of its own.
"""

import os
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import NamedTuple
from zlib import crc32

from agentsh.log.beyond import missing_end, seq_beyond
from agentsh.log.chain import LogScan, Segment
from agentsh.log.checkpoint import checkpoint_seqs
from agentsh.log.files import READ, FileSystem
from agentsh.log.frame import CRC_TAIL, crc_fits
from agentsh.log.scan import last_seq_in, peek
from agentsh.log.sealed import KIND, SealedFile, first_seq
from agentsh.log.seekable import Description
from agentsh.log.segment import chunks
from agentsh.log.spill import MAX_LINE_BYTES
from agentsh.log.store import Damage

STRETCH_BYTES = 8 << 20
"""The most of a segment that one process takes at a time; less towards its end, so that all end together."""

BLOCK_BYTES = 1 << 17
"""Read at a time: what is cut into lines then still lies in the processor's cache (a fifth faster than 1 MiB)."""

_TAIL = CRC_TAIL - 1
_SEQ = re.compile(rb'\{"seq":([1-9][0-9]{0,17}),"ts":"')
_BLOB = re.compile(rb'"blob":"sha256:([0-9a-f]{64})"')


class Stretch(NamedTuple):
    """Bytes of a segment that begin at a line's start and end behind a line. directory: of the session.

    inode: of the file that was meant. sealed: all of a sealed one; limit: how much of its content counts, None for
    all.
    """

    directory: str
    name: str
    inode: int
    salt: int
    start: int
    end: int
    sealed: bool = False
    limit: int | None = None


class Run(NamedTuple):
    """Lines without a flaw: seqs first to last, one after the other. crc: of the last line. blobs: (name, seq)."""

    first: int
    last: int
    first_dur: int
    last_dur: int
    crc: int
    blobs: tuple[tuple[str, int], ...] = ()


class Survey(NamedTuple):
    """What a whole log holds. torn: bytes behind the last valid line of the open segment, `unended` its missing LF.

    missing: there is no open segment. newer: a format that is not ours, or None.
    """

    records: int
    last_seq: int
    durable_seq: int
    damages: tuple[Damage, ...]
    blobs: tuple[tuple[str, int], ...] = ()
    torn: Damage | None = None
    unended: bool = False
    missing: bool = False
    newer: str | None = None


def run_of(files: FileSystem, stretch: Stretch) -> Run | None:
    """Return the lines of a stretch where every one is as it was written, else None.

    Raises:
        OSError: the file cannot be read.
    """
    fd = files.open(os.path.join(stretch.directory, stretch.name), READ)
    try:
        if files.fstat(fd).inode != stretch.inode:
            return None
        if stretch.sealed:
            return _sealed_run(SealedFile(files, fd), stretch)
        return _run(_blocks(files, fd, stretch.start, stretch.end), stretch.salt)
    except ValueError:  # a `dur` that is no number, or a frame that does not unpack
        return None
    finally:
        files.close(fd)


def _blocks(files: FileSystem, fd: int, at: int, end: int) -> Iterator[bytes]:
    while at < end and (data := files.read(fd, min(BLOCK_BYTES, end - at), at)):
        yield data
        at += len(data)


def _sealed_run(sealed: SealedFile, stretch: Stretch) -> Run | None:
    """Return the lines of a sealed segment where they, its table, its description and its hash are all right."""
    about = sealed.description
    if about is None or not sealed.whole:
        return None
    digest = sha256()
    run = _run(_unpacked(sealed, len(about.header), stretch.limit, digest.update), stretch.salt)
    if stretch.limit is not None or run is None:  # of a fork's last inherited segment the rest is the parent's
        return run
    right = digest.hexdigest() == about.raw_sha256 and (run.first, run.last) == (about.first_seq, about.last_seq)
    return run if right else None


def _unpacked(sealed: SealedFile, start: int, limit: int | None, also: Callable[[bytes], object]) -> Iterator[bytes]:
    """Yield the content from `start` to `limit`; `also` is given all of it.

    Raises:
        ValueError: a frame does not unpack, or does not begin with the seq that it should.
    """
    for frame in sealed.frames:
        if limit is not None and frame.raw_at >= limit:
            return
        content = sealed.unpack(frame)
        if content is None or first_seq(content) != frame.first_seq:
            raise ValueError(f"frame at {frame.at}")
        also(content)
        end = len(content) if limit is None else min(len(content), limit - frame.raw_at)
        at = max(start - frame.raw_at, 0)
        while at < end:
            yield content[at : min(at + BLOCK_BYTES, end)]
            at += BLOCK_BYTES


def _run(blocks: Iterator[bytes], salt: int) -> Run | None:
    carry, blobs = b"", dict[str, int]()
    seq: int | None = None
    first, first_dur, dur, crc = 0, -1, 0, 0
    for block in blocks:
        block = carry + block
        names_blobs = b'"blob":"sha256:' in block
        lines = block.split(b"\n")
        carry = lines.pop()
        for line in lines:
            if seq is None:
                found = _SEQ.match(line)
                if found is None:
                    return None
                first = seq = int(found[1])
            crc = crc32(line[:-_TAIL], salt)
            if not (line.startswith(b'{"seq":%d,"ts":"' % seq) and line.endswith(b',"crc":"%08x"}' % crc)):
                return None
            at = line.index(b'","dur":') + 8
            now = int(line[at : line.index(b",", at)])
            if not dur <= now < seq:
                return None
            if first_dur < 0:
                first_dur = now
            if names_blobs and b'"blob":"sha256:' in line:
                for name in _BLOB.findall(line):
                    blobs.setdefault(name.decode(), seq)
            dur, seq = now, seq + 1
    if carry or seq is None:
        return None
    return Run(first, seq - 1, max(first_dur, 0), dur, crc, tuple(blobs.items()))


def stretches(files: FileSystem, directory: str, segment: Segment, start: int, end: int) -> list[Stretch]:
    """Return the bytes of a segment from one line's start to another in pieces that can be checked apart.

    A sealed segment is one piece, whose bytes are those of the file: its hash can only be taken from end to end.

    Raises:
        OSError: it cannot be read.
    """
    if segment.sealed is not None:
        salt = segment.head.salt or 0
        return [Stretch(directory, segment.name, segment.inode, salt, start, end, True, segment.limit)]
    found: list[Stretch] = []
    while start < end:
        size = max(min(STRETCH_BYTES, (end - start) // 8), STRETCH_BYTES // 8)
        stop = _line_start(files, segment.fd, start + size, end)
        found.append(Stretch(directory, segment.name, segment.inode, segment.head.salt or 0, start, stop))
        start = stop
    return found


def _line_start(files: FileSystem, fd: int, near: int, end: int) -> int:
    """Return where a line begins at or behind `near`, or `end`."""
    if near >= end:
        return end
    data = files.read(fd, 2 * MAX_LINE_BYTES, near)
    at = data.find(b"\n")
    return min(near + at + 1, end) if at >= 0 else end


def flawless(segment: Segment, session: str) -> bool:
    """Tell whether the head of a segment leaves nothing to tell, so that its lines can be checked the quick way."""
    head = segment.head
    right = head.header is not None and (segment.inherited or head.header.session == session)
    whole = segment.sealed is None or segment.sealed.whole
    return right and whole and head.intact and head.ended and head.salt is not None and not head.flaws


def joined(runs: list[Run], first: int, dur: int) -> tuple[int, int] | None:
    """Return (last seq, last dur) where runs follow on `first` and on one another, else None."""
    for run in runs:
        if run.first != first or run.first_dur < dur:
            return None
        first, dur = run.last + 1, run.last_dur
    return first - 1, dur


def line_ends_at(files: FileSystem, fd: int, end: int, salt: int, crc: int) -> bool:
    """Tell whether a line that holds, of this crc, ends right before the offset `end`.

    Raises:
        OSError: it cannot be read.
    """
    start = max(end - MAX_LINE_BYTES, 0)
    data = files.read(fd, end - start, start)
    line = data[data.rfind(b"\n", 0, -1) + 1 :]
    return len(data) == end - start and crc_fits(line, salt) and line[-11:-3] == b"%08x" % crc


def before_is_right(files: FileSystem, directory: str, before: Segment, wanted: str) -> bool:
    """Tell whether a segment has the SHA-256 that the header of the next one names.

    What a sealed one says of itself is believed here: `run_of` has compared it with the content.

    Raises:
        OSError: it cannot be read.
    """
    if before.sealed is not None:
        return before.sealed.description is None or before.sealed.description.raw_sha256 == wanted
    digest = sha256()
    fd = files.open(os.path.join(directory, before.name), READ)
    try:
        for chunk in chunks(files, fd, 0):
            digest.update(chunk)
    finally:
        files.close(fd)
    return digest.hexdigest() == wanted


def _wrong_descriptions(scan: LogScan) -> list[Damage]:
    """Return the sealed segments whose content reads and is not what they say of it: seekers go by what they say."""
    wrong = []
    for segment in scan.segments:
        sealed = segment.sealed
        about = sealed.description if sealed is not None and sealed.whole and segment.limit is None else None
        if sealed is not None and about is not None and _belied(sealed, about, segment.head.salt or 0):
            wrong.append(Damage(segment.place(0), KIND, 0, about.first_seq - 1))
    return wrong


def _belied(sealed: SealedFile, about: Description, salt: int) -> bool:
    digest, last = sha256(), b""

    def also(content: bytes) -> None:
        nonlocal last
        digest.update(content)
        last = content

    try:
        for _ in _unpacked(sealed, 0, None, also):
            pass
    except ValueError:
        return all(sealed.unpack(frame) is not None for frame in sealed.frames)  # else the scan tells of it
    seqs = about.frames[0], last_seq_in(last, salt)
    return digest.hexdigest() != about.raw_sha256 or seqs != (about.first_seq, about.last_seq)


def survey(files: FileSystem, directory: str, session: str) -> Survey:
    """Read a whole log in the ordinary way and tell everything that is wrong with it.

    Raises:
        OSError: it cannot be read.
    """
    seqs = checkpoint_seqs(files, directory)
    scan = LogScan(files, directory, session)
    try:
        segment = scan.open_segment
        records, before, odd, blobs = 0, 0, _wrong_descriptions(scan), dict[str, int]()
        for seq, text, _, _ in scan.entries():
            records += 1
            kind, dur = peek(text)
            if kind and not before <= dur < seq:
                odd.append(Damage(f"seq {seq}", "dur", 0, seq - 1))
            before = max(before, dur)
            if b'"blob":"sha256:' in text:
                for name in _BLOB.findall(text):
                    blobs.setdefault(name.decode(), seq)
        torn, damages, unended = None, [*scan.damages, *odd], False
        if scan.last is not None and segment is not None:
            end, tail = segment.place(scan.last.good_end), scan.last.tail
            unended = scan.last.needs_newline
            damages = [d for d in damages if not (unended and d.kind == "newline" and d.where == end)]
            if tail is not None:
                torn = Damage(segment.place(tail.offset), "torn", tail.bytes, scan.last_seq)
        if seq_beyond(files, directory, session, scan.last_seq, seqs) and not scan.newer:
            damages.append(missing_end(*scan.end, scan.last_seq))
        return Survey(
            records, scan.last_seq, scan.durable_seq, tuple(damages), tuple(blobs.items()), torn, unended,
            segment is None, scan.newer,
        )  # fmt: skip
    finally:
        scan.close()
