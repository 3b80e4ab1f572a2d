"""Goes through directories however deep they are: removes, measures and lists them.

A loop in a command makes a tree that no path reaches and whose depth no stack of calls holds. So there is one open
directory at a time, entered by its name alone and never through a link, and left through `..`, which has to be the
directory that it was entered from: what is renamed meanwhile leads nowhere else. What is mounted inside is somebody
else's: nothing there is removed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove_tree(top: str, *, dir_fd: int | None = None) -> None:
    """Remove a directory for good. What is not writable, as the modules that Go keeps, is made so.

    dir_fd: what `top` is relative to.

    Raises:
        OSError: of the first thing that stays, with its whole path, as where something is mounted; all that could be
            removed is gone.
    """
    failed: list[OSError] = []
    try:
        with _Descent(top, dir_fd, loosen=True) as at:
            todo = [_emptied(at, failed)]
            while todo:
                if todo[-1]:
                    name = todo[-1].pop()
                    try:
                        at.down(name)
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        failed.append(_named(error, at.path(name)))
                    else:
                        todo.append(_emptied(at, failed))
                    continue
                todo.pop()
                if todo:
                    _remove(os.rmdir, at, at.up(), failed)
        os.rmdir(top, dir_fd=dir_fd)
    except OSError as error:
        failed.append(error if error.filename else _named(error, top))
    if failed:
        raise failed[0]


def discard_tree(top: str) -> None:
    """Remove a directory as far as it can be; what stays is told by nobody."""
    with suppress(OSError):
        remove_tree(top)


def tree_bytes(top: str) -> int:
    """Return the size of the files in a directory, as far as it reads; links in it are not followed."""
    size = 0
    with suppress(OSError), _Descent(top) as at:
        todo = [list[str]()]
        size += at.look(todo[0])
        while todo:
            if not todo[-1]:
                todo.pop()
                if todo:
                    at.up()
                continue
            with suppress(OSError):
                at.down(todo[-1].pop())
                todo.append([])
                size += at.look(todo[-1])
    return size


def walk(
    top: str, *, failed: Callable[[OSError], object] | None = None, follow: bool = False
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (path, names of directories, names of the rest), parents first, as `os.walk` does with a call for each.

    failed: called with what a directory says that does not read; without it, and where it returns, that is passed
    over. So is what lies deeper than a path may be long. follow: go through links to directories too. Names that the
    caller takes out of the second are not entered.
    """
    todo = [top]
    while todo:
        place = todo.pop()
        inside: list[str] = []
        rest: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (inside if _leads_on(entry) else rest).append(entry.name)
        except OSError as error:
            if failed is not None:
                failed(error)
            continue
        yield place, inside, rest
        paths = [os.path.join(place, name) for name in reversed(inside)]
        todo += paths if follow else [path for path in paths if not os.path.islink(path)]


class _Descent:
    """Where one is below a directory. fd: it is open.

    loosen: to remove it: its owner may do anything with what is entered, and no other mount is.

    Raises:
        OSError: it does not open, as where it is a link.
    """

    def __init__(self, top: str, dir_fd: int | None = None, *, loosen: bool = False) -> None:
        self._top = top
        self._loosen = loosen
        self._above: list[tuple[str, tuple[int, int]]] = []
        self._mount = ""
        self.fd = self._opened(top, dir_fd)
        self._mount = _mount(self.fd) if loosen else ""

    def __enter__(self) -> "_Descent":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def down(self, name: str) -> None:
        """Go into a directory."""
        inner, here = self._opened(name, self.fd), os.fstat(self.fd)
        os.close(self.fd)
        self.fd = inner
        self._above.append((name, (here.st_dev, here.st_ino)))

    def up(self) -> str:
        """Go back to where this was entered from, and return the name that it has there.

        Raises:
            OSError: it is in another place by now.
        """
        outer = os.open("..", _OPEN, dir_fd=self.fd)
        found = os.fstat(outer)
        if (found.st_dev, found.st_ino) != self._above[-1][1]:
            os.close(outer)
            raise OSError(0, "it was moved while it was gone through", self.path())
        os.close(self.fd)
        self.fd = outer
        return self._above.pop()[0]

    def look(self, inside: list[str]) -> int:
        """Add the names of the directories in this one; return the size of its files."""
        size = 0
        with os.scandir(self.fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inside.append(entry.name)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
        return size

    def path(self, name: str = "") -> str:
        """Return the path of this, or of a name in it, for people."""
        return os.path.join(self._top, *(above for above, _ in self._above), *([name] if name else []))

    def _opened(self, name: str, dir_fd: int | None) -> int:
        try:
            fd = os.open(name, _OPEN, dir_fd=dir_fd)
        except PermissionError:
            if not self._loosen:
                raise
            _open_up(name, dir_fd, self._mount)
            fd = os.open(name, _OPEN, dir_fd=dir_fd)
        if self._mount and _mount(fd) != self._mount:
            os.close(fd)
            raise OSError(errno.EBUSY, "something is mounted there, which `umount` has to take away first", name)
        if self._loosen:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                with suppress(OSError):  # then what cannot be removed says so
                    os.fchmod(fd, mode | stat.S_IRWXU)
        return fd


def _mount(fd: int) -> str:
    """Return the mount that a directory is seen through: two of one file system differ (proc_pid_fdinfo(5))."""
    try:
        about = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # no Linux
        return str(os.fstat(fd).st_dev)
    try:
        return os.read(about, 4096).decode().partition("mnt_id:")[2].partition("\n")[0].strip()
    finally:
        os.close(about)


def _emptied(at: _Descent, failed: list[OSError]) -> list[str]:
    """Remove all but the directories of the one that is open, and return their names."""
    inside: list[str] = []
    try:
        with os.scandir(at.fd) as entries:
            for entry in list(entries):  # a directory that is read while it changes may skip names
                if entry.is_dir(follow_symlinks=False):
                    inside.append(entry.name)
                else:
                    _remove(os.unlink, at, entry.name, failed)
    except OSError as error:
        failed.append(_named(error, at.path()))
    return inside


def _remove(how: Callable[..., None], at: _Descent, name: str, failed: list[OSError]) -> None:
    try:
        how(name, dir_fd=at.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        failed.append(_named(error, at.path(name)))


def _named(error: OSError, path: str) -> OSError:
    return OSError(error.errno, error.strerror or str(error), path)


def _leads_on(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circle of links, say
        return False


def _open_up(name: str, dir_fd: int | None, mount: str) -> None:
    """Let its owner do anything with a directory, if it is one, not by now a link to it, and not of another mount."""
    with suppress(OSError):
        if not hasattr(os, "O_PATH"):  # elsewhere than on Linux a mode can be set without following
            mode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
            os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=dir_fd, follow_symlinks=False)
            return
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            if not mount or _mount(fd) == mount:
                os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRWXU)
        finally:
            os.close(fd)
