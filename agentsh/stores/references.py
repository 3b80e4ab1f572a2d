"""Which blobs anything in a directory refers to: by its bytes, whatever they mean, so that no reference is missed."""

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from agentsh.log.depths import walk
from agentsh.log.files import RealFiles
from agentsh.log.packed import Contents, TooNew
from agentsh.log.plain import open_plain

QUARANTINE = "quarantine"
CHECKPOINT = ".ckpt.zst"
CHUNK_BYTES = 1 << 20
LONGEST = 90
"""Bytes of a reference with the member's name before it; so many are looked at again behind each chunk."""

_REF = re.compile(rb"sha256:([0-9a-f]{64})")
_SNAPSHOT = re.compile(rb'"snapshot":"sha256:([0-9a-f]{64})"')


class NotReadable(Exception):
    """A file could not be read to its end, so that nobody knows what it refers to."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class References:
    """What was found. names: of blobs, 64 hex digits. snapshots: those whose content refers to others."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.snapshots: set[str] = set()

    def add(self, data: bytes) -> None:
        """Take what bytes refer to."""
        self.names.update(name.decode() for name in _REF.findall(data))
        self.snapshots.update(name.decode() for name in _SNAPSHOT.findall(data))


class Stamp(NamedTuple):
    """One state of a file."""

    size: int
    mtime_ns: int
    inode: int


def files_in(top: str) -> Iterator[tuple[str, Stamp]]:
    """Yield the plain files of a tree, behind links too: a session may have been moved to another disk.

    Raises:
        NotReadable: a directory does not read, or is a link to what is not there.
    """
    seen: set[str] = set()

    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError) or os.path.lexists(error.filename):
            raise NotReadable(str(error.filename), error.strerror or str(error))

    for directory, inside, names in walk(top, failed=failed, follow=True):
        if (place := os.path.realpath(directory)) in seen:  # a second name for it, or a circle
            inside.clear()
            continue
        seen.add(place)
        for name in names:
            path = os.path.join(directory, name)
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                continue
            yield path, Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def read_references(path: str, found: References) -> int:
    """Take what a file refers to, unpacked where it is packed; return its size.

    What lies in quarantine may be anything, and a checkpoint that does not read is used by nobody: what reads counts.

    Raises:
        NotReadable: any other file does not read, or does not unpack.
    """
    lenient = QUARANTINE in path.split(os.sep) or path.endswith(CHECKPOINT)
    size = 0
    rest = b""
    try:
        for chunk in _content(path):
            size += len(chunk)
            found.add(rest + chunk)
            rest = (rest + chunk)[-LONGEST:]
    except FileNotFoundError:  # a segment was sealed, a checkpoint removed: what came instead is looked at again
        if os.path.lexists(path):
            raise NotReadable(path, "a link to what is not there") from None
        return size
    except (OSError, ValueError) as error:
        if not lenient:
            raise NotReadable(path, getattr(error, "strerror", None) or str(error)) from error
    return size


def _content(path: str) -> Iterator[bytes]:
    name = os.path.basename(path)
    if name.startswith("archive.") and name.endswith(".jsonl.zst"):  # in quarantine it may have a number
        return _archived(path)
    return _unpacked(path) if path.endswith(".zst") else _plain(path)


def _archived(path: str) -> Iterator[bytes]:
    """Yield the content of an archive as far as it unpacks.

    Raises:
        ValueError: that is not all of it.
    """
    lost = False
    try:
        with Contents(RealFiles(), path) as contents:
            for member, pieces in contents.parts():
                digest = sha256()
                for piece in pieces:
                    digest.update(piece)
                    yield piece
                lost = lost or digest.hexdigest() != (member.sha256 or digest.hexdigest())
            lost = lost or not (contents.told or contents.ended)
    except TooNew as error:
        raise ValueError(f"it is of the newer format {error}") from None
    if lost:
        raise ValueError("it does not unpack to its end")


def _plain(path: str) -> Iterator[bytes]:
    with open(path, "rb", opener=open_plain) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _unpacked(path: str) -> Iterator[bytes]:
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with open(path, "rb", opener=open_plain) as file, unpacker.stream_reader(file, read_across_frames=True) as reader:
        try:
            while chunk := reader.read(CHUNK_BYTES):
                yield chunk
        except zstandard.ZstdError as error:
            raise ValueError(f"it does not unpack: {error}") from None
