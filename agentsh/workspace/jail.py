"""Opens paths inside one directory and nowhere else, whatever links and races say.

Each part of a path is looked at and opened relative to the descriptor of the directory above it, never followed by
the kernel (`O_NOFOLLOW`). Links are resolved here, against a stack of descriptors whose bottom is the root: a link
that is swapped in between two steps is refused by the open, not followed.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.base.ids import random_hex
from agentsh.base.text import one_line
from agentsh.ports.workspace import Entry

MAX_LINKS = 40
"""Links followed in one path, as Linux has it (path_resolution(7))."""
MAX_DEPTH = 256
"""Directories below the root: each holds a descriptor while a path is resolved, and processes may have 1,024."""
MAX_PATH_BYTES = 4_096
"""PATH_MAX of Linux."""
MAX_SHOWN_CHARS = 200

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Trouble with the path itself. All else (ENOSPC, EIO, EROFS, EMFILE, …) is the machine's and becomes ToolFailed.
_REFUSALS = {
    errno.ENOENT: "there is no such file or directory",
    errno.ENOTDIR: "a part of the path is no directory",
    errno.EISDIR: "it is a directory",
    errno.ELOOP: "too many links, or a link was put in its place meanwhile",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENXIO: "it is no plain file",
    errno.EINVAL: "no file can have such a name",
    errno.ESTALE: "it vanished meanwhile",
}


def shown(path: str) -> str:
    """Return a path for a message: one line, clean, cut at 200 characters."""
    return one_line(path, MAX_SHOWN_CHARS) or "''"


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn what the system says about `path` into errors of ours.

    Raises:
        PathRefused: the path is at fault.
        ToolFailed: the disk or the machine is.
    """
    try:
        yield
    except OSError as error:
        why = _REFUSALS.get(error.errno or 0)
        if why is not None:
            raise PathRefused(f"{shown(path)}: {why}") from None
        raise ToolFailed(f"{shown(path)}: {(error.strerror or 'the system refused').lower()}") from None
    except ValueError:  # a NUL byte, or a surrogate that no file name can hold
        raise PathRefused(f"{shown(path)}: no file can have such a name") from None


class Place(NamedTuple):
    """A name in an open directory. info: what stood there, without following a link; None: nothing."""

    directory: int
    name: str
    info: os.stat_result | None


class Jail:
    """File access below `root`. Stateless between calls: a root that is moved or made anew is seen at once."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._spellings = {self.root, os.path.realpath(root)}

    def relative(self, path: str) -> str:
        """Return `path` relative to the root; `..` is resolved by spelling, links are not looked at.

        Raises:
            PathRefused: it leads outside, or no file can have that name.
        """
        if not path:
            raise PathRefused("the path is empty")
        with translated(path):
            if len(os.fsencode(path)) > MAX_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "")
            if "\0" in path:
                raise ValueError
        normal = os.path.normpath(path)
        if os.path.isabs(normal):
            inner = self._below_root("/" + normal.lstrip("/"))
            if inner is None:
                raise _outside(path)
            normal = inner or "."
        if normal == ".." or normal.startswith("../"):
            raise _outside(path)
        return normal

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the bytes of a plain file; see `Workspace.read_bytes`."""
        with translated(path), self.place(path) as place:
            info = plain(path, there(place))
            if info.st_size > max_bytes:
                raise _too_large(path, info.st_size, max_bytes)
            fd = os.open(place.name, _READ, dir_fd=place.directory)
            with open(fd, "rb") as file:
                plain(path, os.fstat(fd))
                data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise _too_large(path, len(data), max_bytes)
        return data

    def head(self, path: str, max_bytes: int) -> bytes:
        """Return the first bytes of a plain file, however long it is."""
        with translated(path), self.place(path) as place:
            plain(path, there(place))
            fd = os.open(place.name, _READ, dir_fd=place.directory)
            with open(fd, "rb") as file:
                plain(path, os.fstat(fd))
                return file.read(max_bytes)

    def write(self, path: str, data: bytes) -> None:
        """Replace or create a plain file by rename; see `Workspace.write_bytes`."""
        with translated(path), self.place(path, create=True) as place:
            if place.name == ".":
                raise OSError(errno.EISDIR, "")
            before = None if place.info is None else plain(path, place.info)
            temporary = temporary_name()
            try:
                fill(place.directory, temporary, data, before)
                os.rename(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=place.directory)
                raise

    def kind(self, path: str) -> Literal["file", "directory", "other"] | None:
        """Return what `path` is, links followed inside; None where nothing is, or nothing that may be reached."""
        try:
            with translated(path), self.place(path) as place:
                info = place.info
        except ToolFailed:
            return None
        if info is None:
            return None
        if stat.S_ISREG(info.st_mode):
            return "file"
        return "directory" if stat.S_ISDIR(info.st_mode) else "other"

    def size(self, path: str) -> int:
        """Return the size of a plain file, bytes.

        Raises:
            PathRefused: there is none.
        """
        with translated(path), self.place(path) as place:
            return plain(path, there(place)).st_size

    def entries(self, path: str) -> list[Entry]:
        """Return what is in a directory, by name; see `Workspace.entries`."""
        base = self.relative(path)
        prefix = "" if base == "." else base + "/"
        with translated(path), self.place(path) as place:
            if not stat.S_ISDIR(there(place).st_mode):
                raise PathRefused(f"{shown(path)}: it is no directory")
            fd = os.open(place.name, _DIRECTORY, dir_fd=place.directory)
            try:
                with os.scandir(fd) as names:
                    found = [_entry(prefix, name) for name in names]
            finally:
                os.close(fd)
        return sorted(found, key=lambda entry: entry.path)

    def _below_root(self, path: str) -> str | None:
        """Return the rest of an absolute path after the root, "" for the root itself, None outside."""
        for root in self._spellings:
            if path == root:
                return ""
            if path.startswith(root.rstrip("/") + "/"):
                return path[len(root.rstrip("/")) + 1 :]
        return None

    @contextmanager
    def place(self, path: str, *, create: bool = False, follow: bool = True) -> Iterator[Place]:
        """Open the directory that holds what `path` names in the end, through every link inside.

        create: make the directories that are missing. follow: False for a name itself, be it a link.
        """
        todo = deque(_parts(self.relative(path)))
        try:
            stack = [os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        except FileNotFoundError:
            raise ToolFailed("the workspace directory is gone") from None
        try:
            yield self._descend(path, todo, stack, create, follow)
        finally:
            for fd in stack:
                os.close(fd)

    def _descend(self, path: str, todo: deque[str], stack: list[int], create: bool, follow: bool) -> Place:
        links = 0
        while todo:
            part = todo.popleft()
            if part == "..":  # only from a link's target
                if len(stack) == 1:
                    raise _outside(path)
                os.close(stack.pop())
                continue
            if todo and len(stack) <= MAX_DEPTH:
                with suppress(OSError):  # nearly always it is a directory; if not, find out what it is
                    stack.append(os.open(part, _DIRECTORY, dir_fd=stack[-1]))
                    continue
            info = _look(part, stack[-1])
            if info is None and todo and create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=stack[-1])
                info = _look(part, stack[-1])
            if info is not None and stat.S_ISLNK(info.st_mode) and (todo or follow):
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, "")
                todo.extendleft(reversed(self._target(path, part, stack)))
            elif not todo:
                return Place(stack[-1], part, info)
            elif info is None:
                raise OSError(errno.ENOENT, "")
            elif len(stack) > MAX_DEPTH:
                raise PathRefused(f"{shown(path)}: more than {MAX_DEPTH} directories deep")
            else:
                stack.append(os.open(part, _DIRECTORY, dir_fd=stack[-1]))
        return Place(stack[-1], ".", os.fstat(stack[-1]))

    def _target(self, path: str, link: str, stack: list[int]) -> list[str]:
        """Return the parts that a link stands for; an absolute one starts again at the root."""
        target = os.readlink(link, dir_fd=stack[-1])
        if target.startswith("/"):
            inner = self._below_root(target)
            if inner is None:
                raise PathRefused(f"{shown(path)}: a link on the way leads out of the workspace")
            while len(stack) > 1:
                os.close(stack.pop())
            target = inner
        return _parts(target)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _look(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def temporary_name() -> str:
    """Return a name for a file that is about to be renamed."""
    return f".agentsh-{random_hex(8)}.tmp"


def there(place: Place) -> os.stat_result:
    """Return what stands at a place; FileNotFoundError where nothing does."""
    if place.info is None:
        raise OSError(errno.ENOENT, "")
    return place.info


def plain(path: str, info: os.stat_result) -> os.stat_result:
    """Return `info` if it is of a plain file; OSError or PathRefused else."""
    if stat.S_ISDIR(info.st_mode):
        raise OSError(errno.EISDIR, "")
    if stat.S_ISLNK(info.st_mode):
        raise OSError(errno.ELOOP, "")
    if not stat.S_ISREG(info.st_mode):
        raise PathRefused(f"{shown(path)}: it is no plain file but a device, a pipe or a socket")
    return info


def fill(directory: int, name: str, data: bytes, before: os.stat_result | None) -> None:
    """Write a new file, synced, so that a power cut after the rename cannot leave an empty one."""
    mode = 0o644 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    fd = os.open(name, _CREATE, mode, dir_fd=directory)
    with open(fd, "wb") as file:
        if before is not None:
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):  # only root can; a file of our own is better than no write at all
                    os.fchown(fd, before.st_uid, before.st_gid)
            os.fchmod(fd, mode)
        file.write(data)
        file.flush()
        os.fsync(fd)


def _entry(prefix: str, name: os.DirEntry[str]) -> Entry:
    path = prefix + name.name
    if name.is_symlink():
        return Entry(path, "link", 0)
    if name.is_dir(follow_symlinks=False):
        return Entry(path, "directory", 0)
    if not name.is_file(follow_symlinks=False):
        return Entry(path, "other", 0)
    try:
        return Entry(path, "file", name.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:  # gone since the directory was read
        return Entry(path, "file", 0)


def _outside(path: str) -> PathRefused:
    return PathRefused(f"{shown(path)}: it leads out of the workspace")


def _too_large(path: str, size: int, max_bytes: int) -> PathRefused:
    return PathRefused(f"{shown(path)}: it has {size:,} bytes, more than the limit of {max_bytes:,}")
