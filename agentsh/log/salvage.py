"""Decides which lines of a damaged log are kept, and from where on it has to be written anew. Changes nothing."""

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentsh.log.chain import LogScan, Segment, scans
from agentsh.log.files import FileSystem
from agentsh.log.frame import CRC_TAIL
from agentsh.log.scan import Entry, Flaw, peek

MAX_FILLED = 1_000_000
"""Missing events that a repair puts fillers for; a log with a larger hole was not made by a writer of ours."""

Epoch = Callable[[bytes], int]
"""Returns the number of the writer that a raw line announces, or 0: the later of two writers goes on."""


class Branch(NamedTuple):
    """Lines of a writer who wrote at the same time as another: the first and last seq, and how many."""

    first: int
    last: int
    lines: int


class Salvage(NamedTuple):
    """What becomes of a log.

    segments: names of the files that are written anew, from the first damaged one on. first_seq: their first event.
    keep: one byte for each line of theirs that reads, in the order of the files: 1 kept, 0 doubled, 2 of another
    writer. lost: (first, last) of the seqs that nothing is left of. last_seq: of the last line that is kept.
    dur: the highest that a line before `first_seq` has.
    """

    segments: tuple[str, ...]
    first_seq: int
    keep: bytearray
    kept: int
    doubled: int
    lost: tuple[tuple[int, int], ...]
    branches: tuple[Branch, ...]
    last_seq: int
    dur: int


def lines_of(files: FileSystem, segments: list[Segment]) -> Iterator[Entry]:
    """Yield every line that reads, in the order of the files; not what a later segment supersedes.

    Raises:
        OSError: a file cannot be read.
    """
    for segment in segments:
        cap = segment.cap
        for scan in scans(files, segment):
            for item in scan.items():
                if not isinstance(item, Flaw) and (cap is None or item[0] < cap):
                    yield item


def salvage(files: FileSystem, scan: LogScan, first_damaged: int, epoch: Epoch) -> Salvage:
    """Return what becomes of a log. first_damaged: ordinal of its first segment with damage.

    Raises:
        OSError: it cannot be read.
    """
    first = next((n for n, s in enumerate(scan.segments) if s.ordinal >= first_damaged), len(scan.segments))
    before = 0
    while True:
        before = max((entry[0] for entry in lines_of(files, scan.segments[:first])), default=0)
        lowest = min((entry[0] for entry in lines_of(files, scan.segments[first:])), default=before + 1)
        if lowest > before or first == 0:
            break
        first -= 1  # a line there belongs before the end of this one
    again = scan.segments[first:]
    keep, doubled, conflicts = _firsts(files, again)
    branches: tuple[Branch, ...] = ()
    if conflicts:
        branches = _choose(files, again, keep, min(conflicts), epoch)
    dur = max((peek(entry[1])[1] for entry in lines_of(files, scan.segments[:first])), default=0)
    seqs = array("q", sorted(e[0] for n, e in enumerate(lines_of(files, again)) if keep[n] == 1))
    lost, seq = [], before
    for now in seqs:
        if now > seq + 1:
            lost.append((seq + 1, now - 1))
        seq = now
    names = tuple(segment.name for segment in again)
    return Salvage(names, before + 1, keep, len(seqs), doubled, tuple(lost), branches, seq, dur)


def _firsts(files: FileSystem, segments: list[Segment]) -> tuple[bytearray, int, set[int]]:
    """Return a byte for each line (1 for the first with its seq), how many are doubled, and the seqs in conflict."""
    keep, seen, doubled, conflicts = bytearray(), dict[int, int](), 0, set[int]()
    for seq, text, _, _ in lines_of(files, segments):
        body = hash(text[: 1 - CRC_TAIL])
        known = seen.get(seq)
        keep.append(known is None)
        if known is None:
            seen[seq] = body
        elif known == body:
            doubled += 1
        else:
            conflicts.add(seq)
    return keep, doubled, conflicts


class _Path:
    """The lines of one writer from the first conflict on. parent: whose lines it went on from."""

    def __init__(self, parent: "_Path | None") -> None:
        self.parent = parent
        self.lines: dict[int, int] = {}
        self.bodies: dict[int, int] = {}
        self.last = 0
        self.dur = 0
        self.epoch: int = parent.epoch if parent else 0

    def add(self, seq: int, place: int, body: int, dur: int, epoch: int) -> None:
        self.lines[seq] = place
        self.bodies[seq] = body
        self.last, self.dur, self.epoch = max(self.last, seq), max(self.dur, dur), max(self.epoch, epoch)


def _choose(
    files: FileSystem, segments: list[Segment], keep: bytearray, first: int, epoch: Epoch
) -> tuple[Branch, ...]:
    """Sort the lines from `first` on to their writers, keep those of one, and return the others.

    The later writer goes on (its `opened` has the higher epoch), else the one who came farther, else the first.
    """
    paths: list[_Path] = []
    current: _Path | None = None
    for place, (seq, text, _, _) in enumerate(lines_of(files, segments)):
        if seq < first:
            continue
        body, dur = hash(text[: 1 - CRC_TAIL]), peek(text)[1]
        if any(path.bodies.get(seq) == body for path in paths):
            keep[place] = 0
            continue
        current = _whose(paths, current, seq, dur)
        current.add(seq, place, body, dur, epoch(text))
    best = max(paths, key=lambda path: (path.epoch, path.last))
    kept: set[int] = set()
    path: _Path | None = best
    below = 1 << 62
    while path is not None:
        kept.update(place for seq, place in path.lines.items() if seq < below)
        below, path = min(path.lines), path.parent
    others = []
    for path in paths:
        left = sorted(seq for seq, place in path.lines.items() if place not in kept)
        for place in path.lines.values():
            keep[place] = 1 if place in kept else 2
        if left:
            others.append(Branch(left[0], left[-1], len(left)))
    return tuple(others)


def _whose(paths: list[_Path], current: _Path | None, seq: int, dur: int) -> _Path:
    """Return the path that a line goes on with: that of the line before it where that fits, else any that does."""
    fits = [path for path in paths if path.last == seq - 1]
    if current in fits and current is not None and current.dur <= dur:
        return current
    fits.sort(key=lambda path: path.dur > dur)  # what was known to be saved never shrinks
    if not fits:  # lines between are lost, or this one comes late
        fits = [path for path in paths if path.last < seq]
    if fits:
        return fits[0]
    parent = next((path for path in reversed(paths) if seq - 1 in path.lines), None)
    paths.append(_Path(parent))
    return paths[-1]
