"""Logs as JSONL files, one directory for each session: the store that everybody uses."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agentsh import __version__
from agentsh.base.errors import (
    AgentshError,
    LogTooNew,
    LogWriteFailed,
    SessionExists,
    SessionHeld,
    SessionMissing,
    SessionReadOnly,
)
from agentsh.log.archive import Unarchivable
from agentsh.log.archived import archive_damage, reading
from agentsh.log.beyond import missing_end, seq_beyond
from agentsh.log.chain import LogScan
from agentsh.log.checkpoint import checkpoint_seqs
from agentsh.log.files import FileSystem, RealFiles, make_dirs
from agentsh.log.lease import LOCK_NAME, Lease, holder_of, take
from agentsh.log.leftovers import keep_others
from agentsh.log.opening import open_log
from agentsh.log.packed import TooNew, is_archived
from agentsh.log.record import Record
from agentsh.log.recover import OpenSegment
from agentsh.log.reserve import MIN_FREE_BYTES, RESERVE_BYTES, what_to_do
from agentsh.log.roll import SEGMENT_BYTES
from agentsh.log.scan import peek, to_record
from agentsh.log.seal import MIN_BYTES
from agentsh.log.sealer import Sealer
from agentsh.log.segment import OPEN_NAME, begin_segment, discard, new_header
from agentsh.log.store import BlobStore, Capabilities, Damage, Holder, Opened, OpenLog
from agentsh.log.unarchive import settle
from agentsh.log.writer import Appender, Durability
from agentsh.stores.forking import forked
from agentsh.stores.jsonl_log import JsonlLog, Parts
from agentsh.stores.walking import back, unreadable, until_the_end, why
from agentsh.stores.worker import Worker

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class JsonlStore:
    """`SESSIONS/ID/events.jsonl` with its lock and quarantine. The bytes: docs/log-format.md.

    durability: see `Durability`. segment_bytes: from this length on the open segment is closed at a turn's end, and
    sealed in the background. min_free_bytes: below that the disk is nearly full; 0: it never is, and no room is kept
    for the last records. `read`, `lines`, `damages`, `sessions` and `holder` need no lease, change no byte
    and work on a log that is being written.
    """

    def __init__(
        self,
        sessions_dir: str | Path,
        blobs: BlobStore,
        *,
        files: FileSystem | None = None,
        durability: Durability = "ack",
        segment_bytes: int = SEGMENT_BYTES,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        self.capabilities = Capabilities(durable=durability != "none", multi_host=False)
        self.blobs = blobs
        self._root = os.fspath(sessions_dir)
        self._files: FileSystem = files or RealFiles()
        self._durability: Durability = durability
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free_bytes

    async def create(self, session: str, *, by: str) -> OpenLog:
        """Create an empty log, durably, and hold its lease.

        Raises:
            ValueError: the id cannot be the name of a directory.
        """
        return (await self._started(session, lambda: self._create(session, by)))[0]

    async def open(self, session: str, *, reducer: str | None = None) -> Opened:
        """Take the lease, recover the tail, and read the log. The records are decoded as they are asked for."""
        log, parts = await self._started(session, lambda: self._open(session, reducer))
        return Opened(log, parts.records, parts.recovery, parts.folded)

    async def fork(self, parent: str, child: str, *, upto_seq: int | None = None, by: str) -> OpenLog:
        """Create a log that shares the parent's segments by hard link, and hold its lease.

        Raises:
            ValueError: the id cannot be the name of a directory.
        """
        return (await self._started(child, lambda: self._fork(parent, child, upto_seq, by)))[0]

    async def _started(self, session: str, job: Callable[[], Parts]) -> tuple[JsonlLog, Parts]:
        worker = Worker(session)
        try:
            parts = await worker.run(job, Parts.close)
        except BaseException:
            worker.stop()
            raise
        if self._min_free_bytes:
            parts = parts._replace(blobs=self.blobs)
            worker.start(lambda: self.blobs.keep_room(1))
        place = self._files, os.path.join(self._root, session), session
        return JsonlLog(place, parts, worker, self._segment_bytes, self._min_free_bytes), parts

    def read(self, session: str, *, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records beyond `after_seq` in order."""
        return (to_record(raw) for _, raw in until_the_end(self._scan(session), after_seq))

    def lines(self, session: str, *, after_seq: int = 0) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield (seq, type as written, raw line) beyond `after_seq`, checked but not decoded: for summaries."""
        return ((seq, peek(raw)[0], raw) for seq, raw in until_the_end(self._scan(session), after_seq))

    def newest(self, session: str) -> Iterator[Record]:
        """Yield the records from the last one back, as far as they read."""
        return map(to_record, back(self._files, self._scan(session)))

    def damages(self, session: str) -> Sequence[Damage]:
        """Return the places that do not read, a torn end among them unless somebody is writing it."""
        files, directory = self._reading(session), self._directory(session)
        seqs = checkpoint_seqs(files, directory)
        scan = self._scan(session, files)
        segment = scan.open_segment
        for _ in until_the_end(scan, 0):
            pass
        found, last = [*scan.damages, *archive_damage(files)], scan.last
        held = self.holder(session) is not None
        if last is not None and segment is not None and last.tail is not None and not held:
            tail = last.tail
            found.append(Damage(segment.place(tail.offset), "torn", tail.bytes, scan.last_seq))
        if scan.newer:
            found.append(Damage(f"{OPEN_NAME}:0", "newer", 0, 0))
        elif seq_beyond(files, directory, session, scan.last_seq, seqs):
            found.append(missing_end(*scan.end, scan.last_seq))
        if segment is None and not held:
            found.append(Damage(OPEN_NAME, "missing", 0, scan.last_seq))
        return found

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, unordered: every directory is one, whatever is in it."""
        try:
            return [name for name in self._files.subdirs(self._root) if not name.startswith(".")]
        except OSError:
            return []

    def holder(self, session: str) -> Holder | None:
        """Return who has the lease right now, or None."""
        return holder_of(self._files, self._directory(session))

    def _directory(self, session: str) -> str:
        if not _is_name(session):
            raise SessionMissing(f"no session {session[:80]!r}")
        return os.path.join(self._root, session)

    def _existing(self, session: str) -> str:
        directory = self._directory(session)
        try:
            if self._files.stat(directory).is_dir:
                return directory
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise unreadable(session, error) from error
        link = "; its name is a link, which is not followed" if os.path.islink(directory) else ""
        raise SessionMissing(f"no session {session}{link}")

    def _reading(self, session: str) -> FileSystem:
        directory = self._existing(session)
        try:
            return reading(self._files, directory)
        except OSError as error:
            raise unreadable(session, error) from error

    def _scan(self, session: str, files: FileSystem | None = None) -> LogScan:
        files = files or self._reading(session)
        try:
            return LogScan(files, self._directory(session), session)
        except OSError as error:
            raise unreadable(session, error) from error

    def _create(self, session: str, by: str) -> Parts:
        if not _is_name(session):
            raise ValueError(f"{session[:80]!r} cannot name a session")
        files, directory = self._files, os.path.join(self._root, session)
        made, lease = False, None
        try:
            make_dirs(files, self._root)
            files.mkdir(directory)
            made = True
            lease = take(files, directory, session)
            header = new_header(session, ordinal=0, first_seq=1, by=by)
            segment = OpenSegment(begin_segment(files, directory, header), len(header.raw), header.salt, 0, 1)
            try:
                files.sync_dir(self._root)
            except OSError:
                files.close(segment.fd)
                raise
        except FileExistsError as error:
            _release(lease)  # somebody opened what we had made so far, and was done before we had the lease
            raise SessionExists(f"session {session} is there already") from error
        except (OSError, SessionHeld) as error:
            if isinstance(error, SessionHeld):  # somebody took it for an interrupted creation, and has it now
                raise
            if made:
                self._remove(directory)
            _release(lease)
            raise LogWriteFailed(
                f"cannot create session {session}: {error.strerror or error}", hint=what_to_do(error)
            ) from error
        return Parts(self._appender(session, segment, by, 0, 0, ()), self._sealer(session), lease)

    def _fork(self, parent: str, child: str, upto_seq: int | None, by: str) -> Parts:
        if not _is_name(child):
            raise ValueError(f"{child[:80]!r} cannot name a session")
        self._existing(parent)
        segment, lease, last = forked(self._files, self._root, parent, child, upto_seq, by=by)
        return Parts(self._appender(child, segment, by, last, last, ()), self._sealer(child), lease)

    def _remove(self, directory: str) -> None:
        """Take a session that could not be created out of the list again, while its lease is held."""
        for name in (OPEN_NAME, LOCK_NAME):
            discard(self._files, os.path.join(directory, name))
        try:
            self._files.rmdir(directory)
        except OSError:
            return

    def _open(self, session: str, reducer: str | None) -> Parts:
        directory = self._existing(session)
        lease: Lease | None = None
        try:
            lease = take(self._files, directory, session)
            if is_archived(self._files, directory):
                keep_others(self._files, directory)
            kept = settle(self._files, directory).kept
            return self._recovered(session, directory, lease, reducer, (kept,) if kept else ())
        except AgentshError:
            _release(lease)
            raise
        except Unarchivable as error:
            _release(lease)
            raise SessionReadOnly(
                f"session {session} cannot be taken out of its archive: {error}",
                hint=f"agentsh repair {session}",
            ) from error
        except TooNew as error:
            _release(lease)
            raise LogTooNew(
                f"the archive of session {session} is of the newer format {error}", hint="update agentsh"
            ) from error
        except OSError as error:
            _release(lease)
            if error.errno in _READ_ONLY:
                raise SessionReadOnly(f"session {session} cannot be written: {error.strerror}") from error
            if isinstance(error, FileNotFoundError) and lease is None:
                raise SessionMissing(f"no session {session}") from error
            hint = what_to_do(error) or f"`agentsh verify {session}` tells more"
            raise LogWriteFailed(f"cannot open session {session}: {why(error)}", hint=hint) from error

    def _recovered(
        self, session: str, directory: str, lease: Lease, reducer: str | None, kept: tuple[str, ...]
    ) -> Parts:
        by = f"agentsh {__version__}"
        found = open_log(
            self._files, directory, session, by=by, reducer=reducer, durable=self.capabilities.durable
        )  # fmt: skip
        appender = self._appender(session, found.segment, by, found.last_seq, found.durable_seq, found.unsynced)
        sealer = self._sealer(session)
        sealer.wake(found.segment.ordinal)
        recovery = found.recovery._replace(quarantined=(*kept, *found.recovery.quarantined))
        return Parts(appender, sealer, lease, found.records, recovery, found.folded)

    def _sealer(self, session: str) -> Sealer:
        least = min(MIN_BYTES, self._segment_bytes)
        return Sealer(self._files, os.path.join(self._root, session), session, min_bytes=least)

    def _appender(
        self,
        session: str,
        segment: OpenSegment,
        by: str,
        last: int,
        durable: int,
        unsynced: Sequence[tuple[int, bytes]],
    ) -> Appender:
        return Appender(
            self._files, os.path.join(self._root, session), session, segment, blobs=self.blobs, by=by,
            last_seq=last, durable_seq=durable, unsynced=unsynced, durability=self._durability,
            reserve_bytes=RESERVE_BYTES if self._min_free_bytes else 0,
        )  # fmt: skip


def _release(lease: Lease | None) -> None:
    if lease is not None:
        lease.release()


def _is_name(session: str) -> bool:
    """Tell whether an id can be a directory of its own below the root."""
    return 0 < len(session) <= 200 and not session.startswith(".") and not set(session) & set("/\\\0")
