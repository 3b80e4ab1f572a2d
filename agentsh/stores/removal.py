"""Removes a directory with all that is in it, also what its owner may not change as it stands, and however deep."""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agentsh.base.ids import random_hex

SHALLOW = 100
"""Levels that the library removes with ease: it takes an open file and a call within a call for each."""
SHORT = 1_000
"""Bytes of a path below the directory that no limit of the system is near to."""
_TOO_DEEP = frozenset({errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG})


def remove_tree(top: str) -> None:
    """Remove a directory for good. What is not writable, as the modules that Go keeps, is made so.

    Raises:
        OSError: of the first thing that stays, with its whole path; all that could be removed is gone.
    """
    left = _removed(top)
    if left and any(error.errno in _TOO_DEEP for error in left):
        _flatten(top)
        left = _removed(top)
    if left:
        raise left[0]


def _removed(top: str) -> list[OSError]:
    """Remove what can be removed, and return what was said of the rest."""
    failed: list[OSError] = []
    tried: set[str] = set()

    def again(_: Callable[..., Any], path: str, info: Any) -> None:
        error = info[1]
        if isinstance(error, FileNotFoundError) and path != top:
            return
        if not isinstance(error, PermissionError) or path in tried:
            failed.append(OSError(error.errno, error.strerror, path))
            return
        tried.add(path)
        for each in (path,) if path == top else (os.path.dirname(path), path):
            _open_up(each)
        if _is_dir(path):
            shutil.rmtree(path, onerror=again)
            return
        try:
            os.unlink(path)
        except OSError as stays:
            failed.append(stays)

    try:
        shutil.rmtree(top, onerror=again)
    except RecursionError:
        return [OSError(errno.ENAMETOOLONG, "its directories are too deep", top)]
    return failed


def _flatten(top: str) -> None:
    """Move what is deep below a directory right into it, a layer at a time."""
    moved = True
    while moved:
        moved = False
        for directory, inside, _ in os.walk(top):
            below = directory[len(top) :]
            if below.count(os.sep) < SHALLOW and len(os.fsencode(below)) < SHORT:
                continue
            for name in inside:
                with suppress(OSError):  # then it is told when it is removed
                    os.rename(os.path.join(directory, name), os.path.join(top, random_hex(8)))
                    moved = True
            inside.clear()


def tree_bytes(top: str) -> int:
    """Return the size of the files in a directory, as far as it reads; links in it are not followed."""
    size, todo = 0, [top]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size


def _is_dir(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _open_up(path: str) -> None:
    """Let its owner do anything with a directory."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            os.chmod(path, stat.S_IMODE(mode) | stat.S_IRWXU)
