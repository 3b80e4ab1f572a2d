"""A cache of opaque rows about sessions, in SQLite: delete it, garble it, lock it, and nothing is lost but time."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from agentsh.log.plain import odd

_T = TypeVar("_T")

SCHEMA = 2
"""Goes up when the table changes; a file of an older schema is begun anew, one of a newer is left alone."""
BUSY_S = 0.25
"""How long a reader waits for another process that writes, before it does without."""
MAX_VARIABLES = 500

_CREATE = (
    "CREATE TABLE summaries (session TEXT PRIMARY KEY, stamp TEXT NOT NULL, summary TEXT NOT NULL,"
    " crc INTEGER NOT NULL) WITHOUT ROWID"
)


class _Newer(Exception):
    pass


def _crc(session: str, stamp: str, summary: str) -> int:
    """SQLite checks no byte of what it keeps: a changed one would be a title that nobody gave."""
    return crc32("\0".join((session, stamp, summary)).encode("utf-8", "surrogatepass"))


def _is_whole(row: Sequence[object]) -> bool:
    session, stamp, summary, crc = row
    if isinstance(session, str) and isinstance(stamp, str) and isinstance(summary, str):
        return crc == _crc(session, stamp, summary)
    return False


class SummaryIndex:
    """Rows (session, stamp, summary). stamp: what the summary was made from; the caller compares it.

    No method ever raises for what it finds on disk: then there are simply no rows.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = os.fspath(path)

    def get_many(self, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return (stamp, summary) of the rows that are there, by id."""
        wanted = list(ids)

        def read(db: sqlite3.Connection) -> dict[str, tuple[str, str]]:
            found: dict[str, tuple[str, str]] = {}
            for at in range(0, len(wanted), MAX_VARIABLES):
                some = wanted[at : at + MAX_VARIABLES]
                marks = ",".join("?" * len(some))
                rows = db.execute(
                    f"SELECT session, stamp, summary, crc FROM summaries WHERE session IN ({marks})", some
                )
                found.update((row[0], (row[1], row[2])) for row in rows if _is_whole(row))
            return found

        if not os.path.exists(self._path):
            return {}
        return self._try(read, {}) if wanted else {}

    def put_many(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Keep rows (session, stamp, summary), replacing older ones; or do nothing where that cannot be."""
        kept = [(*row, _crc(*row)) for row in rows]
        if kept:
            self._try(lambda db: self._write(db, "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", kept), None)

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the rows of some sessions."""
        gone = [(session,) for session in ids]
        if gone and os.path.exists(self._path):
            self._try(lambda db: self._write(db, "DELETE FROM summaries WHERE session = ?", gone), None)

    def _write(self, db: sqlite3.Connection, sql: str, rows: Sequence[Sequence[str | int]]) -> None:
        with db:
            db.executemany(sql, rows)

    def _try(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """Run `work`; a file that is no index of ours is replaced, once."""
        for _ in range(2):
            try:
                with closing(self._connected()) as db:
                    return work(db)
            except (
                sqlite3.OperationalError
            ) as error:  # locked, read-only, no directory, disk full: not the file's fault
                if "malformed" not in str(error) and "no such" not in str(error):
                    return otherwise
            except (sqlite3.DatabaseError, UnicodeError):
                pass
            except (_Newer, OSError, ValueError, OverflowError):
                return otherwise
            if not self._replace():
                return otherwise
        return otherwise

    def _connected(self) -> sqlite3.Connection:
        if os.path.lexists(self._path) and odd(os.lstat(self._path).st_mode) is not None:
            raise OSError(f"{self._path} is no plain file")  # somebody else's database, or a pipe that never ends
        if not os.path.exists(self._path):  # so that the file is 0600 from its first moment, whatever the umask
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.fchmod(fd, 0o600)
            finally:
                os.close(fd)
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level="IMMEDIATE")
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA:
                raise _Newer
            if version != SCHEMA:
                self._begin(db)
            db.execute("PRAGMA synchronous=OFF")  # a cache: a power cut may take it
        except BaseException:
            db.close()
            raise
        return db

    def _begin(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode=WAL")
        with db:
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                db.execute("DROP TABLE IF EXISTS summaries")
                db.execute(_CREATE)
                db.execute(f"PRAGMA user_version={SCHEMA}")

    def _replace(self) -> bool:
        """Remove a file that SQLite cannot use, with what belongs to it."""
        for suffix in ("-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(self._path + suffix)
        try:
            os.unlink(self._path)
        except OSError:
            return False
        return True
