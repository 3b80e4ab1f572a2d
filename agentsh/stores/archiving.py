"""Archiving of one session: under its lease, so that nobody writes meanwhile, with its errors in our words."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from agentsh.base.errors import LogError, LogTooNew, LogWriteFailed, SessionMissing
from agentsh.log.archive import Unarchivable, archive, sweep
from agentsh.log.chain import LogScan
from agentsh.log.check import survey
from agentsh.log.checkpoint import DIRECTORY, checkpoint_name, checkpoint_seqs
from agentsh.log.files import FileSystem, RealFiles
from agentsh.log.lease import take
from agentsh.log.leftovers import keep_others
from agentsh.log.packed import NAME, TooNew, is_archived, verified
from agentsh.log.reserve import what_to_do
from agentsh.log.segment import OPEN_NAME, closed_segments, discard
from agentsh.log.unarchive import Taken, settle, unarchive
from agentsh.stores.walking import why

Progress = Callable[[int], None]


class Archived(NamedTuple):
    """What archiving did. raw_bytes: of the content; packed_bytes: of the file. before: it was archived already."""

    raw_bytes: int
    packed_bytes: int
    before: bool


def archive_session(
    sessions_dir: str, session: str, facts: Callable[[], Mapping[str, Any]], *, files: FileSystem | None = None,
    progress: Progress = lambda _: None,
) -> Archived:  # fmt: skip
    """Turn a session's log, which has an open segment, into an archive. facts: see `Description`.

    Raises:
        SessionMissing, SessionHeld: there is none; somebody has it open.
        LogError: a segment is damaged.
        LogWriteFailed: the disk refused; the log is whole, in one form or the other.
    """
    disk, directory = files or RealFiles(), os.path.join(sessions_dir, session)
    with _held(disk, directory, session, "archive"):
        path = os.path.join(directory, NAME)
        if is_archived(disk, directory):
            keep_others(disk, directory)
            if closed_segments(disk.listdir(directory)) and verified(disk, path) is not None:
                sweep(disk, directory)  # else they may be all that is left
            return Archived(0, disk.stat(path).size, True)
        settle(disk, directory)  # taking back a damaged one may have ended before that came to quarantine
        written = disk.stat(os.path.join(directory, OPEN_NAME)).mtime_ns
        keep_others(disk, directory)
        kept = _only_in_checkpoints(disk, directory, session)
        description = archive(disk, directory, session, facts(), progress)
        if isinstance(disk, RealFiles):
            os.utime(path, ns=(written, written))  # `ls` goes on to say when the session was last written
        for seq in () if kept else checkpoint_seqs(disk, directory):
            discard(disk, os.path.join(directory, DIRECTORY, checkpoint_name(seq)))
        return Archived(description.raw_bytes, disk.stat(path).size, False)


def unarchive_session(
    sessions_dir: str, session: str, *, files: FileSystem | None = None, progress: Progress = lambda _: None
) -> Taken | None:
    """Put an archived session's log back, or what is left of it; return None where it was not archived.

    Raises as `archive_session`.
    """
    disk, directory = files or RealFiles(), os.path.join(sessions_dir, session)
    with _held(disk, directory, session, "unarchive"):
        if not is_archived(disk, directory):
            settle(disk, directory)
            return None
        keep_others(disk, directory)
        written = disk.stat(os.path.join(directory, NAME)).mtime_ns
        taken = unarchive(disk, directory, progress)
        if isinstance(disk, RealFiles):
            with suppress(FileNotFoundError):  # nothing was left of it
                os.utime(os.path.join(directory, OPEN_NAME), ns=(written, written))
        return taken


def _only_in_checkpoints(files: FileSystem, directory: str, session: str) -> bool:
    """Tell whether checkpoints may know what the log does not: it lost something, or was written anew for that."""
    if survey(files, directory, session).damages:
        return True
    scan = LogScan(files, directory, session)
    try:
        return any(segment.supersedes is not None for segment in scan.segments)
    finally:
        scan.close()


@contextmanager
def _held(files: FileSystem, directory: str, session: str, what: str) -> Iterator[None]:
    try:
        lease = take(files, directory, session)
        try:
            yield
        finally:
            lease.release()
    except TooNew as error:
        raise LogTooNew(
            f"the archive of session {session} is of the newer format {error}", hint="update agentsh"
        ) from error
    except Unarchivable as error:
        hint = f"`agentsh repair {session}` begins it anew" if what == "unarchive" else f"`agentsh repair {session}`"
        raise LogError(f"cannot {what} session {session}: {error}", hint=hint) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not _has_log(directory):
            raise SessionMissing(f"no session {session}, or nothing of its log is there") from error
        raise LogWriteFailed(f"cannot {what} session {session}: {why(error)}", hint=what_to_do(error)) from error


def _has_log(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in (OPEN_NAME, NAME))
