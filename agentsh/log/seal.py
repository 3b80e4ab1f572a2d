"""Turns closed segments into sealed ones, and loses none on the way. Blocks; the caller holds the lease.

verify every crc → write a file of another name → sync → read it back, compare the hash → rename → sync the directory
→ remove the plain one → sync the directory. Nothing is ever written into a file that has its name already, so that
a fork or a checkpoint that holds a segment by hard link keeps it as it is. Source: DESIGN section 4.
"""

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import NamedTuple

from agentsh.log.chain import LogScan, Segment
from agentsh.log.files import CREATE, READ, FileSystem, write_all
from agentsh.log.recover import move_aside
from agentsh.log.scan import Flaw, SegmentScan
from agentsh.log.sealed import SealedFile, first_seq
from agentsh.log.seekable import (
    FRAME_BYTES,
    MAX_FRAME_BYTES,
    Description,
    PackerBeside,
    UnpackersBeside,
    pieces,
)
from agentsh.log.segment import SEALED, chunks, closed_segments, discard, exists

NEW = ".new"
"""What a sealed segment's name ends with until it is whole, durable and verified."""
MIN_BYTES = 1 << 20
"""Shorter closed segments (behind a rescue, or a damaged header) are left as they are: nothing much to save."""
SYNC_BYTES = 4 << 20
"""Written between two syncs, so that the disk works while frames are packed; the last one makes all of it durable."""
BLOCK_BYTES = 1 << 17
"""Given to who checks the lines at a time: what is cut then still lies in the processor's cache."""


class Stopped(Exception):
    """Whoever asked for the sealing does not want it any more; nothing has changed."""


class Unsealable(Exception):
    """The segment has damage, or is none of ours: it stays as it is, for `verify` to tell and `repair` to mend."""


class Pass(NamedTuple):
    """What one pass over the closed segments did. refused: names of those that stay as they are."""

    sealed: tuple[str, ...]
    refused: tuple[str, ...]


def seal_closed(
    files: FileSystem, directory: str, session: str, *, below: int, min_bytes: int = MIN_BYTES,
    known: frozenset[str] = frozenset(), stopped: Callable[[], bool] = lambda: False, frame_bytes: int = FRAME_BYTES,
) -> Pass:  # fmt: skip
    """Seal every closed segment with an ordinal under `below`, and finish what an earlier pass has begun.

    known: names that were refused before, to be passed over. stopped: asked between the frames.

    Raises:
        OSError: the disk refused; the log is whole, and the next pass goes on from there.
        Stopped: likewise.
    """
    sealed, refused = [], []
    for name in files.listdir(directory):
        if name.endswith(SEALED + NEW):
            discard(files, os.path.join(directory, name))
    scan = LogScan(files, directory, session)
    try:
        for n, segment in enumerate(scan.segments):
            if segment.is_open or segment.sealed is not None or segment.ordinal >= below or segment.name in known:
                continue
            following = scan.segments[n + 1].head.header if n + 1 < len(scan.segments) else None
            claimed = following.prev_sha256 if following is not None else None
            twin = exists(files, os.path.join(directory, segment.name + SEALED))
            if not twin and _length(files, segment) < min_bytes:
                continue
            try:
                if not (twin and _settled(files, directory, segment, stopped)):
                    seal(files, directory, segment, claimed, stopped, frame_bytes)
                sealed.append(segment.name + SEALED)
            except Unsealable:
                refused.append(segment.name)
    finally:
        scan.close()
    return Pass(tuple(sealed), tuple(refused))


def pending(
    files: FileSystem, directory: str, *, below: int, min_bytes: int = MIN_BYTES, known: frozenset[str] = frozenset()
) -> bool:
    """Tell, without reading a segment, whether `seal_closed` would find anything to do."""
    names = set(files.listdir(directory))
    if any(name.endswith(SEALED + NEW) for name in names):
        return True
    return any(
        not closed.sealed and closed.ordinal < below and closed.name not in known
        and (closed.name + SEALED in names or files.stat(os.path.join(directory, closed.name)).size >= min_bytes)
        for closed in closed_segments(list(names))
    )  # fmt: skip


def seal(
    files: FileSystem,
    directory: str,
    segment: Segment,
    claimed: str | None,
    stopped: Callable[[], bool],
    frame_bytes: int = FRAME_BYTES,
) -> None:
    """Seal one closed segment. claimed: its hash as the next header has it, or None.

    Raises:
        Unsealable, Stopped, OSError: nothing has changed.
    """
    path = os.path.join(directory, segment.name)
    new = path + SEALED + NEW
    discard(files, new)
    out = files.open(new, CREATE)
    try:
        try:
            description = _write(files, segment, out, stopped, frame_bytes)
            if claimed is not None and claimed != description.raw_sha256 and segment.limit is None:
                raise Unsealable(f"{segment.name} is not what it was when it was closed")
            files.sync(out)
        finally:
            files.close(out)
        if _verified(files, new, stopped) != description:
            raise OSError(f"{new} does not read as it was written")
        files.rename(new, path + SEALED)
    except BaseException:
        discard(files, new)
        raise
    files.sync_dir(directory)
    _remove(files, directory, segment)


def _length(files: FileSystem, segment: Segment) -> int:
    size = files.fstat(segment.fd).size
    return size if segment.limit is None else min(size, segment.limit)


def _write(
    files: FileSystem, segment: Segment, out: int, stopped: Callable[[], bool], frame_bytes: int
) -> Description:
    """Write the sealed form of a segment, verifying every line on the way."""
    from concurrent.futures import ThreadPoolExecutor

    head = segment.head
    if head.header is None or not head.intact or head.flaws or head.start != len(head.header.raw):
        raise Unsealable("its header is damaged")
    digest, firsts, size, unsynced = sha256(), list[int](), 0, 0

    def write(data: bytes) -> None:
        nonlocal unsynced
        write_all(files, out, data)
        unsynced += len(data)
        if unsynced >= SYNC_BYTES:
            files.sync(out)
            unsynced = 0

    def packed() -> Iterator[bytes]:
        nonlocal size
        for piece in pieces(chunks(files, segment.fd, 0, segment.limit), frame_bytes):
            first = first_seq(piece)
            if first is None or len(piece) > MAX_FRAME_BYTES:
                raise Unsealable("it has no records, or one that is too long")
            if stopped():
                raise Stopped
            firsts.append(first)
            hashing.submit(digest.update, piece)
            for frame in packer.give(piece):
                write(frame)
            for at in range(0 if size else head.start, len(piece), BLOCK_BYTES):
                yield piece[at : at + BLOCK_BYTES]
            size += len(piece)

    # What reads and checks the lines is as busy as those who pack: so the hash is not taken here.
    with PackerBeside() as packer, ThreadPoolExecutor(1, "hash") as hashing:
        first, last = _verify_lines(SegmentScan(head, packed()))
        for frame in packer.rest():
            write(frame)
        hashing.shutdown()
        description = Description(
            segment.ordinal, first, last, size, digest.hexdigest(), tuple(firsts), head.header.raw
        )
        write(packer.end(description))
    return description


def _verify_lines(scan: SegmentScan) -> tuple[int, int]:
    """Return the first and the last seq where every line holds and they follow one another."""
    first = last = 0
    for item in scan.items():
        if isinstance(item, Flaw):
            raise Unsealable(f"damage at {item.offset}: {item.kind}")
        if first and item[0] != last + 1:
            raise Unsealable(f"{item[0]} follows {last}")
        last = item[0]
        first = first or last
    if scan.tail is not None or scan.needs_newline or not first:
        raise Unsealable("its end is damaged")
    return first, last


def _verified(files: FileSystem, path: str, stopped: Callable[[], bool]) -> Description | None:
    """Return the description of a sealed file whose content is what it says, else None."""
    fd = files.open(path, READ)
    try:
        sealed, digest = SealedFile(files, fd), sha256()
        if not sealed.whole or sealed.description is None:
            return None

        def packed() -> Iterator[tuple[bytes, int]]:
            for frame in sealed.frames:
                if stopped():
                    raise Stopped
                yield sealed.packed(frame), frame.raw_size

        with UnpackersBeside() as unpackers:
            for frame, content in zip(sealed.frames, unpackers.frames(packed()), strict=True):
                if content is None or first_seq(content) != frame.first_seq:
                    return None
                digest.update(content)
        return sealed.description if digest.hexdigest() == sealed.description.raw_sha256 else None
    finally:
        files.close(fd)


def _settled(files: FileSystem, directory: str, segment: Segment, stopped: Callable[[], bool]) -> bool:
    """Finish a sealing that was interrupted behind its rename: the sealed form wins if it verifies.

    A plain one that differs from it all the same is no leftover; it goes to quarantine, not away.
    """
    description = _verified(files, os.path.join(directory, segment.name + SEALED), stopped)
    if description is None:
        return False
    files.sync_dir(directory)  # whoever renamed it may not have come this far
    digest = sha256()
    for chunk in chunks(files, segment.fd, 0, segment.limit):
        digest.update(chunk)
    if digest.hexdigest() == description.raw_sha256:
        _remove(files, directory, segment)
    else:
        move_aside(files, directory, segment.name)
    return True


def _remove(files: FileSystem, directory: str, segment: Segment) -> None:
    """Take our name off the plain form; a fork that has it by another name keeps it."""
    path = os.path.join(directory, segment.name)
    if files.stat(path).inode == segment.inode:
        files.unlink(path)
        files.sync_dir(directory)
