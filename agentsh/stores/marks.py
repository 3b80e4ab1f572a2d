"""What verification has read already, for `--incremental`: a cache in one small file that may go at any time."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentsh.base.ids import random_hex
from agentsh.log.check import Run
from agentsh.log.plain import open_plain

VERSION = 1


class Mark(NamedTuple):
    """A segment that read without a flaw up to `size`, at this mtime and inode. run: its lines."""

    size: int
    mtime_ns: int
    inode: int
    run: Run


class Marks:
    """Marks by session and segment. A file that is garbled, foreign or not there holds none; nothing here raises."""

    def __init__(self, path: str | Path) -> None:
        self._path = os.fspath(path)
        self._sessions = _load(self._path)
        self._changed = False

    def of(self, session: str) -> dict[str, Mark]:
        """Return the marks of a session, by the ordinal of the segment."""
        found = {}
        for ordinal, row in self._sessions.get(session, {}).items():
            if len(row) == 8:
                size, mtime_ns, inode, first, last, first_dur, last_dur, crc = row
                found[ordinal] = Mark(size, mtime_ns, inode, Run(first, last, first_dur, last_dur, crc))
        return found

    def put(self, session: str, ordinal: str, mark: Mark) -> None:
        """Remember a segment."""
        row = [mark.size, mark.mtime_ns, mark.inode, *mark.run[:5]]
        rows = self._sessions.setdefault(session, {})
        if rows.get(ordinal) != row:
            rows[ordinal] = row
            self._changed = True

    def forget(self, session: str) -> None:
        """Drop the marks of a session."""
        self._changed = self._sessions.pop(session, None) is not None or self._changed

    def save(self) -> None:
        """Write the file, whole or not at all, where that can be."""
        if not self._changed:
            return
        new = f"{self._path}.{os.getpid()}.{random_hex(4)}.new"
        with suppress(OSError):
            try:
                fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(fd, "w", encoding="utf-8") as file:
                    json.dump({"version": VERSION, "sessions": self._sessions}, file, separators=(",", ":"))
                os.replace(new, self._path)
                self._changed = False
            finally:
                with suppress(OSError):
                    os.unlink(new)


def _load(path: str) -> dict[str, dict[str, list[int]]]:
    try:
        with open(path, "rb", opener=open_plain) as file:
            value = json.load(file)
        if value["version"] != VERSION:
            return {}
        sessions: dict[str, dict[str, list[int]]] = {
            str(session): {str(name): [int(n) for n in row] for name, row in rows.items()}
            for session, rows in value["sessions"].items()
        }
        return sessions
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}
