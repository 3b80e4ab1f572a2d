"""The one door to the file system for logs and blobs, so that a simulated disk can stand behind it in tests.

Every operation is one system call (or as few as it takes), raises OSError, and retries nothing.
"""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple, Protocol

from agentsh.log.plain import open_plain

READ = os.O_RDONLY
APPEND = os.O_WRONLY | os.O_APPEND
WRITE = os.O_WRONLY
CREATE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
LOCK_FILE = os.O_RDWR | os.O_CREAT

_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE of linux/falloc.h."""

MANY_OPEN = 100
"""Descriptors; the least limit in use is 256 (macOS, and shells that set it), 1,024 is the usual one."""

FILE_MODE = 0o600
DIR_MODE = 0o700


class Stat(NamedTuple):
    """What is asked of a file. inode: tells two files of one name apart."""

    size: int
    inode: int
    is_dir: bool
    mtime_ns: int


class FileSystem(Protocol):
    """The operations that a log needs. Paths are absolute or relative to the current directory; all raise OSError.

    Files are 0600 and directories 0700 whatever the umask; links are never followed at the last name, and what is no
    plain file is not opened.
    """

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor; flags: READ, APPEND, WRITE, CREATE or LOCK_FILE."""
        ...

    def close(self, fd: int) -> None:
        """Give a descriptor back."""
        ...

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Return up to `size` bytes at `offset`; empty at the end of the file."""
        ...

    def write(self, fd: int, data: bytes) -> int:
        """Write once and return how many bytes were taken, which may be fewer than given."""
        ...

    def rewrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write once over what is there, to a descriptor of WRITE, and return how many bytes were taken."""
        ...

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to `size` bytes."""
        ...

    def reserve(self, fd: int, start: int, size: int) -> None:
        """Allocate blocks for a part of a file, behind its end too, without changing its size."""
        ...

    def free(self, path: str) -> int:
        """Return the bytes that are left for us on the disk of a name."""
        ...

    def sync(self, fd: int) -> None:
        """Return once the data and the size of the file would survive a power cut."""
        ...

    def sync_dir(self, path: str) -> None:
        """Return once the names in a directory would survive a power cut."""
        ...

    def size(self, fd: int) -> int:
        """Return the length of an open file."""
        ...

    def fstat(self, fd: int) -> Stat:
        """Describe an open file."""
        ...

    def stat(self, path: str) -> Stat:
        """Describe a name; a link is described itself."""
        ...

    def mkdir(self, path: str) -> None:
        """Make one directory; FileExistsError where the name is taken."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a name; a file at `target` is replaced."""
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; FileExistsError where the name is taken."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, unordered."""
        ...

    def subdirs(self, path: str) -> list[str]:
        """Return the names of the directories in a directory, unordered, without a stat for each."""
        ...

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        """Take a flock; False where somebody else has it (never with `wait`). It goes with the descriptor."""
        ...


def _raise_limit(fd: int) -> None:
    """Allow this process more open files, as far as it may: a log is read with all its segments open.

    Done long before they run out, for who opens the next one may not be us.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * soft if hard == resource.RLIM_INFINITY else min(4 * soft, hard)
    if soft < 2 * fd and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class RealFiles:
    """The machine's file system."""

    def open(self, path: str, flags: int) -> int:
        """Open a plain file, no link to one; what is created gets its mode whatever the umask."""
        fd = open_plain(path, flags | os.O_NOFOLLOW, FILE_MODE)
        if fd > MANY_OPEN:
            _raise_limit(fd)
        if flags & os.O_CREAT:
            found = os.fstat(fd)
            if stat.S_IMODE(found.st_mode) != FILE_MODE and found.st_uid == os.geteuid():
                os.fchmod(fd, FILE_MODE)
        return fd

    def close(self, fd: int) -> None:
        """Give a descriptor back."""
        os.close(fd)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Read at a place without moving the descriptor."""
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: bytes) -> int:
        """Call write(2) once."""
        return os.write(fd, data)

    def rewrite(self, fd: int, data: bytes, offset: int) -> int:
        """Call pwrite(2) once; Linux would append to a descriptor of APPEND all the same."""
        return os.pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file."""
        os.ftruncate(fd, size)

    def reserve(self, fd: int, start: int, size: int) -> None:
        """Call fallocate(2) with FALLOC_FL_KEEP_SIZE, which Python has not; ENOTSUP where the system has not."""
        call = _fallocate()
        if call is None:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        call(fd, start, size)

    def free(self, path: str) -> int:
        """Call statvfs(3)."""
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    if sys.platform == "darwin":

        def sync(self, fd: int) -> None:
            """Call F_FULLFSYNC, because fsync leaves the drive's cache unflushed here."""
            try:
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            except OSError as error:  # network and foreign file systems know only fsync
                if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                    raise
                os.fsync(fd)

    else:

        def sync(self, fd: int) -> None:
            """Call fdatasync."""
            os.fdatasync(fd)

    def sync_dir(self, path: str) -> None:
        """Sync a directory; file systems that cannot do that need it not."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(fd)

    def size(self, fd: int) -> int:
        """Call lseek(2), which takes a third of fstat's time; nothing here goes by where a descriptor stands."""
        return os.lseek(fd, 0, os.SEEK_END)

    def fstat(self, fd: int) -> Stat:
        """Describe an open file."""
        return _stat(os.fstat(fd))

    def stat(self, path: str) -> Stat:
        """Describe a name."""
        return _stat(os.stat(path, follow_symlinks=False))

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        os.mkdir(path, DIR_MODE)
        os.chmod(path, DIR_MODE)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        """Move a name."""
        os.rename(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """Remove a name."""
        os.unlink(path)

    def listdir(self, path: str) -> list[str]:
        """Return the names."""
        return os.listdir(path)

    def subdirs(self, path: str) -> list[str]:
        """Return the directories' names."""
        with os.scandir(path) as entries:
            return [e.name for e in entries if e.is_dir(follow_symlinks=False)]

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        """Call flock(2)."""
        how = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.flock(fd, how)
        except BlockingIOError:
            return False
        return True


@cache
def _fallocate() -> Callable[[int, int, int], None] | None:
    """Return what allocates (descriptor, start, size), or None."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def allocate(fd: int, start: int, size: int) -> None:
        if call(fd, _KEEP_SIZE, start, size) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return allocate


def _stat(found: os.stat_result) -> Stat:
    return Stat(found.st_size, found.st_ino, stat.S_ISDIR(found.st_mode), found.st_mtime_ns)


def write_all(files: FileSystem, fd: int, data: bytes) -> None:
    """Write `data` whole, for files that nobody appends to yet.

    Raises:
        OSError: the disk refused, or took nothing.
    """
    view = memoryview(data)
    while view:
        taken = files.write(fd, bytes(view))
        if taken <= 0:
            raise OSError(errno.EIO, "the disk takes no bytes")
        view = view[taken:]


def make_dirs(files: FileSystem, path: str) -> None:
    """Make a directory and what is missing above it, and see to it that its name is durable.

    Also where it is there already: whoever made it may have died before the sync of its name. What stands above it
    was durable before something was put into it, so that one level is enough.

    Raises:
        OSError: a place cannot be written, or is no directory.
    """
    parent = os.path.dirname(path) or "."
    if _is_there(files, path):
        with suppress(PermissionError):  # a place that somebody else gave us
            files.sync_dir(parent)
        return
    if parent != path:
        make_dirs(files, parent)
    try:
        files.mkdir(path)
    except FileExistsError:
        if not _is_there(files, path):  # no race
            raise OSError(errno.ENOTDIR, "a link to nothing, not a directory", path) from None
    files.sync_dir(parent)


def _is_there(files: FileSystem, path: str) -> bool:
    try:
        if files.stat(path).is_dir:
            return True
        files.listdir(path)  # follows links, unlike stat
    except FileNotFoundError:
        return False
    return True
