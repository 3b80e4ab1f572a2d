"""Checks one session: what is wrong with its log, which blobs it names, and what another pass need not read again."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agentsh.log.archived import archive_damage, reading
from agentsh.log.beyond import seq_beyond
from agentsh.log.chain import LogScan, Segment
from agentsh.log.check import (
    Run,
    Stretch,
    Survey,
    before_is_right,
    flawless,
    joined,
    line_ends_at,
    run_of,
    stretches,
    survey,
)
from agentsh.log.checkpoint import (
    DIRECTORY,
    PROOF,
    checkpoint_name,
    checkpoint_seqs,
    is_anchored,
    read_checkpoint,
)
from agentsh.log.files import READ, FileSystem, RealFiles
from agentsh.log.lease import LOCK_NAME, holder_of
from agentsh.log.packed import NAME as ARCHIVE
from agentsh.log.packed import is_archived
from agentsh.log.pin import pins
from agentsh.log.store import HEADER_BYTES, Damage, Holder
from agentsh.stores.crew import Hands, Here, Promise
from agentsh.stores.marks import Mark
from agentsh.stores.walking import why

_NO_RUN = Run(0, 0, 0, 0, 0)


class Finding(NamedTuple):
    """What verification says of one session.

    obstacles: what stands where a directory of the session's belongs; costs no event. problem_errno: of the problem.
    damages: see docs/log-format.md; also `dur`, `chain`, `blob`, `lock`, `unreadable`. remarks: `torn`, `unended`,
    `missing`, `empty`: what the next opening puts right by itself. problem: why nothing could be read, or None.
    newer: its format where that is not ours. checked_bytes: read in this pass. checkpoints: how many there are,
    pinned ones among them. useless: names of those that are damaged or that the log does not confirm; nothing is lost
    by that.
    """

    session: str
    records: int = 0
    last_seq: int = 0
    bytes: int = 0
    checked_bytes: int = 0
    damages: tuple[Damage, ...] = ()
    remarks: tuple[str, ...] = ()
    torn_bytes: int = 0
    holder: Holder | None = None
    problem: str | None = None
    newer: str | None = None
    checkpoints: int = 0
    useless: tuple[str, ...] = ()
    problem_errno: int = 0
    obstacles: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether all that was ever written reads."""
        return not (self.damages or self.problem or self.newer)


class _Part(NamedTuple):
    """A segment that is being checked. now: its mark once it is. known: what an earlier pass covered."""

    segment: Segment
    now: Mark
    known: Mark | None
    runs: "list[tuple[Stretch, Promise[Run | None]]]"


class Seen(NamedTuple):
    """What came of one session. found: all but its blobs. blobs: (name, seq) that it names.

    locks: damages of its lock. marks: what reads, by ordinal. odd: the quick way did not do.
    """

    found: Finding
    blobs: tuple[tuple[str, int], ...] = ()
    locks: tuple[Damage, ...] = ()
    marks: tuple[tuple[str, Mark], ...] = ()
    odd: bool = False


Known = Mapping[str, Mark]
"""What an earlier pass read, by ordinal."""


class SessionCheck:
    """The check of one session, begun: what `hands` were given is under way.

    known: not to be read again. progress: is told how many bytes were read.
    """

    def __init__(
        self, files: FileSystem, root: str, session: str, hands: Hands, known: Known,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._files = files
        self._hands = hands
        self._known_before = known
        self._progress = progress
        self._session = session
        self._directory = os.path.join(root, session)
        self._odd = False
        self._problem: OSError | None = None
        self._bytes = 0
        self._parts: list[_Part] = []
        self._chains: list[tuple[Segment, Promise[bool]]] = []
        self._blobs: list[tuple[str, int]] = []
        self._marks: list[tuple[str, Mark]] = []
        self._seqs: list[int] = checkpoint_seqs(files, self._directory)
        self._begin()

    def seen(self) -> Seen:
        """Return what came of it, once all is done."""
        session, directory, holder = self._session, self._directory, holder_of(self._files, self._directory)
        if self._problem is not None:
            return self._unreadable(self._problem, holder)
        found = None if self._odd else self._quick(holder)
        if found is None or seq_beyond(self._files, directory, session, found.last_seq, self._seqs):
            self._odd = True
            self._blobs.clear()
            try:
                found = self._surveyed(self._hands.submit(_survey, directory, session).result(), holder)
            except OSError as error:
                return self._unreadable(error, holder)
            self._progress(self._bytes)
        count, useless = _checkpoints(self._files, directory, session, found.last_seq)
        found = found._replace(checkpoints=count, useless=useless)
        return Seen(found, tuple(self._blobs), self._lock_damages(), tuple(self._marks), self._odd)

    def _unreadable(self, error: OSError, holder: Holder | None) -> Seen:
        number = error.errno or 0
        return Seen(
            Finding(self._session, bytes=self._bytes, holder=holder, problem=why(error), problem_errno=number)
        )

    def _begin(self) -> None:
        files, directory = self._files, self._directory
        try:
            if is_archived(files, directory):
                self._odd, self._bytes = True, files.stat(f"{directory}/{ARCHIVE}").size
                return
            scan = LogScan(files, directory, self._session)
        except OSError as error:
            self._problem = error
            return
        try:
            self._begin_parts(scan.segments)
        except OSError:
            self._odd = True
        finally:
            scan.close()

    def _begin_parts(self, segments: list[Segment]) -> None:
        self._odd = not segments or not segments[-1].is_open
        for before, segment in zip([None, *segments], segments, strict=False):
            found = self._files.fstat(segment.fd)
            self._bytes += found.size
            if self._odd or not flawless(segment, self._session):
                self._odd = True
                continue
            end = _end(segment, found.size)
            known = self._known(segment, found.inode, found.mtime_ns, end)
            start = known.size if known else _start(segment)
            pieces = stretches(self._files, self._directory, segment, start, end)
            if known is not None and segment.sealed is not None:
                pieces = []
            runs = [(piece, self._hands.submit(_run, piece)) for piece in pieces]
            self._parts.append(_Part(segment, Mark(end, found.mtime_ns, found.inode, _NO_RUN), known, runs))
            header = segment.head.header
            named = header.prev_sha256 if header is not None and header.parent is None else None
            if before is not None and before.limit is None and named and (known is None or pieces):
                # A sealed one has its hash written down: nothing to read, and nothing to give to another process.
                hands = self._hands if before.sealed is None else Here()
                self._chains.append((segment, hands.submit(_chain, self._directory, before, named)))

    def _known(self, segment: Segment, inode: int, mtime_ns: int, end: int) -> Mark | None:
        """Return what an earlier pass read of a segment, where that is still what stands there."""
        mark = self._known_before.get(str(segment.ordinal))
        if mark is None or mark.inode != inode:
            return None
        if (mark.size, mark.mtime_ns) == (end, mtime_ns):
            return mark
        if segment.sealed is not None:  # never grows
            return None
        salt = segment.head.salt or 0
        grown = mark.size < end and line_ends_at(self._files, segment.fd, mark.size, salt, mark.run.crc)
        return mark if grown else None

    def _quick(self, holder: Holder | None) -> Finding | None:
        last, dur, records, checked = 0, 0, 0, 0
        for part in self._parts:
            runs = [part.known.run] if part.known is not None else []
            for piece, promise in part.runs:
                try:
                    run = promise.result()
                except OSError:
                    run = None
                if run is None:
                    return None
                runs.append(run)
                checked += piece.end - piece.start
                self._progress(piece.end - piece.start)
            cap = part.segment.cap
            if (after := joined(runs, last + 1, dur)) is None or (cap is not None and runs and after[0] >= cap):
                return None
            (last, dur), records = after, records + sum(r.last - r.first + 1 for r in runs)
            for run in runs:
                self._blobs.extend(run.blobs)
            if runs:
                whole = Run(runs[0].first, last, runs[0].first_dur, dur, runs[-1].crc)
                self._marks.append((str(part.segment.ordinal), part.now._replace(run=whole)))
        if any(not promise.result() for _, promise in self._chains):
            bad = tuple(
                Damage(s.place(0), "chain", 0, (s.head.header.first_seq if s.head.header else 1) - 1)
                for s, promise in self._chains if not promise.result()
            )  # fmt: skip
            return Finding(self._session, records, last, self._bytes, checked, bad, holder=holder)
        return Finding(self._session, records, last, self._bytes, checked, (), _empty(last), holder=holder)

    def _surveyed(self, seen: Survey, holder: Holder | None) -> Finding:
        self._blobs.extend(seen.blobs)
        damages, remarks, torn = list(seen.damages), list(_empty(seen.last_seq)), 0
        if holder is None:  # what a writer is in the middle of is no damage
            if seen.torn is not None and not seen.records and seen.torn.bytes > HEADER_BYTES and not seen.newer:
                damages.append(seen.torn._replace(kind="unreadable"))
            elif seen.torn is not None and not seen.newer:
                torn = seen.torn.bytes
                remarks.append("torn")
            if seen.unended:
                remarks.append("unended")
            if seen.missing:
                remarks.append("missing")
        return Finding(
            self._session, seen.records, seen.last_seq, self._bytes, self._bytes, tuple(damages), tuple(remarks),
            torn, holder, None, seen.newer,
        )  # fmt: skip

    def _lock_damages(self) -> tuple[Damage, ...]:
        path = os.path.join(self._directory, LOCK_NAME)
        try:
            self._files.close(self._files.open(path, READ))
            if not self._files.stat(path).is_dir:
                return ()
        except FileNotFoundError:
            return ()
        except OSError:
            pass
        return (Damage(LOCK_NAME, "lock", 0, 0),)


def check_here(root: str, sessions: Sequence[tuple[str, Known]]) -> list[Seen]:
    """Check sessions in this process, one after the other."""
    files = RealFiles()
    return [SessionCheck(files, root, session, Here(), known).seen() for session, known in sessions]


def _start(segment: Segment) -> int:
    """Return where the bytes to check begin: behind the header; of a sealed segment all of the file is checked."""
    return segment.head.start if segment.sealed is None else 0


def _end(segment: Segment, size: int) -> int:
    """Return where they end. size: of the file."""
    return size if segment.limit is None or segment.sealed is not None else min(size, segment.limit)


def _empty(last_seq: int) -> tuple[str, ...]:
    return () if last_seq else ("empty",)


def _run(stretch: Stretch) -> Run | None:
    return run_of(RealFiles(), stretch)


def _survey(directory: str, session: str) -> Survey:
    files = reading(RealFiles(), directory)
    seen = survey(files, directory, session)
    return seen._replace(damages=(*seen.damages, *archive_damage(files)))


def _checkpoints(files: FileSystem, directory: str, session: str, last_seq: int) -> tuple[int, tuple[str, ...]]:
    """Return how many checkpoints there are, and the names of those that no opening would take and nothing proves."""
    seqs, held = checkpoint_seqs(files, directory), pins(files, directory)
    if not seqs and not held:
        return 0, ()
    try:
        scan = LogScan(files, directory, session)
    except OSError:
        return 0, ()
    useless = []
    try:
        for seq in seqs:
            found = read_checkpoint(files, directory, seq)
            if seq > last_seq and found is not None and found.session == session:
                continue  # it proves that the log was longer
            if found is not None and found.reducer == PROOF and found.session == session:
                continue  # it did, and the log has gone on behind that
            if found is None or found.session != session or not is_anchored(files, found.anchor, scan.segments):
                useless.append(f"{DIRECTORY}/{checkpoint_name(seq)}")
    except OSError:
        return 0, ()
    finally:
        scan.close()
    return len(seqs) + len(held), tuple(useless)


def _chain(directory: str, before: Segment, wanted: str) -> bool:
    try:
        return before_is_right(RealFiles(), directory, before, wanted)
    except OSError:
        return False
