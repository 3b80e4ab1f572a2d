"""Watches what decides about git while commands run, where a sandbox does not hold it, and undoes what they change.

Everything is done relative to descriptors of the directories that were there, and through no link: what is in the way
now was put there by a command.
"""

import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from agentsh.base.ids import random_hex
from agentsh.log.depths import remove_tree
from agentsh.workspace.git import GitFailed, git

MAX_KEPT_BYTES = 1_000_000
"""Of one file that can be put back; a larger one goes: none is better than theirs."""
# Settings that name no program, no file and no place to push to: what git writes by itself when a branch or a
# submodule is made, who commits, and how things look.
_HARMLESS = re.compile(
    rb"branch\..*\.(?:remote|merge|rebase|description)|submodule\..*\.(?:url|active)|user\.(?:name|email)"
    rb"|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|init\.defaultbranch|merge\.conflictstyle"
    rb"|rerere\.enabled|rebase\.(?:autostash|autosquash)|fetch\.prune|gc\.auto|(?:color|advice)\..*"
    rb"|core\.(?:quotepath|autocrlf|eol|safecrlf|filemode|ignorecase|precomposeunicode)",
    re.IGNORECASE,
)
_NEW = ("commondir", "config.worktree")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HOOKS = "hooks"


class _Kept(NamedTuple):
    """A name as it was. key: tells whether it was touched, mode included. rest: owner, group, mtime in ns.

    data: of files. target: of links.
    """

    key: tuple[int, int, int, int]
    rest: tuple[int, int, int] = (0, 0, 0)
    data: bytes | None = None
    target: str | None = None

    @property
    def mode(self) -> int:
        return self.key[1]


_State = dict[tuple[str, str], _Kept]
"""By directory (empty for the git directory itself, or `hooks`) and name."""


class GitWatch:
    """Watches the `.git` of one workspace while commands run. For any thread; a look takes 30 µs.

    holds: what is there cannot be changed by a command, but for links; only these and what is new are looked for.
    """

    def __init__(self, root: str, *, holds: bool) -> None:
        self._holds = holds
        self._lock = threading.RLock()
        self._running = self._others = 0
        self._undone = 0
        self._untold: list[str] = []
        self._before: _State | None = None
        self._root = self._git = -1
        self._path = root
        self._links: frozenset[str] = frozenset()

    def begin(self) -> int:
        """A command begins: what is there now is right, unless another one runs. Return a mark for `look`.

        It reads configuration and hooks, in less than a millisecond.
        """
        with self._lock:
            if self._running == 0:
                self._take()
            self._running += 1
            return self._undone

    def look(self, mark: int) -> str | None:
        """Return why a command that began with `mark` has to end: it, or one beside it, did what it must not."""
        with self._lock:
            if self._undone == mark and not self._is_changed():
                return None
        return "it, or a job beside it, changed what git outside of the sandbox obeys"

    def end(self) -> tuple[str, ...]:
        """A command and all that it started has ended. Undo what was changed; return it, relative to the root."""
        with self._lock:
            try:
                self._undo()
                undone, self._untold = tuple(self._untold), []
                return undone
            finally:
                self._running -= 1
                if self._running == 0:
                    self._forget()

    @contextmanager
    def others(self) -> Iterator[None]:
        """What changes meanwhile is the user's doing, or agentsh's own, and no command's: it stays, and is right."""
        with self._lock:
            self._undo()
            self._others += 1
        try:
            yield
        finally:
            with self._lock:
                self._others -= 1
                if self._running and not self._others:
                    self._take()

    def _undo(self) -> None:
        if self._is_changed():
            self._untold += self._put_back()
            self._undone += 1

    def _is_changed(self) -> bool:
        return self._before is not None and not self._others and self._changed()

    # What was there -----------------------------------------------------------------------------------------------

    def _take(self) -> None:
        self._forget()
        try:
            self._root = os.open(self._path, _DIRECTORY & ~os.O_NOFOLLOW)
            self._git = os.open(".git", _DIRECTORY, dir_fd=self._root)
        except OSError:  # no repository, or a file that is held as such
            self._forget()
            return
        self._links = frozenset(name for name in ("config", _HOOKS) if _is_link(name, self._git))
        self._before = self._now(with_data=True)

    def _forget(self) -> None:
        for fd in (self._root, self._git):
            if fd >= 0:
                os.close(fd)
        self._root = self._git = -1
        self._before = None

    def _now(self, *, with_data: bool = False) -> _State:
        """Return the state of everything that counts."""
        state: _State = {}
        for name in ("config", _HOOKS, *_NEW):
            kept = _kept(name, self._git, with_data=with_data)
            if kept is not None and (name in _NEW or name in self._links or not self._holds):
                state["", name] = kept
        if self._holds:
            return state
        with _opened(_HOOKS, self._git) as hooks:
            if hooks is not None:
                found = ((name, _kept(name, hooks, with_data=with_data)) for name in os.listdir(hooks))
                state |= {(_HOOKS, name): kept for name, kept in found if kept is not None}
        return state

    def _in_place(self) -> bool:
        try:
            here, there = os.stat(".git", dir_fd=self._root, follow_symlinks=False), os.fstat(self._git)
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

    def _changed(self) -> bool:
        return bool(self._wrong()) or not (self._holds or self._in_place())

    def _wrong(self) -> list[tuple[str, str]]:
        """Return what is not as it was; what was only touched, or changed as git does by itself, is as it was."""
        before, now = self._before or {}, self._now()
        wrong = [name for name in before.keys() | now.keys() if _differ(before.get(name), now.get(name))]
        if not wrong:
            return []
        now = self._now(with_data=True)
        for name in [name for name in wrong if name in before and name in now]:
            if _amounts_to(before[name], now[name], config=name == ("", "config")):
                before[name] = now[name]
                wrong.remove(name)
        return sorted(wrong)

    # Undoing ------------------------------------------------------------------------------------------------------

    def _put_back(self) -> Iterator[str]:
        if not self._holds and not self._in_place():
            yield ".git"
            with suppress(OSError):
                self._put_directory_back()
        before = self._before or {}
        for directory, name in self._wrong():
            yield os.path.join(".git", directory, name)
            with suppress(OSError), _opened(directory or ".", self._git) as fd:
                if fd is not None:
                    _restore(name, fd, before.get((directory, name)))
        again = self._now(with_data=True)
        self._before = {name: again.get(name, kept) for name, kept in before.items()}

    def _put_directory_back(self) -> None:
        """Set aside what stands in the place of `.git`, and move that back, if it is anywhere in the workspace."""
        with suppress(FileNotFoundError):
            os.rename(".git", f".git-{random_hex(4)}", src_dir_fd=self._root, dst_dir_fd=self._root)
        top, where = os.readlink(f"/proc/self/fd/{self._root}"), os.readlink(f"/proc/self/fd/{self._git}")
        *above, name = os.path.relpath(where, top).split("/")
        fd = os.dup(self._root)
        try:
            for part in above:
                inner = os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = inner
            found, held = os.stat(name, dir_fd=fd, follow_symlinks=False), os.fstat(self._git)
            if ".." not in above and (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino):
                os.rename(name, ".git", src_dir_fd=fd, dst_dir_fd=self._root)
        finally:
            os.close(fd)


def _differ(before: _Kept | None, now: _Kept | None) -> bool:
    return (None if before is None else before.key) != (None if now is None else now.key)


def _amounts_to(before: _Kept, now: _Kept, *, config: bool) -> bool:
    if stat.S_ISDIR(before.mode) or before.mode != now.mode or (before.data is None and before.target is None):
        return False
    if (before.data, before.target) == (now.data, now.target):
        return True
    if not config or before.data is None or now.data is None:
        return False
    try:
        return _settings(before.data) == _settings(now.data)
    except (GitFailed, OSError):
        return False


def _settings(data: bytes) -> list[bytes]:
    """Return the settings of a configuration but for harmless ones."""
    found = git(Path("/"), "config", "--file", "-", "--no-includes", "-z", "--list", stdin=data).split(b"\0")
    return [setting for setting in found if not _HARMLESS.fullmatch(setting.partition(b"\n")[0])]


@contextmanager
def _opened(name: str, directory: int) -> Iterator[int | None]:
    """Open a directory, through no link; None where there is none."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _kept(name: str, directory: int, *, with_data: bool) -> _Kept | None:
    try:
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):  # what is in it counts by itself
            return _Kept((info.st_ino, info.st_mode, 0, 0))
        key = (info.st_ino, info.st_mode, info.st_size, info.st_ctime_ns)
        rest = (info.st_uid, info.st_gid, info.st_mtime_ns)
        if with_data and stat.S_ISLNK(info.st_mode):
            return _Kept(key, rest, target=os.readlink(name, dir_fd=directory))
        if with_data and stat.S_ISREG(info.st_mode) and info.st_size <= MAX_KEPT_BYTES:
            with open(os.open(name, _FILE, dir_fd=directory), "rb") as file:
                return _Kept(key, rest, file.read())
    except OSError:
        return None
    return _Kept(key)


def _restore(name: str, directory: int, kept: _Kept | None) -> None:
    """Make a name what it was: nothing, a file, a link, an empty directory."""
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            if kept is not None and stat.S_ISDIR(kept.mode):
                with _opened(name, directory) as fd:
                    if fd is not None:
                        os.fchmod(fd, stat.S_IMODE(kept.mode))
                return
            remove_tree(name, dir_fd=directory)
        else:
            os.unlink(name, dir_fd=directory)
    if kept is None:
        return
    if stat.S_ISDIR(kept.mode):
        os.mkdir(name, stat.S_IMODE(kept.mode), dir_fd=directory)
    elif kept.target is not None:
        os.symlink(kept.target, name, dir_fd=directory)
    elif kept.data is not None:
        fd = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
        )
        with open(fd, "wb") as file:
            file.write(kept.data)
            file.flush()
            os.fchmod(fd, stat.S_IMODE(kept.mode))
            uid, gid, mtime_ns = kept.rest
            if (uid, gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):  # only root can
                    os.fchown(fd, uid, gid)
            os.utime(fd, ns=(mtime_ns, mtime_ns))
