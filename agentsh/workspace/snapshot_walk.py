"""Looks through a workspace for a snapshot: one stat for each name, and nothing is read whose stat is as before.

Directories are opened relative to the one above, never through a link, so that what a snapshot holds is from inside
the workspace whatever is swapped meanwhile.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

from agentsh.base.light import dataclass, field
from agentsh.workspace.copy import TooMuch
from agentsh.workspace.git_names import ALTERNATES, KEEP_MARK, PACKS, SCRATCH
from agentsh.workspace.ignore import CACHES, GITIGNORE, MAX_GITIGNORE_BYTES, Ignore
from agentsh.workspace.trees import Node, Nodes

MAYBE_CACHES = frozenset(
    {"build", "dist", "target", "out", ".next", ".nuxt", ".gradle", ".cache", "coverage", "htmlcov", ".eggs"}
)
"""Names that are caches where a .gitignore excludes them, and somebody's work where none does."""
MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""A directory that holds one of these is a cache by its own word."""
MAX_ENTRIES = 200_000
MAX_TREE_BYTES = 4_000_000_000
MAX_LEVELS = 200
"""Directories below one another: each holds a descriptor, and processes may have 1,024."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Key = tuple[int, int, int, int, int]
"""Inode, mode, size, mtime and ctime: a file with the same ones has the same content; a ctime cannot be set back."""
Known = dict[str, tuple[Key | None, Node]]
"""What was seen at a path the last time; key None: it has to be read again in any case."""
Git = Literal["own", "shared", "none"]
"""own: all of .git is the session's; shared: but for what came from the origin; none: the user's, never looked at."""


class Found(NamedTuple):
    """What a look found. known: what need not be read. unread: files that must be, with their stat."""

    known: Known
    unread: list[str]
    left_out: list[str]


def key_of(info: os.stat_result) -> Key:
    """Return what tells one state of a file from another."""
    return (info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def look(root: str, before: Known, git: Git, extras: Collection[str] = ()) -> Found:
    """Look through `root`. extras: paths that count although they lie in a cache, since a tool wrote them.

    Raises:
        TooMuch: more names or bytes than a snapshot takes.
        OSError: the root cannot be read.
    """
    walk = _Walk(root, before, git)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        walk.directory(fd, "", 0)
    finally:
        os.close(fd)
    for path in extras:
        walk.extra(path)
    return Found(walk.known, walk.unread, walk.left_out)


@dataclass(slots=True)
class _Walk:
    root: str
    before: Known
    git: Git
    known: Known = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    bytes: int = 0
    rules: dict[str, Ignore] = field(default_factory=dict)

    def directory(self, fd: int, prefix: str, level: int) -> bool:
        """Take in what is in an open directory; False where it is a cache."""
        with os.scandir(fd) as names:
            entries = list(names)
        if prefix and any(entry.name in MARKS for entry in entries):
            return False
        if prefix == PACKS and self.git == "shared":
            entries = _own_packs(fd, entries)
        below: list[tuple[str, str]] = []
        before, known = self.before, self.known
        for entry in entries:
            name = entry.name
            path = prefix + name
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_dir = stat.S_ISDIR(info.st_mode)
            if (is_dir or name == ".git") and self._excluded(name, path, is_dir):
                continue
            if self.git == "shared" and path in (ALTERNATES, SCRATCH):
                continue
            if is_dir:
                below.append((name, path))
            key = (info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            old = before.get(path)
            if old is not None and old[0] == key:
                known[path] = old
            else:
                self._changed(fd, name, path, info, key)
            self.bytes += info.st_size
        if len(known) + len(self.unread) > MAX_ENTRIES:
            raise TooMuch(f"{MAX_ENTRIES:,} files")
        if self.bytes > MAX_TREE_BYTES:
            raise TooMuch(f"{MAX_TREE_BYTES // 1_000_000:,} MB")
        for name, path in below:
            self._descend(fd, name, path, level)
        return True

    def _descend(self, fd: int, name: str, path: str, level: int) -> None:
        if level >= MAX_LEVELS:
            self.left_out.append(path)
            return
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=fd)
        except OSError:  # gone, swapped, or not ours to read
            self.left_out.append(path)
            return
        try:
            if not self.directory(inner, path + "/", level + 1):
                self.known.pop(path, None)
                self.left_out.append(path)
        except PermissionError:
            self.left_out.append(path)
        finally:
            os.close(inner)

    def _changed(self, fd: int, name: str, path: str, info: os.stat_result, key: Key) -> None:
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISREG(info.st_mode):
            self.unread.append(path)
        elif stat.S_ISDIR(info.st_mode):
            self.known[path] = (key, Node("d", mode, info.st_mtime_ns, 0, ""))
        elif stat.S_ISLNK(info.st_mode):
            with suppress(OSError):
                target = os.readlink(name, dir_fd=fd)
                self.known[path] = (key, Node("l", 0o777, info.st_mtime_ns, 0, target))

    def _excluded(self, name: str, path: str, is_dir: bool) -> bool:
        if name == ".git":
            return self.git == "none"
        if name not in CACHES and name not in MAYBE_CACHES:
            return False
        if self._rules(path.rpartition("/")[0]).excludes(path, directory=True):
            self.left_out.append(path)
            return True
        return False

    def _rules(self, directory: str) -> Ignore:
        if directory not in self.rules:
            above = Ignore() if not directory else self._rules(directory.rpartition("/")[0])
            self.rules[directory] = above.below(directory or ".", _gitignore(self.root, directory))
        return self.rules[directory]

    def extra(self, path: str) -> None:
        """Take in one path, and the directories above it, that the walk has passed over."""
        if path in self.known or path in self.unread:
            return
        parts = path.split("/")
        with suppress(OSError):
            for n in range(1, len(parts) + 1):
                part = "/".join(parts[:n])
                if part in self.known:
                    continue
                with opened(self.root, part) as (fd, name):
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    self._changed(fd, name, part, info, key_of(info))


def _own_packs(fd: int, entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """Return a repository's packs without those that came from the origin: a mark of ours says which."""
    shared = set()
    for entry in entries:
        if entry.name.endswith(".keep"):
            with suppress(OSError), open(os.open(entry.name, READ, dir_fd=fd), "rb") as file:
                if file.read(len(KEEP_MARK)) == KEEP_MARK:
                    shared.add(entry.name.removesuffix(".keep"))
    own = [entry for entry in entries if entry.name.rpartition(".")[0] not in shared]
    return [entry for entry in own if not entry.name.startswith("tmp_")]  # git is just writing it


def _gitignore(root: str, directory: str) -> bytes:
    try:
        with opened(root, f"{directory}/{GITIGNORE}" if directory else GITIGNORE) as (fd, name):
            handle = os.open(name, READ, dir_fd=fd)
            with open(handle, "rb") as file:
                return file.read(MAX_GITIGNORE_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""


@contextmanager
def opened(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory of a path inside `root`, through no link, and yield (descriptor, last name).

    Raises:
        OSError: a part is missing or no directory.
        ValueError: the path leads outside, or is no path.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{path!r} is no path inside a workspace")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd, parts[-1]
    finally:
        os.close(fd)


def node_at(root: str, path: str) -> tuple[Key, Node] | None:
    """Return what stands at a path, a file without its content; None where nothing does that a snapshot holds."""
    try:
        with opened(root, path) as (fd, name):
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                node = Node("l", 0o777, info.st_mtime_ns, 0, os.readlink(name, dir_fd=fd))
            elif stat.S_ISDIR(info.st_mode):
                node = Node("d", mode, info.st_mtime_ns, 0, "")
            elif stat.S_ISREG(info.st_mode):
                node = Node("f", mode, info.st_mtime_ns, info.st_size, "")
            else:
                return None
            return key_of(info), node
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return None


def extras_of(nodes: Mapping[str, Node] | Nodes, left_out: Collection[str]) -> set[str]:
    """Return the paths of a tree that lie in what was left out: tools wrote them."""
    places = {path for path in left_out if nodes.get(path) is None or nodes[path].kind == "d"}
    if not places:
        return set()
    return {
        path for path, node in nodes.items()
        if node.kind != "d" and any(path.startswith(place + "/") for place in places)
    }  # fmt: skip
