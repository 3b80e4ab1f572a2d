"""Objects as files below a directory, for `file://`: a disk that is mounted, a share, a folder that is synced.

Ours and not obstore's local store, because that has no conditional replacement and syncs nothing; so it needs no
extra package either.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES
from hashlib import md5

from agentsh.base.errors import StorageRefused, StorageUnavailable
from agentsh.base.ids import random_hex
from agentsh.log.files import LOCK_FILE, READ, FileSystem, RealFiles, make_dirs
from agentsh.log.segment import chunks, exists, put
from agentsh.stores.bucket import Found

LOCK = ".lock"


class FileBucket:
    """`ROOT/KEY`. Each object is written to another name, synced and renamed, under a lock on `ROOT/.lock`."""

    def __init__(self, root: str, *, files: FileSystem | None = None) -> None:
        self.url = f"file://{root}"
        self._root = root
        self._files = files or RealFiles()

    def ready(self) -> None:
        """Look whether the directory, or the nearest one above that there is, is one and takes files."""
        place = self._root
        while not os.path.lexists(place) and place not in ("/", ""):
            place = os.path.dirname(place)
        with self._told():
            os.listdir(place)
            if not os.access(place, os.W_OK | os.X_OK):  # asks the kernel, which knows of read-only mounts too
                raise PermissionError(EACCES, f"{place} cannot be written")

    def read(self, key: str) -> tuple[bytes, Found] | None:
        """Return an object's bytes with what it is."""
        with self._told(key):
            data = self._content(self._path(key))
        return None if data is None else (data, _found(key, data))

    def head(self, key: str) -> Found | None:
        """Return what an object is: the whole file is read, so that its hash is the truth."""
        found = self.read(key)
        return found[1] if found is not None else None

    def create(self, key: str, data: bytes) -> Found | None:
        """Make an object."""
        path = self._path(key)
        with self._told(key), self._locked():
            if exists(self._files, path):
                return None
            self._write(path, data)
        return _found(key, data)

    def replace(self, key: str, data: bytes, old: Found) -> Found | None:
        """Put new bytes in the place of `old`."""
        path = self._path(key)
        with self._told(key), self._locked():
            now = self._content(path)
            if now is None or _found(key, now).version != old.version:
                return None
            self._write(path, data)
        return _found(key, data)

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the names directly below `prefix`."""
        with self._told(prefix):
            try:
                names = self._files.listdir(self._path(prefix))
            except FileNotFoundError:
                names = []
        yield from sorted(name for name in names if not name.startswith("."))

    def _path(self, key: str) -> str:
        return os.path.join(self._root, *key.split("/"))

    def _content(self, path: str) -> bytes | None:
        try:
            fd = self._files.open(path, READ)
        except FileNotFoundError:
            return None
        try:
            return b"".join(chunks(self._files, fd, 0))
        finally:
            self._files.close(fd)

    def _write(self, path: str, data: bytes) -> None:
        files, place = self._files, os.path.dirname(path)
        make_dirs(files, place)
        new = os.path.join(place, f".{os.path.basename(path)}.{random_hex(4)}.new")
        put(files, path, new, [data])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_dirs(self._files, self._root)
        fd = self._files.open(os.path.join(self._root, LOCK), LOCK_FILE)
        try:
            with suppress(OSError):  # a share that knows no flock: then one machine at a time
                self._files.lock(fd, exclusive=True, wait=True)
            yield
        finally:
            self._files.close(fd)

    @contextmanager
    def _told(self, key: str = "") -> Iterator[None]:
        at = f"{self.url}: {key}: " if key else f"{self.url}: "
        try:
            yield
        except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
            raise StorageRefused(f"{at}{error.strerror}") from error
        except OSError as error:
            raise StorageUnavailable(f"{at}{error.strerror or error}") from error


def _found(key: str, data: bytes) -> Found:
    digest = md5(data, usedforsecurity=False).hexdigest()
    return Found(key, len(data), digest, digest)
