"""Room for the blobs of the last records: files with blocks of their own that become them on a disk that is full.

Like the blocks behind the end of the open segment (`agentsh.log.reserve`) nobody else can have these. Each lies in
a directory of its own, which has a block already: it becomes that of the blob where there is none yet.

Whoever makes one holds `BLOBS/lock` shared, and whoever sweeps exclusively: one that is half made has no lock of its
own yet, and looks like that of a dead process.
"""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentsh.base.ids import random_hex
from agentsh.log.files import CREATE, LOCK_FILE, READ, FileSystem, write_all
from agentsh.log.reserve import NOT_HERE
from agentsh.log.segment import exists

ROOMS = 2
"""The long texts of one event: what the model and what the user sees of a tool's output."""
ROOM_BYTES = 64 << 10
"""Of a packed blob; a quarter of a megabyte of text."""
LEAST_FREE = 16
"""Rooms that the disk must have left before one is kept: the open segment's own is worth more."""

_PREFIX = ".room-"
_FILE = "blob"


class Room:
    """A file in wait. Its lock tells others that somebody lives who means to use it."""

    def __init__(self, files: FileSystem, blobs: str) -> None:
        """Make it.

        Raises:
            OSError: the disk has no room, or cannot keep any; nothing is left behind.
        """
        self._files = files
        self._blobs = blobs
        self._place = os.path.join(blobs, f"{_PREFIX}{os.getpid()}-{random_hex(4)}")
        self._path = os.path.join(self._place, _FILE)
        self._fd = -1
        files.mkdir(self._place)
        try:
            self._fd = files.open(self._path, CREATE)
            if not files.lock(self._fd, exclusive=True, wait=False) or not exists(files, self._path):
                raise BlockingIOError(errno.EAGAIN, "somebody takes it away")
            files.reserve(self._fd, 0, ROOM_BYTES)
        except OSError:
            self.give_back()
            raise

    def become(self, path: str, packed: bytes) -> None:
        """Be the file `path`, `BLOBS/ab/NAME`, durably. The room is gone then, whatever comes of it.

        Raises:
            OSError: the disk refused all the same.
        """
        files, place = self._files, os.path.dirname(path)
        try:
            write_all(files, self._fd, packed)
            files.sync(self._fd)
            with suppress(OSError):
                files.truncate(self._fd, len(packed))  # what it does not take of its blocks is everybody's
            if not self._is_directory_of(place, os.path.basename(path)):
                files.rename(self._path, path)
            files.sync_dir(place)
        finally:
            self.give_back()

    def _is_directory_of(self, place: str, name: str) -> bool:
        """Become the directory of the blob as well, with the blob in it, where there is none; tell whether we did."""
        files = self._files
        if exists(files, place):
            return False
        inside = os.path.join(self._place, name)
        files.rename(self._path, inside)
        self._path = inside
        files.sync_dir(self._place)
        try:
            files.rename(self._place, place)
        except OSError:  # somebody has made it meanwhile
            return False
        files.sync_dir(self._blobs)
        return True

    def give_back(self) -> None:
        """Take it away. Idempotent; nothing here raises."""
        files = self._files
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with suppress(OSError):
                files.close(fd)
        with suppress(OSError):
            files.unlink(self._path)
        with suppress(OSError):
            files.rmdir(self._place)


class Rooms:
    """The rooms of one process. They are there as long as some writer wants them, and the disk has any to give."""

    def __init__(self, files: FileSystem, blobs: str) -> None:
        self._files = files
        self._blobs = blobs
        self._state = threading.Lock()
        self._wanted = 0
        self._able = True
        self._rooms: list[Room] = []

    def want(self, more: int) -> None:
        """Take note of a writer that comes (1), or goes (-1). Nothing here raises: a log works without."""
        with self._state:
            self._wanted += more
            if more > 0 and self._wanted == more:
                sweep(self._files, self._blobs)
            self._fill()
            while self._rooms and not self._wanted:
                self._rooms.pop().give_back()

    def refill(self) -> None:
        """Make those again that were used, where the disk has room again."""
        if self._wanted and len(self._rooms) < ROOMS:
            with self._state:
                self._fill()

    def take(self, size: int) -> Room | None:
        """Return a room for so many bytes, which is the caller's from then on."""
        with self._state:
            return self._rooms.pop() if self._rooms and size <= ROOM_BYTES else None

    def _fill(self) -> None:
        try:
            with _locked(self._files, self._blobs, exclusive=False) as locked:
                while locked and self._able and self._wanted and len(self._rooms) < ROOMS:
                    if self._files.free(self._blobs) < LEAST_FREE * ROOM_BYTES:
                        return
                    self._rooms.append(Room(self._files, self._blobs))
        except OSError as error:
            if error.errno in NOT_HERE:
                self._able = False


def sweep(files: FileSystem, blobs: str) -> None:
    """Remove the rooms of the dead; another time, if somebody makes one or writes a blob. Nothing here raises."""
    with suppress(OSError), _locked(files, blobs, exclusive=True) as locked:
        for name in files.listdir(blobs) if locked else ():
            if name.startswith(_PREFIX):
                place = os.path.join(blobs, name)
                with suppress(OSError):
                    _sweep_one(files, place)
                    files.rmdir(place)


@contextmanager
def _locked(files: FileSystem, blobs: str, *, exclusive: bool) -> Iterator[bool]:
    """Hold `BLOBS/lock`; tell whether we do. Where it is not there nobody has kept room yet, and nothing is to hold.

    Raises:
        OSError: it cannot be opened, or locked.
    """
    path = os.path.join(blobs, "lock")
    if not exists(files, path):
        yield True
        return
    fd = files.open(path, LOCK_FILE)
    try:
        yield files.lock(fd, exclusive=exclusive, wait=False)
    finally:
        files.close(fd)


def _sweep_one(files: FileSystem, place: str) -> None:
    for name in files.listdir(place):
        path = os.path.join(place, name)
        fd = files.open(path, READ)
        try:
            if not files.lock(fd, exclusive=True, wait=False):
                return
            files.unlink(path)
        finally:
            files.close(fd)
