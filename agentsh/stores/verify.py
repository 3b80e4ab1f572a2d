"""Re-reads logs and the blobs that they name, with several processes, and says what is wrong."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from agentsh.base.errors import BlobMissing
from agentsh.log.check import STRETCH_BYTES
from agentsh.log.files import RealFiles
from agentsh.log.packed import NAME as ARCHIVE
from agentsh.log.segment import OPEN_NAME, closed_segments
from agentsh.log.store import Damage
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.crew import Hands, Promise, crew
from agentsh.stores.marks import Marks
from agentsh.stores.session_check import Finding, Known, Seen, SessionCheck, check_here

AT_A_TIME = 32
"""Sessions, or batches of short ones, begun before the first of them is told: enough for every process."""
BATCH_BYTES = 2 << 20
BATCH_SESSIONS = 32
"""Short sessions are given to a process as a whole, so many at a time: what one costs is mostly to open and look."""
BLOBS_AT_A_TIME = 64

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
        begun = deque[SessionCheck | Promise[list[Seen]]]()
        with crew(self._jobs) as hands:
            for part in self._parts(sessions):
                if isinstance(part, str):
                    begun.append(
                        SessionCheck(self._files, self._root, part, hands, self._known(part), self._progress)
                    )
                else:
                    begun.append(hands.submit(check_here, self._root, [(name, self._known(name)) for name in part]))
                if len(begun) >= AT_A_TIME:
                    yield from self._findings(hands, begun.popleft())
            while begun:
                yield from self._findings(hands, begun.popleft())

    def _parts(self, sessions: Sequence[str]) -> Iterator[str | list[str]]:
        """Yield what is begun at a time: a session, or several short ones where there are other processes."""
        batch: list[str] = []
        held = 0
        for session in sessions:
            size = self._short_bytes(session) if self._jobs > 1 else None
            if batch and (size is None or held + size > BATCH_BYTES or len(batch) >= BATCH_SESSIONS):
                yield batch
                batch, held = [], 0
            if size is None:
                yield session
            else:
                batch.append(session)
                held += size
        if batch:
            yield batch

    def _short_bytes(self, session: str) -> int | None:
        """Return the size of a session that is not worth cutting into pieces, else None."""
        directory = os.path.join(self._root, session)
        try:
            names = self._files.listdir(directory)
            if ARCHIVE in names or closed_segments(names):
                return None
            size = self._files.stat(os.path.join(directory, OPEN_NAME)).size
        except OSError:
            return 0  # soon told
        return size if size < STRETCH_BYTES else None

    def _known(self, session: str) -> Known:
        """Return what an earlier pass read of a session."""
        return self._marks.of(session) if self._marks is not None and self._incremental else {}

    def _findings(self, hands: Hands, begun: SessionCheck | Promise[list[Seen]]) -> Iterator[Finding]:
        if isinstance(begun, SessionCheck):
            yield self._finding(hands, begun.seen())
            return
        for seen in begun.result():
            self._progress(seen.found.bytes)
            yield self._finding(hands, seen)

    def _finding(self, hands: Hands, seen: Seen) -> Finding:
        found = seen.found
        if found.problem is not None:
            return found
        extra = [*self._blob_damages(hands, seen.blobs), *seen.locks]
        found = found._replace(damages=(*found.damages, *extra))
        if self._marks is not None:
            if seen.odd or not found.ok:
                self._marks.forget(found.session)  # so that it is told again
            for ordinal, mark in seen.marks if found.ok and not seen.odd else ():
                self._marks.put(found.session, ordinal, mark)
        return found

    def _blob_damages(self, hands: Hands, named: Sequence[tuple[str, int]]) -> list[Damage]:
        if self._blobs_dir is None:
            return []
        firsts: dict[str, int] = {}
        for name, seq in named:
            firsts.setdefault(name, seq)
        wanted = [name for name in firsts if name not in self._good]
        batches = [wanted[at : at + BLOBS_AT_A_TIME] for at in range(0, len(wanted), BLOBS_AT_A_TIME)]
        bad: set[str] = set()
        for promise in [hands.submit(_bad_blobs, self._blobs_dir, batch) for batch in batches]:
            bad.update(promise.result())
        self._good.update(name for name in wanted if name not in bad)
        return [Damage(f"sha256:{name}", "blob", 0, seq) for name, seq in firsts.items() if name in bad]


def _bad_blobs(directory: str, names: Sequence[str]) -> list[str]:
    store, bad = FileBlobs(directory), []
    for name in names:
        try:
            store.get(f"sha256:{name}")
        except BlobMissing:
            bad.append(name)
    return bad
