"""Disks for tests behind the file-system port: one in memory, and one that fails when it is told to."""

import errno
import os
from collections.abc import Callable
from typing import Any

from agentsh.log.files import LOCK_FILE, READ, WRITE, FileSystem, RealFiles, Stat


class _Node:
    def __init__(self, number: int, *, is_dir: bool) -> None:
        self.number = number
        self.is_dir = is_dir
        self.data = bytearray()
        self.locks: dict[int, bool] = {}


def _error(number: int, path: str = "") -> OSError:
    return OSError(number, os.strerror(number), path)


class MemFiles:
    """A file system in memory, for scans by the thousand. synced: what was asked to be durable, in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {"/": _Node(1, is_dir=True)}
        self.fds: dict[int, tuple[_Node, int]] = {}
        self.synced: list[str] = []
        self._next = 100

    def put(self, path: str, data: bytes) -> None:
        """Make a file with its directories, for tests."""
        parts = path.strip("/").split("/")
        for n in range(1, len(parts)):
            self.nodes.setdefault("/" + "/".join(parts[:n]), self._node(is_dir=True))
        node = self.nodes.setdefault(path, self._node(is_dir=False))
        node.data[:] = data

    def data(self, path: str) -> bytes:
        """Return what is in a file."""
        return bytes(self.nodes[path].data)

    def _node(self, *, is_dir: bool) -> _Node:
        self._next += 1
        return _Node(self._next, is_dir=is_dir)

    def _find(self, path: str) -> _Node:
        try:
            return self.nodes[path]
        except KeyError:
            raise _error(errno.ENOENT, path) from None

    def open(self, path: str, flags: int) -> int:
        if flags & os.O_CREAT:
            self._find(os.path.dirname(path))
            if path in self.nodes and flags & os.O_EXCL:
                raise _error(errno.EEXIST, path)
            self.nodes.setdefault(path, self._node(is_dir=False))
        self._next += 1
        self.fds[self._next] = (self._find(path), flags)
        return self._next

    def close(self, fd: int) -> None:
        node, _ = self.fds.pop(fd)
        node.locks.pop(fd, None)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return bytes(self.fds[fd][0].data[offset : offset + size])

    def write(self, fd: int, data: bytes) -> int:
        node, flags = self.fds[fd]
        assert flags != READ
        if flags == LOCK_FILE:
            node.data[:] = data
        else:
            node.data += data
        return len(data)

    def rewrite(self, fd: int, data: bytes, offset: int) -> int:
        assert self.fds[fd][1] == WRITE
        assert self.fds[fd][0].data[offset : offset + len(data)] == data
        return len(data)

    def truncate(self, fd: int, size: int) -> None:
        del self.fds[fd][0].data[size:]

    def reserve(self, fd: int, start: int, size: int) -> None:
        assert self.fds[fd][0].data[start:] == b""

    def free(self, path: str) -> int:
        return 1 << 40

    def sync(self, fd: int) -> None:
        self.synced.append(next((p for p, n in tuple(self.nodes.items()) if n is self.fds[fd][0]), "?"))

    def sync_dir(self, path: str) -> None:
        assert self._find(path).is_dir
        self.synced.append(path)

    def size(self, fd: int) -> int:
        return len(self.fds[fd][0].data)

    def fstat(self, fd: int) -> Stat:
        return _stat(self.fds[fd][0])

    def stat(self, path: str) -> Stat:
        return _stat(self._find(path))

    def mkdir(self, path: str) -> None:
        self._find(os.path.dirname(path))
        if path in self.nodes:
            raise _error(errno.EEXIST, path)
        self.nodes[path] = self._node(is_dir=True)

    def rmdir(self, path: str) -> None:
        if self.listdir(path):
            raise _error(errno.ENOTEMPTY, path)
        del self.nodes[path]

    def rename(self, source: str, target: str) -> None:
        self.nodes[target] = self._find(source)
        del self.nodes[source]
        for path in [p for p in self.nodes if p.startswith(source + "/")]:
            self.nodes[target + path.removeprefix(source)] = self.nodes.pop(path)

    def link(self, source: str, target: str) -> None:
        if target in self.nodes:
            raise _error(errno.EEXIST, target)
        self.nodes[target] = self._find(source)

    def unlink(self, path: str) -> None:
        self._find(path)
        del self.nodes[path]

    def listdir(self, path: str) -> list[str]:
        assert self._find(path).is_dir
        return [os.path.basename(p) for p in tuple(self.nodes) if p != "/" and os.path.dirname(p) == path]

    def subdirs(self, path: str) -> list[str]:
        return [name for name in self.listdir(path) if self.nodes[os.path.join(path, name)].is_dir]

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        node = self.fds[fd][0]
        others = [mode for other, mode in node.locks.items() if other != fd]
        if others and (exclusive or any(others)):
            return False
        node.locks[fd] = exclusive
        return True


def _stat(node: _Node) -> Stat:
    return Stat(len(node.data), node.number, node.is_dir, 0)


class PowerCut(MemFiles):
    """A disk that keeps only what was synced: bytes by `sync`, names by `sync_dir`. `left` is what a cut leaves.

    A directory's changes may reach the disk in any order, so that a cut may also keep the removals or the creations
    of the last moments, and no rename that came before them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[str, _Node] = {}
        self._removed: set[str] = set()
        self._made: dict[str, _Node] = {}

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        if flags & os.O_CREAT:
            self._made[path] = self.nodes[path]
        return fd

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._removed.add(path)

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self._bytes[self.nodes[path].number] = data
        self._names = dict(self.nodes)

    def sync(self, fd: int) -> None:
        node = self.fds[fd][0]
        self._bytes[node.number] = bytes(node.data)

    def sync_dir(self, path: str) -> None:
        inside = {p: n for p, n in self.nodes.items() if os.path.dirname(p) == path}
        self._names = {p: n for p, n in self._names.items() if os.path.dirname(p) != path} | inside
        self._removed = {p for p in self._removed if os.path.dirname(p) != path}
        self._made = {p: n for p, n in self._made.items() if os.path.dirname(p) != path}

    def left(self) -> list[MemFiles]:
        """Return the disks that a power cut may leave, at their worst."""
        removed = {p: n for p, n in self._names.items() if p not in self._removed}
        return [self._disk(names) for names in (self._names, removed, self._names | self._made)]

    def _disk(self, names: dict[str, _Node]) -> MemFiles:
        after = MemFiles()
        for path, node in names.items():
            if not node.is_dir:
                after.put(path, self._bytes.get(node.number, b""))
        return after


class FaultyFiles:
    """Another file system, whose n-th operation fails with an error: once, or from then on.

    only: names of the operations that count; none: all but `close`, which cannot be let fail without a leak.
    short: a `write` does not fail but takes only that many bytes. ops: the names of those that were counted.
    """

    def __init__(
        self, inner: FileSystem, fail_at: int = 0, error: int = errno.EIO, *,
        for_ever: bool = False, only: tuple[str, ...] = (), short: int = 0,
    ) -> None:  # fmt: skip
        self._inner = inner
        self.fail_at = fail_at
        self.error = error
        self.for_ever = for_ever
        self.only = only
        self.short = short
        self.ops: list[str] = []

    @property
    def hit(self) -> bool:
        """Tell whether anything failed."""
        return 0 < self.fail_at <= len(self.ops)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self._inner, name)
        if name == "close" or (self.only and name not in self.only):
            return real  # type: ignore[no-any-return]  # it is a bound method of the inner file system

        def operation(*args: Any, **more: Any) -> Any:
            self.ops.append(name)
            n = len(self.ops)
            if n == self.fail_at or (self.for_ever and 0 < self.fail_at <= n):
                if name == "write" and self.short:
                    return real(args[0], args[1][: self.short])
                raise _error(self.error)
            return real(*args, **more)

        return operation


class UnsyncedFiles(RealFiles):
    """The machine's file system, for tests by the thousand that have nothing to do with power cuts."""

    def sync(self, fd: int) -> None:
        return

    def sync_dir(self, path: str) -> None:
        return
