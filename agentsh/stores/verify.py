"""Re-reads logs and the blobs that they name, in parallel over stretches of them, and says what is wrong."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

from agentsh.base.errors import BlobMissing
from agentsh.log.archive import NAME as ARCHIVE
from agentsh.log.archive import is_archived
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
from agentsh.log.checkpoint import DIRECTORY, checkpoint_name, checkpoint_seqs, is_anchored, read_checkpoint
from agentsh.log.files import READ, FileSystem, RealFiles
from agentsh.log.lease import LOCK_NAME, holder_of
from agentsh.log.pin import pins
from agentsh.log.store import Damage, Holder
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.marks import Mark, Marks
from agentsh.stores.walking import why

SESSIONS_AT_A_TIME = 32
"""Begun before the first of them is told: enough for every process, and little memory."""
BLOBS_AT_A_TIME = 64
HEADER_BYTES = 1000
"""More than a header takes: where that much is there and nothing reads, something was lost."""

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


Progress = Callable[[int], None]
"""Is told how many bytes were read."""


class Verifier:
    """Checks sessions of one home.

    blobs_dir: None leaves the blobs out. jobs: how many processes. marks: where to remember what read without a
    flaw. incremental: do not read that again.
    """

    def __init__(
        self, sessions_dir: str, blobs_dir: str | None, *, jobs: int = 1, marks: Marks | None = None,
        incremental: bool = False, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._root = sessions_dir
        self._blobs_dir = blobs_dir
        self._jobs = jobs
        self._marks = marks
        self._incremental = incremental
        self._progress: Progress = progress or (lambda _: None)
        self._good: set[str] = set()
        self._files = RealFiles()

    def check(self, sessions: Sequence[str]) -> Iterator[Finding]:
        """Yield a finding for each session, in order."""
        executor, waiting = _executor(self._jobs), deque[_Begun]()
        with executor:
            for session in sessions:
                waiting.append(self._begin(executor, session))
                if len(waiting) >= SESSIONS_AT_A_TIME:
                    yield self._finish(executor, waiting.popleft())
            while waiting:
                yield self._finish(executor, waiting.popleft())

    def _begin(self, executor: Executor, session: str) -> "_Begun":
        directory = os.path.join(self._root, session)
        seqs = checkpoint_seqs(self._files, directory)
        try:
            if is_archived(self._files, directory):
                return _Begun(session, directory, odd=True, size=self._files.stat(f"{directory}/{ARCHIVE}").size)
            scan = LogScan(self._files, directory, session)
        except OSError as error:
            return _Begun(session, directory, problem=error)
        try:
            begun = self._parts(executor, session, directory, scan.segments)
            begun.seqs = seqs
            return begun
        except OSError:
            return _Begun(session, directory, odd=True)
        finally:
            scan.close()

    def _parts(self, executor: Executor, session: str, directory: str, segments: list[Segment]) -> "_Begun":
        begun = _Begun(session, directory, odd=not segments or not segments[-1].is_open)
        for before, segment in zip([None, *segments], segments, strict=False):
            found = self._files.fstat(segment.fd)
            begun.bytes += found.size
            if begun.odd or not flawless(segment, session):
                begun.odd = True
                continue
            end = _end(segment, found.size)
            known = self._known(session, segment, found.inode, found.mtime_ns, end)
            pieces = stretches(self._files, directory, segment, known.size if known else _start(segment), end)
            if known is not None and segment.sealed is not None:
                pieces = []
            runs = [(piece, executor.submit(_run, piece)) for piece in pieces]
            begun.parts.append(_Part(segment, Mark(end, found.mtime_ns, found.inode, _NO_RUN), known, runs))
            header = segment.head.header
            named = header.prev_sha256 if header is not None and header.parent is None else None
            if before is not None and before.limit is None and named and (known is None or pieces):
                # A sealed one has its hash written down: nothing to read, and nothing to give to another process.
                where = executor if before.sealed is None else _Here()
                begun.chains.append((segment, where.submit(_chain, directory, before, named)))
        return begun

    def _known(self, session: str, segment: Segment, inode: int, mtime_ns: int, end: int) -> Mark | None:
        """Return what an earlier pass read of a segment, where that is still what stands there."""
        mark = (
            self._marks.get(session, str(segment.ordinal)) if self._marks is not None and self._incremental else None
        )
        if mark is None or mark.inode != inode:
            return None
        if (mark.size, mark.mtime_ns) == (end, mtime_ns):
            return mark
        if segment.sealed is not None:  # never grows
            return None
        salt = segment.head.salt or 0
        grown = mark.size < end and line_ends_at(self._files, segment.fd, mark.size, salt, mark.run.crc)
        return mark if grown else None

    def _finish(self, executor: Executor, begun: "_Begun") -> Finding:
        holder = holder_of(self._files, begun.directory)
        if begun.problem is not None:
            return _unreadable(begun, begun.problem, holder)
        found = None if begun.odd else self._quick(begun, holder)
        if found is None or seq_beyond(self._files, begun.directory, begun.session, found.last_seq, begun.seqs):
            begun.odd = True
            begun.blobs.clear()
            try:
                found = _from_survey(begun, executor.submit(_survey, begun.directory, begun.session).result(), holder)
            except OSError as error:
                return _unreadable(begun, error, holder)
            self._progress(begun.bytes)
        extra = [*self._blob_damages(executor, begun.blobs), *self._lock_damages(begun.directory)]
        count, useless = _checkpoints(self._files, begun.directory, begun.session, found.last_seq)
        found = found._replace(damages=(*found.damages, *extra), checkpoints=count, useless=useless)
        if self._marks is not None and (begun.odd or not found.ok):
            self._marks.forget(begun.session)  # so that it is told again
        return found

    def _quick(self, begun: "_Begun", holder: Holder | None) -> Finding | None:
        last, dur, records, checked = 0, 0, 0, 0
        for part in begun.parts:
            runs = [part.known.run] if part.known is not None else []
            for piece, future in part.runs:
                try:
                    run = future.result()
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
                begun.blobs.extend(run.blobs)
            if runs and self._marks is not None:
                whole = Run(runs[0].first, last, runs[0].first_dur, dur, runs[-1].crc)
                self._marks.put(begun.session, str(part.segment.ordinal), part.now._replace(run=whole))
        if any(not future.result() for _, future in begun.chains):
            bad = tuple(
                Damage(s.place(0), "chain", 0, (s.head.header.first_seq if s.head.header else 1) - 1)
                for s, future in begun.chains if not future.result()
            )  # fmt: skip
            return Finding(begun.session, records, last, begun.bytes, checked, bad, holder=holder)
        return Finding(begun.session, records, last, begun.bytes, checked, (), _empty(last), holder=holder)

    def _blob_damages(self, executor: Executor, named: Sequence[tuple[str, int]]) -> list[Damage]:
        if self._blobs_dir is None:
            return []
        firsts: dict[str, int] = {}
        for name, seq in named:
            firsts.setdefault(name, seq)
        wanted = [name for name in firsts if name not in self._good]
        batches = [wanted[at : at + BLOBS_AT_A_TIME] for at in range(0, len(wanted), BLOBS_AT_A_TIME)]
        bad: set[str] = set()
        for future in [executor.submit(_bad_blobs, self._blobs_dir, batch) for batch in batches]:
            bad.update(future.result())
        self._good.update(name for name in wanted if name not in bad)
        return [Damage(f"sha256:{name}", "blob", 0, seq) for name, seq in firsts.items() if name in bad]

    def _lock_damages(self, directory: str) -> list[Damage]:
        try:
            self._files.close(self._files.open(os.path.join(directory, LOCK_NAME), READ))
            if not self._files.stat(os.path.join(directory, LOCK_NAME)).is_dir:
                return []
        except FileNotFoundError:
            return []
        except OSError:
            pass
        return [Damage(LOCK_NAME, "lock", 0, 0)]


class _Part(NamedTuple):
    """A segment that is being checked. now: its mark once it is. known: what an earlier pass covered."""

    segment: Segment
    now: Mark
    known: Mark | None
    runs: "list[tuple[Stretch, Future[Run | None]]]"


class _Begun:
    def __init__(
        self, session: str, directory: str, *, odd: bool = False, problem: OSError | None = None, size: int = 0
    ) -> None:
        self.session = session
        self.directory = directory
        self.odd = odd
        self.problem = problem
        self.bytes = size
        self.parts: list[_Part] = []
        self.chains: list[tuple[Segment, Future[bool]]] = []
        self.blobs: list[tuple[str, int]] = []
        self.seqs: list[int] = []


def _unreadable(begun: _Begun, error: OSError, holder: Holder | None) -> Finding:
    return Finding(
        begun.session, bytes=begun.bytes, holder=holder, problem=why(error), problem_errno=error.errno or 0
    )


def _start(segment: Segment) -> int:
    """Return where the bytes to check begin: behind the header; of a sealed segment all of the file is checked."""
    return segment.head.start if segment.sealed is None else 0


def _end(segment: Segment, size: int) -> int:
    """Return where they end. size: of the file."""
    return size if segment.limit is None or segment.sealed is not None else min(size, segment.limit)


def _empty(last_seq: int) -> tuple[str, ...]:
    return () if last_seq else ("empty",)


def _from_survey(begun: _Begun, seen: Survey, holder: Holder | None) -> Finding:
    begun.blobs.extend(seen.blobs)
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
        begun.session, seen.records, seen.last_seq, begun.bytes, begun.bytes, tuple(damages), tuple(remarks), torn,
        holder, None, seen.newer,
    )  # fmt: skip


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


def _bad_blobs(directory: str, names: Sequence[str]) -> list[str]:
    store, bad = FileBlobs(directory), []
    for name in names:
        try:
            store.get(f"sha256:{name}")
        except BlobMissing:
            bad.append(name)
    return bad


class _Here(Executor):
    """Does at once, in this process, what is submitted: for little work."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except OSError as error:
            future.set_exception(error)
        return future


def _executor(jobs: int) -> Executor:
    if jobs <= 1:
        return _Here()
    import multiprocessing
    import sys
    from concurrent.futures import ProcessPoolExecutor

    # A fork has everything loaded; elsewhere it is not safe (macOS) or not there.
    how = "fork" if sys.platform == "linux" else "spawn"
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context(how))
