"""Opens plain files only: a named pipe would wait for ever, a device may never end, or do something."""

import errno
import os
import stat

_KINDS = (
    (stat.S_ISDIR, "a directory, not a file"),
    (stat.S_ISLNK, "a link, which is not followed"),
    (stat.S_ISFIFO, "a named pipe, no plain file"),
    (stat.S_ISSOCK, "a socket, no plain file"),
    (stat.S_ISCHR, "a device, no plain file"),
    (stat.S_ISBLK, "a device, no plain file"),
)
_SAID = {errno.ELOOP: stat.S_IFLNK, errno.EISDIR: stat.S_IFDIR}
"""What the kernel says of some of them. ELOOP: with O_NOFOLLOW only; else there is a circle of links."""


def odd(mode: int) -> str | None:
    """Return what a file of a mode is, in words, or None where it is a plain one."""
    return next((words for is_one, words in _KINDS if is_one(mode)), None)


def _kind(path: str | os.PathLike[str]) -> int:
    """Return what has no other end: a socket, or a pipe that nobody reads."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return stat.S_IFSOCK


def open_plain(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Open a file, without waiting, and return its descriptor. Links are followed, but for O_NOFOLLOW.

    As the `opener` of `open`, too. On a plain file O_NONBLOCK changes nothing.

    Raises:
        OSError: it cannot be opened, or is no plain file; `strerror` says which, in words.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    except OSError as error:
        kind = _kind(path) if error.errno == errno.ENXIO else _SAID.get(error.errno or 0)
        if kind is None or odd(kind) is None or (kind == stat.S_IFLNK and not flags & os.O_NOFOLLOW):
            raise
        raise OSError(error.errno, odd(kind), path) from None
    words = odd(os.fstat(fd).st_mode)
    if words is not None:
        os.close(fd)
        raise OSError(errno.EISDIR if "directory" in words else errno.EINVAL, words, path)
    return fd


def read_plain(path: str | os.PathLike[str]) -> bytes:
    """Return what is in a plain file. Raises OSError, as `open_plain` does."""
    with open(path, "rb", opener=open_plain) as file:
        return file.read()
