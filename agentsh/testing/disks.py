"""A disk in memory that forgets at a power cut what nobody synced, in every way that real disks are allowed to.

What survives: the data and size of a file up to its last sync, the names in a directory up to the last sync of that
directory. Of everything later, any part: see `survivors` for bytes; each change of a name by itself, in any
combination, but a move to another directory never leaves a file without a name. A failed sync drops the data and
takes it for clean, as Linux does (Rebello et al., ATC 2020). Deterministic: the same dice, the same disk.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from agentsh.log.files import LOCK_FILE, READ, Stat

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class _Write(NamedTuple):
    offset: int
    data: bytes


class _Cut(NamedTuple):
    size: int


class _Name:
    """One unsynced change of the names in a directory. needs: without it this one cannot have happened."""

    def __init__(
        self, add: "tuple[str, _Inode] | None", remove: "tuple[str, _Inode] | None", needs: "_Name | None" = None
    ) -> None:
        self.add = add
        self.remove = remove
        self.needs = needs
        self.synced = False

    def apply(self, names: "dict[str, _Inode]") -> None:
        if self.remove is not None and names.get(self.remove[0]) is self.remove[1]:
            del names[self.remove[0]]
        if self.add is not None:
            names[self.add[0]] = self.add[1]


class _Inode:
    """A file or directory: what the kernel shows, what the disk has for certain, and the changes between them."""

    def __init__(self, number: int, *, is_dir: bool) -> None:
        self.number = number
        self.is_dir = is_dir
        self.data = bytearray()
        self.base = b""
        self.writes: list[_Write | _Cut] = []
        self.names: dict[str, _Inode] = {}
        self.base_names: dict[str, _Inode] = {}
        self.moves: list[_Name] = []
        self.locks: dict[int, bool] = {}

    def change(self, move: _Name) -> None:
        self.moves.append(move)
        move.apply(self.names)


class _Opened(NamedTuple):
    inode: _Inode
    flags: int


def _error(number: int, path: str = "") -> OSError:
    return OSError(number, os.strerror(number), path)


def applied(base: bytes, writes: Sequence[_Write | _Cut]) -> bytearray:
    """Return a file's bytes after some of its writes; what was never written between two of them is NULs."""
    data = bytearray(base)
    for write in writes:
        if isinstance(write, _Cut):
            del data[write.size :]
        else:
            data.extend(bytes(max(0, write.offset - len(data))))
            data[write.offset : write.offset + len(write.data)] = write.data
    return data


def survivors(base: bytes, writes: Sequence[_Write | _Cut], dice: Random) -> bytes:
    """Return what a power cut leaves of a file: none of its unsynced writes, all, a part, or any sectors of them.

    Sectors that were not written may be NULs, or hold what was there before the file grew over them.
    """
    if not writes:
        return base
    how = dice.choices(("none", "all", "prefix", "some", "size", "sectors", "stale"), (3, 3, 4, 3, 1, 5, 1))[0]
    if how == "none":
        return base
    if how == "prefix":
        n = dice.randrange(len(writes))
        last = writes[n]
        part = (
            [last._replace(data=last.data[: dice.randrange(len(last.data) + 1)])] if isinstance(last, _Write) else []
        )
        return bytes(applied(base, [*writes[:n], *part]))
    if how == "some":
        return bytes(applied(base, [write for write in writes if dice.random() < 0.5]))
    final = bytes(applied(base, writes))
    if how == "all":
        return final
    size = len(final) if dice.random() < 0.7 else dice.randint(*sorted((len(base), len(final))))
    data = bytearray(base[:size]) + bytes(max(0, size - len(base)))
    if how == "size":
        return bytes(data)
    odds = dice.choice((0.2, 0.5, 0.9))
    for sector in _touched(writes):
        place = slice(sector * SECTOR, min((sector + 1) * SECTOR, size))
        if place.start >= size:
            continue
        if dice.random() < odds:
            data[place] = final[place].ljust(place.stop - place.start, b"\0")
        elif how == "stale" and place.start >= len(base) and len(final) > SECTOR:
            old = dice.randrange(len(final) // SECTOR) * SECTOR
            data[place] = final[old : old + place.stop - place.start].ljust(place.stop - place.start, b"\0")
    return bytes(data)


def _touched(writes: Sequence[_Write | _Cut]) -> list[int]:
    found: set[int] = set()
    for write in writes:
        if isinstance(write, _Write) and write.data:
            found.update(range(write.offset // SECTOR, (write.offset + len(write.data) - 1) // SECTOR + 1))
    return sorted(found)


class SimDisk:
    """A file system behind the port of `agentsh.log.files`. Paths are absolute."""

    def __init__(self) -> None:
        self._numbers = 1
        self._root = _Inode(1, is_dir=True)
        self._fds: dict[int, _Opened] = {}

    # What becomes of it.

    def after_cut(self, dice: Random | None) -> "SimDisk":
        """Return the disk that the next boot finds. This one stays as it is.

        dice: decide what survives of what nobody synced. None: nothing does.
        """
        disk = SimDisk()
        alive: dict[int, bool] = {}
        inodes = list(self._all())
        for inode in inodes:
            count = len(inode.moves)
            surviving = [False] * count if dice is None else _names_that_survive(count, dice)
            alive.update((id(move), survives) for move, survives in zip(inode.moves, surviving, strict=True))
        copies: dict[int, _Inode] = {}
        for inode in inodes:
            copy = copies[inode.number] = disk._inode(is_dir=inode.is_dir) if inode is not self._root else disk._root
            copy.base = inode.base if dice is None else survivors(inode.base, inode.writes, dice)
            copy.data[:] = copy.base
        for inode in inodes:
            names = dict(inode.base_names)
            for move in inode.moves:
                needed = move.needs is None or move.needs.synced or alive.get(id(move.needs), False)
                if alive[id(move)] and needed:
                    move.apply(names)
            copy = copies[inode.number]
            copy.names = {name: copies[node.number] for name, node in names.items()}
            copy.base_names = dict(copy.names)
        return disk

    def kill(self) -> None:
        """End the process: its descriptors and locks go, what the kernel has stays."""
        for fd in list(self._fds):
            self.close(fd)

    def _all(self) -> Iterator[_Inode]:
        """Yield every file and directory that has, had or may get a name, once."""
        seen: set[int] = set()
        todo = [self._root]
        while todo:
            inode = todo.pop()
            if inode.number in seen:
                continue
            seen.add(inode.number)
            yield inode
            todo += [*inode.names.values(), *inode.base_names.values()]
            todo += [move.add[1] for move in inode.moves if move.add is not None]

    # For tests.

    def tree(self, path: str = "/") -> dict[str, bytes]:
        """Return the bytes of all files below a directory, by path."""
        found: dict[str, bytes] = {}
        for name, inode in sorted(self._find(path).names.items()):
            inner = os.path.join(path, name)
            found.update(self.tree(inner) if inode.is_dir else {inner: bytes(inode.data)})
        return found

    def flip(self, path: str, offset: int, bits: int) -> None:
        """Change a byte where it lies, in the kernel and on the disk: rot."""
        inode = self._find(path)
        inode.data[offset] ^= bits
        base = bytearray(inode.base)
        if offset < len(base):
            base[offset] ^= bits
            inode.base = bytes(base)

    def unsynced(self, fd: int) -> int:
        """Return how many writes to an open file are not durable."""
        return len(self._fds[fd].inode.writes)

    def fail_sync(self, fd: int, *, evict: bool) -> None:
        """Do what a failed fsync does: forget the unsynced writes. evict: also what the kernel shows of them."""
        inode = self._fds[fd].inode
        inode.writes.clear()
        if evict:
            inode.data[:] = inode.base

    # The port.

    def open(self, path: str, flags: int) -> int:
        """Open a file."""
        parent, name = self._parent(path)
        inode = parent.names.get(name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise _error(errno.ENOENT, path)
            inode = self._inode(is_dir=False)
            parent.change(_Name((name, inode), None))
        elif flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        elif inode.is_dir:
            raise _error(errno.EISDIR, path)
        self._numbers += 1
        self._fds[self._numbers] = _Opened(inode, flags)
        return self._numbers

    def close(self, fd: int) -> None:
        """Give a descriptor back."""
        self._fds.pop(fd).inode.locks.pop(fd, None)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Read what the kernel has."""
        return bytes(self._fds[fd].inode.data[offset : offset + size])

    def write(self, fd: int, data: bytes) -> int:
        """Append; a lock file is written from its start."""
        inode, flags = self._fds[fd]
        if flags == READ:
            raise _error(errno.EBADF)
        write = _Write(0 if flags == LOCK_FILE else len(inode.data), bytes(data))
        inode.writes.append(write)
        inode.data[write.offset : write.offset + len(data)] = data
        return len(data)

    def rewrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write over what is there."""
        inode = self._fds[fd].inode
        inode.writes.append(_Write(offset, bytes(data)))
        inode.data[offset : offset + len(data)] = data
        return len(data)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file."""
        inode = self._fds[fd].inode
        if size < len(inode.data):
            del inode.data[size:]
            inode.writes.append(_Cut(size))

    def reserve(self, fd: int, start: int, size: int) -> None:
        """Keep room, of which there is no end here."""

    def free(self, path: str) -> int:
        """Return plenty."""
        return 1 << 40

    def sync(self, fd: int, upto: int | None = None) -> None:
        """Make the writes of a file durable. upto: only so many; the others came while the sync was under way."""
        inode = self._fds[fd].inode
        n = len(inode.writes) if upto is None else upto
        inode.base = bytes(applied(inode.base, inode.writes[:n]))
        del inode.writes[:n]

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        inode = self._find(path)
        for move in inode.moves:
            move.synced = True
        # A move between directories is one change on the disk: the old name goes with the new one, never before it.
        for move in inode.moves:
            if move.needs is None or move.needs.synced:
                move.apply(inode.base_names)
        inode.moves = [move for move in inode.moves if move.needs is not None and not move.needs.synced]

    def size(self, fd: int) -> int:
        """Return the length of an open file."""
        return len(self._fds[fd].inode.data)

    def fstat(self, fd: int) -> Stat:
        """Describe an open file."""
        return _stat(self._fds[fd].inode)

    def stat(self, path: str) -> Stat:
        """Describe a name."""
        return _stat(self._find(path))

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        parent, name = self._parent(path)
        if name in parent.names:
            raise _error(errno.EEXIST, path)
        parent.change(_Name((name, self._inode(is_dir=True)), None))

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        parent, name = self._parent(path)
        inode = self._find(path)
        if inode.names:
            raise _error(errno.ENOTEMPTY, path)
        parent.change(_Name(None, (name, inode)))

    def rename(self, source: str, target: str) -> None:
        """Move a name."""
        inode = self._find(source)
        (old, old_name), (new, new_name) = self._parent(source), self._parent(target)
        if old is new:
            old.change(_Name((new_name, inode), (old_name, inode)))
        else:
            add = _Name((new_name, inode), None)
            new.change(add)
            old.change(_Name(None, (old_name, inode), needs=add))

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        parent, name = self._parent(target)
        if name in parent.names:
            raise _error(errno.EEXIST, target)
        parent.change(_Name((name, self._find(source)), None))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        parent, name = self._parent(path)
        parent.change(_Name(None, (name, self._find(path))))

    def listdir(self, path: str) -> list[str]:
        """Return the names."""
        inode = self._find(path)
        if not inode.is_dir:
            raise _error(errno.ENOTDIR, path)
        return list(inode.names)

    def subdirs(self, path: str) -> list[str]:
        """Return the directories' names."""
        return [name for name, inode in self._find(path).names.items() if inode.is_dir]

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        """Take a flock; nobody ever waits, as there is one thread."""
        locks = self._fds[fd].inode.locks
        others = [mode for other, mode in locks.items() if other != fd]
        if others and (exclusive or any(others)):
            return False
        locks[fd] = exclusive
        return True

    def _inode(self, *, is_dir: bool) -> _Inode:
        self._numbers += 1
        return _Inode(self._numbers, is_dir=is_dir)

    def _find(self, path: str) -> _Inode:
        inode = self._root
        for part in path.split("/"):
            if part:
                if part not in inode.names:
                    raise _error(errno.ENOENT, path)
                inode = inode.names[part]
        return inode

    def _parent(self, path: str) -> tuple[_Inode, str]:
        parent, _, name = path.rpartition("/")
        return self._find(parent), name


def _stat(inode: _Inode) -> Stat:
    return Stat(len(inode.data), inode.number, inode.is_dir, 0)


def _names_that_survive(count: int, dice: Random) -> list[bool]:
    """Return which of the changes in one directory are there: none, all, the first ones, or any."""
    how = dice.choice(("none", "all", "prefix", "some"))
    if how == "some":
        return [dice.random() < 0.5 for _ in range(count)]
    n = dice.randint(0, count) if how == "prefix" else count if how == "all" else 0
    return [at < n for at in range(count)]
