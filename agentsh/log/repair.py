"""Writes a damaged log anew: the only thing that ever does. What was there is kept, whole, in quarantine.

The new file is a rescue segment (docs/log-format.md), which supersedes everything from its first seq on. So there is
one instant, a rename, at which the repaired log takes the place of the damaged one; before it nothing has changed,
and after it the old segments, which still lie there, are not looked at. No file is ever changed in place: a segment
may have a second name in a fork.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from agentsh.base.clock import timestamp
from agentsh.base.errors import LogError, LogTooNew
from agentsh.base.ids import random_hex
from agentsh.log.beyond import seq_beyond
from agentsh.log.chain import Anchor, LogScan, Segment, content_bytes
from agentsh.log.check import Survey, survey
from agentsh.log.checkpoint import checkpoint_seqs
from agentsh.log.files import CREATE, READ, FileSystem, make_dirs, write_all
from agentsh.log.frame import encode_event, encode_header, resealed
from agentsh.log.reanchor import adopt, placed, prepare, to_move
from agentsh.log.record import Draft, Header
from agentsh.log.recover import QUARANTINE
from agentsh.log.salvage import MAX_FILLED, Epoch, Salvage, lines_of, salvage
from agentsh.log.scan import peek
from agentsh.log.segment import NEW_NAME, OPEN_NAME, chunks, discard, exists
from agentsh.log.store import Damage

WRITE_BYTES = 1 << 20
_OUT_OF_ORDER = frozenset({"conflict", "late"})
"""Where a repair finds lines that no reader took, or leaves some out that one did: no state of before is of that."""


class Words(NamedTuple):
    """What this layer, which knows no event type, is told to write.

    epoch: see `Epoch`. filler: a draft for an event of which nothing is left, given its seq, the first and last of
    its run, and a time. report: the draft that ends the repaired log, given what was done. beginning: a draft for the
    first event, where nothing of it is left, given a time; None: a filler like any other.
    """

    epoch: Epoch
    filler: Callable[[int, int, int, str], Draft]
    report: Callable[["Repaired"], Draft]
    beginning: Callable[[str], Draft] | None = None


class Plan(NamedTuple):
    """What a repair would do. damages: why. parent: the log stays a fork of that.

    first: seq of the first event of the log's own. checkpoints: seqs of those that keep their place.
    """

    salvage: Salvage
    damages: tuple[Damage, ...]
    ordinal: int
    parent: dict[str, Any] | None
    first: int = 1
    checkpoints: tuple[int, ...] = ()

    @property
    def begins_anew(self) -> bool:
        """Tell whether nothing is left of the first event."""
        lost = any(first <= self.first <= last for first, last in self.salvage.lost)
        return lost or (self.salvage.first_seq == self.first and not self.salvage.kept and not self.salvage.lost)


class Repaired(NamedTuple):
    """What a repair did. quarantined: names below `quarantine/` where the original lies. now: when."""

    plan: Plan
    quarantined: tuple[str, ...]
    now: str


def plan_repair(
    files: FileSystem, directory: str, session: str, epoch: Epoch, *, more: tuple[Damage, ...] = ()
) -> Plan | None:
    """Return what there is to repair, or None. The caller holds the lease. more: damages found by other means.

    Raises:
        OSError: the log cannot be read.
        LogTooNew: it is in a format that we cannot write.
        LogError: more is missing than a repair fills in.
    """
    seen = survey(files, directory, session)
    if seen.newer:
        raise LogTooNew(f"session {session} is in the newer format {seen.newer[:40]}", hint="update agentsh")
    damages = (*_all(seen), *more)
    if not damages:
        return None
    scan = LogScan(files, directory, session)
    try:
        last = scan.segments[-1].ordinal if scan.segments else -1
        found = salvage(files, scan, min(_ordinal(d, last) for d in damages), epoch)
        if beyond := seq_beyond(files, directory, session, found.last_seq, checkpoint_seqs(files, directory)):
            found = found._replace(lost=(*found.lost, (found.last_seq + 1, beyond)))
        missing = sum(b - a + 1 for a, b in found.lost)
        if missing > MAX_FILLED:
            raise LogError(f"{missing:,} events of {session} are missing, more than a repair fills in")
        moved: tuple[int, ...] = ()
        if not _OUT_OF_ORDER & {d.kind for d in damages}:
            moved = to_move(files, directory, session, scan.segments, found.first_seq, found.last_seq)
        return Plan(found, damages, last + 1, _parent(files, scan.segments, found), _first(scan.segments), moved)
    finally:
        scan.close()


def _first(segments: list[Segment]) -> int:
    """Return the seq of the first event of the log's own: behind what a fork inherits."""
    parents = [s.head.header.parent for s in segments if s.head.header is not None and s.head.header.parent]
    upto = parents[-1].get("upto_seq") if parents else 0
    return upto + 1 if type(upto) is int else 1


def _all(seen: Survey) -> tuple[Damage, ...]:
    """Return the damages of a log, what opening would put right by itself among them."""
    more = [] if seen.torn is None else [seen.torn]
    if seen.unended:
        more.append(Damage(OPEN_NAME, "newline", 0, seen.last_seq))
    if seen.missing:
        more.append(Damage(OPEN_NAME, "missing", 0, seen.last_seq))
    return (*seen.damages, *more)


def _ordinal(damage: Damage, last: int) -> int:
    """Return the segment that a damage is in; the first where its place does not say."""
    if damage.kind == "missing":
        return last + 1
    if damage.where == OPEN_NAME:
        return last
    ordinal, colon, _ = damage.where.partition(":")
    return int(ordinal) if colon and ordinal.isdigit() else 0


def _parent(files: FileSystem, segments: list[Segment], found: Salvage) -> dict[str, Any] | None:
    """Return what the new header says of the parent, so that the segments before it still are inherited ones."""
    headers = [s.head.header for s in segments if s.name in found.segments]
    named = [dict(h.parent) for h in headers if h is not None and h.parent is not None]
    if not named:
        return None
    before = [s for s in segments if s.name not in found.segments]
    if not before:
        return named[-1]
    return {**named[-1], "upto_seq": found.first_seq - 1, "upto_bytes": content_bytes(files, before[-1])}


def repair(files: FileSystem, directory: str, session: str, plan: Plan, words: Words, *, by: str) -> Repaired:
    """Write the log anew, durably, and put what was there in quarantine. The caller holds the lease.

    Raises:
        OSError: the disk refused. Until the last step nothing has changed; another try begins anew.
    """
    now = datetime.now(UTC)
    done = Repaired(plan, (), timestamp(now))
    place = os.path.join(directory, QUARANTINE)
    make_dirs(files, place)
    stamp = f"{now:%Y%m%dT%H%M%S.%fZ}"
    if exists(files, os.path.join(directory, NEW_NAME)):  # a rescue, or a repair, that did not come to its end
        _keep(files, directory, NEW_NAME, stamp)
        files.unlink(os.path.join(directory, NEW_NAME))
    names: list[str] = []
    scan = LogScan(files, directory, session)
    try:
        for name in plan.salvage.segments:
            names.append(_keep(files, directory, name, stamp))  # noqa: PERF401 - what was kept is known when one fails
        segments = [s for s in scan.segments if s.name in plan.salvage.segments]
        if plan.salvage.branches:
            names.append(_keep_branches(files, segments, plan.salvage, place, f"{stamp}-other-writer.jsonl"))
        files.sync_dir(place)
        done = done._replace(quarantined=tuple(names))
        header = encode_header(
            session, ordinal=plan.ordinal, first_seq=plan.salvage.first_seq, nonce=random_hex(8),
            created=timestamp(now), by=by, rescue=True, parent=plan.parent,
        )  # fmt: skip
        anchors: dict[int, Anchor] = {}
        lines = _new_lines(files, segments, header, done, words)
        _write_new(files, directory, header, placed(lines, plan.ordinal, len(header.raw), plan.checkpoints, anchors))
        prepare(files, directory, anchors)
    except BaseException:  # all is as before, and so is the quarantine
        for path in (*(os.path.join(place, name) for name in names), os.path.join(directory, NEW_NAME)):
            discard(files, path)
        raise
    finally:
        scan.close()
    files.rename(os.path.join(directory, NEW_NAME), os.path.join(directory, OPEN_NAME))
    files.sync_dir(directory)
    for name in plan.salvage.segments:
        if name != OPEN_NAME:  # superseded, and kept under its other name
            files.unlink(os.path.join(directory, name))
    files.sync_dir(directory)
    finish_repair(files, directory, session)
    return done


def finish_repair(files: FileSystem, directory: str, session: str) -> None:
    """Do what is left to do of a repair once the log has its new form. The caller holds the lease. Idempotent.

    Raises:
        OSError: the disk refused.
    """
    scan = LogScan(files, directory, session)
    try:
        adopt(files, directory, session, scan.segments)
    finally:
        scan.close()


def _keep(files: FileSystem, directory: str, name: str, stamp: str) -> str:
    """Give a file a second name in quarantine, or a copy where the file system has no links; return that name."""
    source, kept = os.path.join(directory, name), f"{stamp}-{name}"
    target = os.path.join(directory, QUARANTINE, kept)
    try:
        files.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        with suppress(FileNotFoundError):
            files.unlink(target)
        _copy(files, source, target)
        return kept
    fd = files.open(target, READ)
    try:
        files.sync(fd)
    finally:
        files.close(fd)
    return kept


def _copy(files: FileSystem, source: str, target: str) -> None:
    fd = files.open(source, READ)
    try:
        _create(files, target, chunks(files, fd, 0))
    finally:
        files.close(fd)


def _create(files: FileSystem, path: str, blocks: Iterator[bytes]) -> None:
    """Write a new file, durable but for its name; nothing of it stays where that fails."""
    fd = files.open(path, CREATE)
    try:
        try:
            for block in blocks:
                write_all(files, fd, block)
            files.sync(fd)
        finally:
            files.close(fd)
    except BaseException:
        discard(files, path)
        raise


def _keep_branches(files: FileSystem, segments: list[Segment], found: Salvage, place: str, name: str) -> str:
    """Write the other writers' lines, as they were, to a file of their own."""
    lines = (e[1] + b"\n" for n, e in enumerate(lines_of(files, segments)) if found.keep[n] == 2)
    _create(files, os.path.join(place, name), lines)
    return name


def _write_new(files: FileSystem, directory: str, header: Header, lines: Iterator[bytes]) -> None:
    def blocks() -> Iterator[bytes]:
        waiting, size = [header.raw], 0
        for line in lines:
            waiting.append(line)
            size += len(line)
            if size >= WRITE_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join(waiting)

    _create(files, os.path.join(directory, NEW_NAME), blocks())


def _new_lines(
    files: FileSystem, segments: list[Segment], header: Header, done: Repaired, words: Words
) -> Iterator[bytes]:
    """Yield the lines of the repaired log: those that are kept, in order, fillers, and the report."""
    salt, dur, ts = header.salt, done.plan.salvage.dur, done.now
    seq, plan = done.plan.salvage.first_seq, done.plan
    anew = words.beginning(done.now) if words.beginning is not None and plan.begins_anew else None
    if anew is not None and not plan.salvage.lost:  # there is nothing at all
        yield encode_event(anew, seq=seq, dur=dur, salt=salt)
        seq += 1
    for text in _ordered(files, segments, plan.salvage):
        if isinstance(text, tuple):
            told = text[0] + (anew is not None and text[0] == plan.first < text[1])
            for missing in range(text[0], text[1] + 1):
                draft = words.filler(missing, told, text[1], ts)
                if anew is not None and missing == plan.first:
                    draft = anew
                yield encode_event(draft, seq=missing, dur=dur, salt=salt)
            seq = text[1] + 1
            continue
        line, dur, ts = _with_dur(text, dur, seq, ts)
        yield resealed(line + b"\n", salt)
        seq += 1
    yield encode_event(words.report(done), seq=seq, dur=dur, salt=salt)


def _with_dur(text: bytes, before: int, seq: int, ts: str) -> tuple[bytes, int, str]:
    """Return a line whose `dur` is one that can be, with that, and its time."""
    kind, dur = peek(text)
    if not kind:  # its members stand in another order
        return text, before, ts
    right = min(max(dur, before), seq - 1)
    at = text.index(b'"ts":"') + 6
    when = text[at : text.index(b'"', at)].decode("utf-8", "replace")
    if right != dur:
        place = text.index(b'","dur":') + 8
        text = text[:place] + b"%d" % right + text[text.index(b",", place) :]
    return text, right, when


def _ordered(files: FileSystem, segments: list[Segment], found: Salvage) -> Iterator[bytes | tuple[int, int]]:
    """Yield the texts that are kept in the order of their seq, and (first, last) where some are lost."""
    held: dict[int, bytes] = {}
    holes = dict(found.lost)
    seq = found.first_seq

    def ready() -> Iterator[bytes | tuple[int, int]]:
        nonlocal seq
        while seq in held or seq in holes:
            if seq in holes:
                yield seq, holes[seq]
                seq = holes[seq] + 1
            else:
                yield held.pop(seq)
                seq += 1

    for n, (now, text, _, _) in enumerate(lines_of(files, segments)):
        if found.keep[n] == 1:
            held[now] = text
            yield from ready()
    yield from ready()
