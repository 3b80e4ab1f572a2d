"""The private directories for temporary files of sessions: made while the lease is held, removed when it is not.

One is named after the session and after the directory of its log: a copy of the session in another home has the same
id, and may be open too. Whoever has the lease of that directory is the only one who can be using it, so that what is
there from before belongs to nobody. The names are random at their end: one that was seen is never a later one.
"""

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

from agentsh.base.ids import random_hex
from agentsh.base.pattern import later
from agentsh.log.depths import discard_tree

_PREFIX = "agentsh-tmp-"
_NAME = later(_PREFIX + r"([0-9]{8}-[0-9a-z]{6})-[0-9a-f]{8}-[0-9a-f]{8}")
_USUAL = ("/tmp", "/var/tmp")


def make_tmp(directory: str) -> str:
    """Make one for a session; what a killed agentsh left of earlier ones goes. directory: of its log; we hold it.

    Raises:
        OSError: it cannot be made.
    """
    remove_left(directory)
    path = os.path.join(os.path.realpath(_temporary()), _stem(directory) + random_hex(4))
    os.mkdir(path, 0o700)
    return path


def remove_left(directory: str) -> None:
    """Remove those of a session that are there. directory: of its log, whose lease we hold."""
    stem = _stem(directory)
    for path, _ in _found():
        if os.path.basename(path).startswith(stem):
            remove_tmp(path)


def left_in(sessions: str, is_free: Callable[[str], bool]) -> list[str]:
    """Return those of a home's sessions that nobody uses. sessions: `HOME/sessions`.

    is_free: tells of a session's directory, be it gone, that nobody has its lease.
    """
    found = list(_found())  # before anybody is asked: who comes later makes one of another name
    mine = ((path, os.path.join(sessions, session)) for path, session in found)
    return [path for path, place in mine if os.path.basename(path).startswith(_stem(place)) and is_free(place)]


def remove_tmp(path: str) -> None:
    """Remove one, if it is one and ours."""
    with suppress(OSError):
        info = os.lstat(path)
        if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and _NAME.fullmatch(os.path.basename(path)):
            discard_tree(path)


def _stem(directory: str) -> str:
    place = os.path.realpath(directory)
    return f"{_PREFIX}{os.path.basename(place)}-{zlib.crc32(os.fsencode(place)):08x}-"


def _found() -> Iterator[tuple[str, str]]:
    """Yield (path, session) of every one that is there, wherever it may have been made."""
    for top in dict.fromkeys(os.path.realpath(place) for place in (_temporary(), *_USUAL)):
        with suppress(OSError):
            for name in os.listdir(top):
                if (match := _NAME.fullmatch(name)) is not None:
                    yield os.path.join(top, name), match[1]


def _temporary() -> str:
    """Return the directory for temporary files: `tempfile.gettempdir`, which takes 3 ms to load and writes a file."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    usable = (top for top in (*named, *_USUAL) if top and os.access(top, os.W_OK | os.X_OK))
    return next(usable, os.curdir)
