"""Removes a directory with all that is in it, also what its owner may not change as it stands."""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def remove_tree(top: str) -> None:
    """Remove a directory for good. What is not writable, as the modules that Go keeps, is made so.

    Raises:
        OSError: of the first thing that stays, with its whole path; all that could be removed is gone.
    """
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
        except OSError as left:
            failed.append(left)

    shutil.rmtree(top, onerror=again)
    if failed:
        raise failed[0]


def tree_bytes(top: str) -> int:
    """Return how much the files in a directory are, as far as it reads; what links in it lead to stays, and is not."""
    size = 0
    for directory, _, names in os.walk(top):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(directory, name)).st_size
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
