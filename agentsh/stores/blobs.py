"""Blobs as files: content-addressed, compressed, shared by all sessions of a home, and never half there."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from agentsh.base.errors import BlobMissing, LogWriteFailed
from agentsh.base.ids import random_hex
from agentsh.base.pattern import later
from agentsh.log.files import LOCK_FILE, READ, FileSystem, RealFiles, make_dirs
from agentsh.log.reserve import NO_ROOM, what_to_do
from agentsh.log.segment import chunks, exists, put
from agentsh.stores.blob_room import Rooms

LEVEL = 3
"""zstd level: 75 % saved at over 300 MB/s (reference/durability.md, table e)."""
MAX_REMEMBERED = 20_000

_REF = later(r"sha256:([0-9a-f]{64})")


class FileBlobs:
    """`DIR/ab/SHA256.zst`: one zstd frame with a content checksum, its name the hash of what is in it.

    A blob is written to a file of another name, synced, renamed, and its directory synced, before `put` returns.
    Files that are there already and read right are not written again; damaged ones are replaced.
    """

    def __init__(self, directory: str | Path, *, files: FileSystem | None = None) -> None:
        self._directory = os.fspath(directory)
        self._files = files or RealFiles()
        self._durable: set[str] = set()
        self._places: set[str] = set()
        self._local = threading.local()
        self._rooms = Rooms(self._files, self._directory)

    def keep_room(self, more: int) -> None:
        """See `agentsh.stores.blob_room`."""
        with suppress(OSError):
            if more > 0:
                if not exists(self._files, self._directory):
                    self._files.mkdir(self._directory)  # whoever puts something in makes its name durable
                if not exists(self._files, self._lock_path):
                    self._files.close(self._files.open(self._lock_path, LOCK_FILE))
        self._rooms.want(more)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the shared lock on `DIR/lock` from the first `put` inside to the end; `gc` takes it exclusively."""
        depth = getattr(self._local, "depth", 0)
        self._local.depth = depth + 1
        try:
            yield
        finally:
            self._local.depth = depth
            fd = getattr(self._local, "fd", None)
            if depth == 0 and fd is not None:
                self._local.fd = None
                self._files.close(fd)

    def put(self, data: bytes) -> str:
        """Keep `data` durably and return its ref."""
        name = sha256(data).hexdigest()
        try:
            with self.writing():
                self._lock()
                if not (name in self._durable and self._size(name)):
                    self._keep(name, data)
                    self._remember(name)
                    self._rooms.refill()
        except OSError as error:
            raise LogWriteFailed(f"cannot save a blob: {error.strerror or error}", hint=what_to_do(error)) from error
        return f"sha256:{name}"

    def get(self, ref: str) -> bytes:
        """Return the bytes of `ref`, checked against it."""
        found = _REF.fullmatch(ref)
        if found is None:
            raise BlobMissing(f"{ref[:80]!r} names no blob")
        data = self._read(found[1])
        if data is None:
            raise BlobMissing(f"blob {ref} is missing or damaged", hint="`agentsh verify` tells what else is")
        return data

    def _lock(self) -> None:
        if getattr(self._local, "fd", None) is None:
            self._make(self._directory)
            fd = self._files.open(self._lock_path, LOCK_FILE)
            self._local.fd = fd
            with suppress(OSError):  # no flock on this file system: gc cannot run there either
                self._files.lock(fd, exclusive=False, wait=True)

    def _make(self, place: str) -> None:
        """See to it that a directory is there, and once that its name is durable."""
        if place not in self._places or not exists(self._files, place):
            make_dirs(self._files, place)
            self._places.add(place)

    @property
    def _lock_path(self) -> str:
        return os.path.join(self._directory, "lock")

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name[:2], f"{name}.zst")

    def _size(self, name: str) -> int:
        try:
            return self._files.stat(self._path(name)).size
        except OSError:
            return 0

    def packed(self, name: str) -> bytes | None:
        """Return the bytes of a blob's file, or None where it is not there whole. name: 64 hex digits."""
        packed = self._file(name)
        return packed if packed is not None and unpacked(name, packed) is not None else None

    def _file(self, name: str) -> bytes | None:
        try:
            fd = self._files.open(self._path(name), READ)
        except OSError:
            return None
        try:
            return b"".join(chunks(self._files, fd, 0))
        except OSError:
            return None
        finally:
            self._files.close(fd)

    def _read(self, name: str) -> bytes | None:
        """Return the bytes of a blob, or None where it is not there whole."""
        packed = self._file(name)
        return None if packed is None else unpacked(name, packed)

    def _keep(self, name: str, data: bytes) -> None:
        try:
            self._write(name, data)
        except OSError as error:
            packed = _pack(data)
            room = self._rooms.take(len(packed)) if error.errno in NO_ROOM else None
            if room is None:
                raise
            room.become(self._path(name), packed)

    def _write(self, name: str, data: bytes) -> None:
        files, path = self._files, self._path(name)
        place = os.path.dirname(path)
        self._make(place)
        if self._read(name) is None:
            new = os.path.join(place, f".{name}.{os.getpid()}.{random_hex(4)}.new")
            put(files, path, new, [_pack(data)])
        else:
            files.sync_dir(place)  # whoever renamed it may not have come this far

    def _remember(self, name: str) -> None:
        if len(self._durable) >= MAX_REMEMBERED:
            self._durable.clear()
        self._durable.add(name)


def unpacked(name: str, packed: bytes) -> bytes | None:
    """Return the bytes of the blob `name` from its file, or None where they are not those of its name."""
    data = _unpack(packed)
    return data if data is not None and sha256(data).hexdigest() == name else None


def _pack(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)


def _unpack(packed: bytes) -> bytes | None:
    """Return what is in one whole frame, or None. Trusts no length that the frame claims."""
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        data = frame.decompress(packed)
    except (zstandard.ZstdError, MemoryError):
        return None
    return data if frame.eof else None
