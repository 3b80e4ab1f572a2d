"""Segments: the names of a log's files, and how one is begun and closed so that no power cut leaves it half there."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from agentsh.base.clock import timestamp
from agentsh.base.ids import random_hex
from agentsh.log.files import CREATE, READ, FileSystem, write_all
from agentsh.log.frame import encode_header, resealed
from agentsh.log.record import Header

OPEN_NAME = "events.jsonl"
NEW_NAME = "events.jsonl.new"
"""A rescue segment until it is whole and durable."""
CHUNK_BYTES = 1 << 20

SEALED = ".zst"
"""What a sealed segment's name has behind that of the closed one."""

_CLOSED = re.compile(r"([0-9]{6,12})-([0-9]{12,18})\.jsonl(\.zst)?")


class Closed(NamedTuple):
    """A segment that is written no more. The ordinal decides the order."""

    ordinal: int
    first_seq: int
    name: str
    sealed: bool


def closed_name(ordinal: int, first_seq: int) -> str:
    """Return the name of a closed segment, `ORDINAL-FIRSTSEQ.jsonl`."""
    return f"{ordinal:06}-{first_seq:012}.jsonl"


def closed_segments(names: list[str]) -> list[Closed]:
    """Return the closed segments among `names`, sealed or not, in order.

    Where a segment is there in both forms, sealing was interrupted: the one that is not sealed is taken, as it is
    whole until the other was verified.
    """
    found: dict[tuple[int, int], Closed] = {}
    for name in sorted(names, reverse=True):
        if (m := _CLOSED.fullmatch(name)) is not None:
            found[int(m[1]), int(m[2])] = Closed(int(m[1]), int(m[2]), name, m[3] is not None)
    return sorted(found.values())


def new_header(
    session: str, *, ordinal: int, first_seq: int, by: str, rescue: bool = False, prev_sha256: str | None = None,
    parent: Mapping[str, object] | None = None,
) -> Header:  # fmt: skip
    """Return a header with a fresh nonce, made now."""
    return encode_header(
        session, ordinal=ordinal, first_seq=first_seq, nonce=random_hex(8),
        created=timestamp(datetime.now(UTC)), by=by, rescue=rescue, prev_sha256=prev_sha256, parent=parent,
    )  # fmt: skip


def begin_segment(files: FileSystem, directory: str, header: Header) -> int:
    """Create the open segment, durably, and return its descriptor.

    Raises:
        OSError: the disk refused; what was begun is removed again where that is possible.
    """
    path = os.path.join(directory, OPEN_NAME)
    fd = files.open(path, CREATE)
    try:
        write_all(files, fd, header.raw)
        files.sync(fd)
        files.sync_dir(directory)
    except OSError:
        files.close(fd)
        discard(files, path)
        raise
    return fd


def write_rescue(files: FileSystem, directory: str, header: Header, lines: Iterable[bytes]) -> tuple[int, int]:
    """Write lines of other segments durably to a new one that has not got its name yet; return (descriptor, size).

    Raises:
        OSError: the disk refused.
    """
    path = os.path.join(directory, NEW_NAME)
    data = header.raw + b"".join([resealed(line, header.salt) for line in lines])
    discard(files, path)
    fd = files.open(path, CREATE)
    try:
        write_all(files, fd, data)
        files.sync(fd)
    except OSError:
        files.close(fd)
        discard(files, path)
        raise
    return fd, len(data)


def name_rescue(files: FileSystem, directory: str) -> None:
    """Make a written rescue the open segment, durably.

    Raises:
        OSError: the disk refused.
    """
    files.rename(os.path.join(directory, NEW_NAME), os.path.join(directory, OPEN_NAME))
    files.sync_dir(directory)


def close_segment(files: FileSystem, directory: str, ordinal: int, first_seq: int) -> str:
    """Give the open segment its closed name, durably, and return that. Nothing is ever replaced.

    Raises:
        OSError: the disk refused, or a segment of that name is there.
    """
    name = closed_name(ordinal, first_seq)
    target = os.path.join(directory, name)
    if exists(files, target):
        raise FileExistsError(f"a segment {name} is there already")
    files.rename(os.path.join(directory, OPEN_NAME), target)
    files.sync_dir(directory)
    return name


def exists(files: FileSystem, path: str) -> bool:
    """Tell whether a name is taken."""
    try:
        files.stat(path)
    except FileNotFoundError:
        return False
    return True


def discard(files: FileSystem, path: str) -> None:
    """Remove a file that holds nothing that was ever acknowledged; if that fails, it is found at the next opening."""
    try:
        files.unlink(path)
    except OSError:
        return


def put(files: FileSystem, path: str, new: str, content: Iterable[bytes]) -> None:
    """Write a file whole and durably, or not at all: under the name `new` first, in the same directory.

    Raises:
        OSError: the disk refused; what had the name `path` has it still, unless only the sync of that name failed.
    """
    fd = files.open(new, CREATE)
    try:
        try:
            for piece in content:
                write_all(files, fd, piece)
            files.sync(fd)
        finally:
            files.close(fd)
        files.rename(new, path)
    except OSError:
        discard(files, new)
        raise
    files.sync_dir(os.path.dirname(path))


def chunks(files: FileSystem, fd: int, start: int, limit: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of an open file from `start` to `limit` or its end."""
    at = start
    while limit is None or at < limit:
        size = CHUNK_BYTES if limit is None else min(CHUNK_BYTES, limit - at)
        data = files.read(fd, size, at)
        if not data:
            return
        yield data
        at += len(data)


def file_sha256(files: FileSystem, path: str) -> str:
    """Return the hash of a file, as `prev_sha256` has it.

    Raises:
        OSError: it cannot be read.
    """
    digest = sha256()
    fd = files.open(path, READ)
    try:
        for chunk in chunks(files, fd, 0):
            digest.update(chunk)
    finally:
        files.close(fd)
    return digest.hexdigest()
