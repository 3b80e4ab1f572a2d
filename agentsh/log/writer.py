"""The appender of one log: one write(2) for each append, nothing half-written left, rescue after a failed sync."""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from agentsh.base.errors import LogWriteFailed, SessionHeld
from agentsh.log.chain import Anchor
from agentsh.log.files import READ, FileSystem
from agentsh.log.frame import Ready, encode_ready
from agentsh.log.record import Draft, Record
from agentsh.log.recover import OpenSegment
from agentsh.log.reserve import RESERVE_BYTES, Reserve, what_to_do
from agentsh.log.roll import roll, take_back
from agentsh.log.scan import entry_of
from agentsh.log.segment import OPEN_NAME, close_segment, name_rescue, new_header, write_rescue
from agentsh.log.spill import MAX_LINE_BYTES, as_it_is, fitted
from agentsh.log.store import BlobStore
from agentsh.log.sync import GroupSync, Told

Durability = Literal["ack", "always", "none"]
"""ack: durable when somebody waits, else within 100 ms. always: before append returns. none: never (for tests)."""


class Appender:
    """Appends to the open segment of a log whose lease the caller holds. Blocks: it lives on a writer thread.

    unsynced: records (seq, line) that are in the file but not known to be durable.
    """

    def __init__(
        self, files: FileSystem, directory: str, session: str, segment: OpenSegment, *, blobs: BlobStore, by: str,
        last_seq: int, durable_seq: int, unsynced: Sequence[tuple[int, bytes]] = (), durability: Durability = "ack",
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:  # fmt: skip
        self._files = files
        self._directory = directory
        self._session = session
        self._segment = segment
        self._blobs = blobs
        self._by = by
        self._last_seq = last_seq
        self._size = segment.size
        self._torn = False
        self._cut_unsynced = False
        self._reserve = Reserve(files, reserve_bytes)
        self._refusal: Callable[[], Exception] | None = None
        self._lost: LogWriteFailed | None = None  # what was not synced is in doubt for good
        self._keep = durability != "none"
        self._always = durability == "always"
        self._unsynced = deque(unsynced if self._keep else ())
        self._io = threading.Lock()  # one at a time: an append, or the change to another segment
        self._flushing = threading.Lock()  # taken before `_io`: the descriptor stays open while it is synced
        self._sync = GroupSync(self._flush, durable_seq, last_seq, session)

    @property
    def last_seq(self) -> int:
        """Seq of the last record that the kernel has."""
        return self._last_seq

    @property
    def durable_seq(self) -> int:
        """Highest seq known to survive a power cut."""
        return self._sync.durable_seq

    @property
    def ordinal(self) -> int:
        """Ordinal of the open segment."""
        return self._segment.ordinal

    @property
    def size(self) -> int:
        """Bytes in the open segment."""
        return self._size

    def append(
        self, drafts: Sequence[Draft], ready: Sequence[Ready | None] | None = None, *, awaited: bool = False
    ) -> list[Record]:
        """Append all or none, with one write. ready: what `as_it_is` made of each, where the caller has it already.

        awaited: sync them here and now; where that fails, `when_durable` tells.

        Raises:
            LogWriteFailed: nothing was appended: no room, a broken disk, a line beyond its limit. With `always`
                also where it was appended and could not be synced.
            SessionHeld: the file is not as we left it: somebody else writes. No later append will be tried.
            ValueError, TypeError: a draft holds what JSON has no form for.
        """
        # Between two syncs processors' caches are cold: each call here is dear.
        if not drafts:
            return []
        if ready is None:
            ready = [as_it_is(draft) for draft in drafts]
        if None in ready:
            with self._blobs.writing():
                return self.append(drafts, [fitted(draft, self._blobs) for draft in drafts], awaited=awaited)
        if self._cut_unsynced and self._keep:
            self._sync_the_cut()
        sync = self._sync
        records: list[Record] = []
        with self._io:
            segment, last, dur = self._segment, self._last_seq, sync.durable_seq
            if self._refusal is not None or sync.failed is not None or segment.fd < 0:
                self._refuse()
            for line in ready:
                assert line is not None
                last += 1
                record = encode_ready(line, last, dur, segment.salt)
                if len(record.raw) > MAX_LINE_BYTES:
                    raise _too_long(record)
                records.append(record)
            data = record.raw if len(records) == 1 else b"".join([record.raw for record in records])
            self._write(segment.fd, data)
            self._last_seq = last
            if self._keep:
                for record in records:
                    self._unsynced.append((record.seq, record.raw))
        if self._always:
            sync.now(last)
        elif self._keep and awaited:
            try:
                sync.now(last)
            except LogWriteFailed:
                return records
        elif self._keep:
            sync.wrote(last, len(records), len(data))
        return records

    def when_durable(self, seq: int, tell: Told) -> None:
        """Have `tell` called once all up to `seq` is durable, or never will be; at once with durability `none`."""
        if self._keep and seq > self._sync.durable_seq:
            self._sync.when_durable(seq, tell)
        else:
            tell(None)

    def free(self) -> int | None:
        """Return the bytes that the disk of the log has left for us, or None where it does not say."""
        try:
            return self._files.free(self._directory)
        except OSError:
            return None

    def anchor(self) -> Anchor | None:
        """Return the place of the last record, or None where the open segment holds none that reads."""
        files, path = self._files, os.path.join(self._directory, OPEN_NAME)
        with self._io:
            segment, size, last = self._segment, self._size, self._last_seq
            if last < segment.first_seq:
                return None
            start = max(size - MAX_LINE_BYTES, 0)
            try:
                fd = files.open(path, READ)
                try:
                    data = files.read(fd, size - start, start)
                finally:
                    files.close(fd)
            except OSError:
                return None
        line = data[data.rfind(b"\n", 0, -1) + 1 :]
        entry = entry_of(line, segment.salt, size - len(line)) if len(data) == size - start else None
        if entry is None or entry[0] != last:
            return None
        return Anchor(last, segment.ordinal, entry[3], f"{entry[2]:08x}")

    def settle(self) -> None:
        """Make what is written durable with durability `none` too, where nothing else does.

        Raises:
            OSError: the disk refused.
        """
        if not self._keep:
            with self._flushing:
                self._files.sync(self._segment.fd)

    def roll(self, min_bytes: int = 0) -> bool:
        """Close the open segment, if it has a record and `min_bytes`, and go on in a new one; return whether it was.

        A disk that refuses changes nothing: the log goes on in the old segment, and the next call tries again.
        Not to be called at the same time as `append`.
        """
        if self._size < min_bytes:
            return False
        if self._keep:
            try:
                self._sync.wait(self._last_seq).result()
            except LogWriteFailed:
                return False
        with self._flushing, self._io:
            old = self._segment
            if self._refusal is not None or self._torn or old.fd < 0 or self._last_seq < old.first_seq:
                return False
            if self._size < min_bytes:  # a rescue has come between
                return False
            try:
                if not self._keep:
                    self._files.sync(old.fd)
                self._segment = roll(
                    self._files, self._directory, self._session, old, size=self._size, last_seq=self._last_seq,
                    by=self._by,
                )  # fmt: skip
            except OSError:
                return False
            self._reserve.give_back(old.fd, self._size)
            self._size = self._segment.size
            with suppress(OSError):  # all that it had is durable
                self._files.close(old.fd)
            return True

    def close(self) -> None:
        """Sync what is written, and give the descriptor back. Idempotent.

        Raises:
            LogWriteFailed: the last sync failed; the descriptor is given back all the same.
        """
        try:
            if self._keep:
                self._sync.stop()
        finally:
            with self._io:
                if self._segment.fd >= 0:
                    if not self._torn and self._refusal is None and self._sync.failed is None:
                        self._reserve.give_back(self._segment.fd, self._size)
                    self._files.close(self._segment.fd)
                    self._segment = self._segment._replace(fd=-1)

    def _refuse(self) -> None:
        """Raise why nothing is written, where that is so."""
        if self._refusal is not None:
            raise self._refusal()
        if self._sync.failed is not None:
            raise LogWriteFailed(self._sync.failed.message, hint=self._sync.failed.hint)
        if self._segment.fd < 0:
            raise LogWriteFailed(f"the log of {self._session} is closed")

    def _write(self, fd: int, data: bytes) -> None:
        files, before = self._files, self._size
        try:
            if self._torn:
                files.truncate(fd, before)
                self._torn = False
            if files.size(fd) != before:
                self._refusal = self._somebody_else
                raise self._somebody_else()
            taken = files.write(fd, data)
            if taken != len(data):  # a full disk takes what fits
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._cut_back()
            raise self._failed(error, "cannot save to the log") from error
        self._size = after = before + taken
        if after > self._reserve.enough_upto:
            self._reserve.keep_ahead(fd, after)

    def _cut_back(self) -> None:
        """Leave nothing half-written; where even that fails, the next append begins with it."""
        if self._torn:
            return
        self._reserve.gone()
        self._cut_unsynced = True
        try:
            self._files.truncate(self._segment.fd, self._size)
        except OSError:
            self._torn = True

    def _sync_the_cut(self) -> None:
        """Make it durable that a half-written append was cut off, before its seqs are used again.

        Else a power cut could bring some of its lines back beside those that stand in their place now: two valid
        lines with one seq, as two programs leave them.
        """
        with self._flushing:
            with self._io:
                self._refuse()
                try:
                    if self._torn:
                        self._files.truncate(self._segment.fd, self._size)
                except OSError as error:
                    raise self._failed(error, "cannot save to the log") from error
                self._torn = False
            try:
                self._files.sync(self._segment.fd)
            except OSError as error:
                self._rescue(error)
            self._cut_unsynced = False

    def _failed(self, error: OSError, what: str) -> LogWriteFailed:
        return LogWriteFailed(f"{what} of {self._session}: {error.strerror or error}", hint=what_to_do(error))

    def _somebody_else(self) -> SessionHeld:
        return SessionHeld(
            f"somebody else writes the log of {self._session}", holder="another process",
            hint="this session is not saved any more; fork it to go on",
        )  # fmt: skip

    def _flush(self) -> int:
        """Make all that is written durable; on the sync thread, or on that of an append that is awaited.

        Without `_io`: nobody else changes the segment or takes lines from `_unsynced` meanwhile, and an append adds
        a line, and counts it, once the file has it.
        """
        with self._flushing:
            if self._lost is not None:  # while this thread waited for the other one
                raise LogWriteFailed(self._lost.message, hint=self._lost.hint)
            upto, segment, unsynced = self._last_seq, self._segment, self._unsynced
            if segment.doubt is not None:
                return self._rescue(segment.doubt)
            try:
                self._files.sync(segment.fd)
            except OSError as error:
                return self._rescue(error)
            while unsynced and unsynced[0][0] <= upto:
                unsynced.popleft()
            return upto

    def _rescue(self, cause: OSError) -> int:
        """Write the unsynced lines again, to a new segment.

        After a failed fsync the kernel takes the lost pages for clean, so that a second one on the same descriptor
        would lie (Rebello et al., ATC 2020).
        """
        with self._io:
            old = self._segment
            try:
                new = self._rescue_segment(old)
            except OSError as error:
                what = f"the disk failed ({cause.strerror or cause}), and so did the rescue of the log"
                failure = self._lost = self._failed(error, what)
                self._refusal = lambda: LogWriteFailed(failure.message, hint=failure.hint)
                raise failure from cause
            self._segment, self._size, self._torn = new, new.size, False
            self._reserve.gone()
            self._unsynced.clear()
            with suppress(OSError):  # it was given up already
                self._files.close(old.fd)
            return self._last_seq

    def _rescue_segment(self, old: OpenSegment) -> OpenSegment:
        files, directory = self._files, self._directory
        first = self._unsynced[0][0] if self._unsynced else self._last_seq + 1
        header = new_header(self._session, ordinal=old.ordinal + 1, first_seq=first, by=self._by, rescue=True)
        fd, size = write_rescue(files, directory, header, [line for _, line in self._unsynced])
        try:
            close_segment(files, directory, old.ordinal, old.first_seq)
            name_rescue(files, directory)
        except OSError:
            files.close(fd)
            take_back(files, directory, old)
            raise
        return OpenSegment(fd, size, header.salt, old.ordinal + 1, first)


def _too_long(record: Record) -> LogWriteFailed:
    return LogWriteFailed(f"a {record.type[:80]} of {len(record.raw):,} bytes is longer than a line may be")
