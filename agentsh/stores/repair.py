"""Repair of one session's files: under its lease, so that nobody writes meanwhile."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from agentsh import __version__
from agentsh.base.errors import LogTooNew, LogWriteFailed, SessionMissing, SessionReadOnly
from agentsh.log.files import FileSystem, RealFiles
from agentsh.log.lease import take
from agentsh.log.leftovers import keep_others
from agentsh.log.packed import TooNew, is_archived
from agentsh.log.repair import Plan, Repaired, Words, finish_repair, plan_repair, repair
from agentsh.log.reserve import what_to_do
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import Damage
from agentsh.log.unarchive import Taken, unarchive
from agentsh.stores.verify import Progress, Verifier
from agentsh.stores.walking import why

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Repairer:
    """A session that is about to be repaired; made by `repairing`."""

    def __init__(
        self, files: FileSystem, sessions_dir: str, session: str, words: Words, progress: Progress | None = None
    ) -> None:
        self._files = files
        self._root = sessions_dir
        self._session = session
        self._words = words
        self._progress = progress
        self.taken: Taken | None = None

    def plan(self, *, anew: bool = False) -> Plan | None:
        """Return what would be done, or None where there is nothing to repair.

        An archive that is damaged, or whose content is, is unpacked for that: it holds the log, and loses nothing by
        it. What became of it is in `taken` then.
        anew: begin a log without any event anew, though nothing of it is damaged: that may be so because an opening
        found nothing that reads, and left a header and no trace besides.
        """
        directory = os.path.join(self._root, self._session)
        (found,) = Verifier(self._root, None, progress=self._progress).check([self._session])
        if is_archived(self._files, directory):
            if not found.damages and found.problem is None:
                return None
            keep_others(self._files, directory)
            self.taken = unarchive(self._files, directory, of_nothing=True)
            (found,) = Verifier(self._root, None, progress=self._progress).check([self._session])
        finish_repair(self._files, directory, self._session)  # of one that was interrupted
        more = [damage for damage in found.damages if damage.kind == "chain"]
        if anew and found.remarks == ("empty",) and not found.damages and found.problem is None:
            more.append(Damage(OPEN_NAME, "empty", 0, 0))
        return plan_repair(self._files, directory, self._session, self._words.epoch, more=tuple(more))

    def repair(self, plan: Plan) -> Repaired:
        """Do it."""
        directory = os.path.join(self._root, self._session)
        by = f"agentsh {__version__}"
        return repair(self._files, directory, self._session, plan, self._words, by=by)


@contextmanager
def repairing(
    sessions_dir: str, session: str, words: Words, *, files: FileSystem | None = None,
    progress: Progress | None = None,
) -> Iterator[Repairer]:  # fmt: skip
    """Hold the lease of a session while it is repaired. progress: is told how many bytes were read to judge it.

    Raises:
        SessionMissing: there is none.
        SessionHeld: somebody has it open.
        SessionReadOnly: it cannot be written here.
        LogWriteFailed: the disk refused; the log is as it was, or repaired.
        LogTooNew, LogError: it cannot be repaired.
    """
    disk = files or RealFiles()
    try:
        lease = take(disk, os.path.join(sessions_dir, session), session)
        try:
            yield Repairer(disk, sessions_dir, session, words, progress)
        finally:
            lease.release()
    except TooNew as error:
        raise LogTooNew(
            f"the archive of session {session} is of the newer format {error}", hint="update agentsh"
        ) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(os.path.join(sessions_dir, session)):
            raise SessionMissing(f"no session {session}") from error
        if error.errno in _READ_ONLY:
            raise SessionReadOnly(f"session {session} cannot be written: {error.strerror}") from error
        hint = what_to_do(error) or f"`agentsh verify {session}` tells more"
        raise LogWriteFailed(f"cannot repair session {session}: {why(error)}", hint=hint) from error
