"""Opening from a checkpoint is opening the whole log, only sooner: the same records, repairs and words."""

import copy
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentsh.base.errors import AgentshError
from agentsh.log import opening
from agentsh.log.chain import Anchor, LogScan
from agentsh.log.check import survey
from agentsh.log.checkpoint import Checkpoint, checkpoint_name, write_checkpoint
from agentsh.log.opening import OpenedLog, open_log
from agentsh.log.segment import OPEN_NAME, closed_name
from agentsh.log.skipped import FILE, skipped_damages
from agentsh.log.store import Damage
from tests.log.disks import MemFiles
from tests.log.logs import DIR, LOG, SESSION, header, line, lines
from tests.log.sealed_logs import seal_all, segment, three_segments
from tests.log.test_checkpoint import REDUCER, anchor_of

AT = 45
"""Where the checkpoint is: in the open segment, which has 41 to 60."""


def with_checkpoint(*seqs: int, disk: MemFiles | None = None) -> MemFiles:
    """Return a disk with records 1 to 60 and checkpoints whose state is the list of texts up to there."""
    disk = disk or three_segments()
    for seq in seqs or (AT,):
        state = json.dumps([f"text {n}" for n in range(1, seq + 1)]).encode()
        write_checkpoint(disk, DIR, Checkpoint(anchor_of(disk, seq), SESSION, REDUCER, state))
    return disk


def opened(disk: MemFiles, reducer: str | None = REDUCER) -> OpenedLog:
    found = open_log(disk, DIR, SESSION, by="t", reducer=reducer, durable=True)
    disk.close(found.segment.fd)
    assert disk.fds == {}
    return found


def content(found: OpenedLog) -> list[str]:
    """Return all texts: those of the state, and those behind it."""
    state = json.loads(found.folded.state) if found.folded is not None else []
    return [*state, *(record.payload["text"] for record in found.records)]


def outcome(disk: MemFiles, reducer: str | None) -> tuple[Any, ...]:
    """Return everything that an opening says and leaves behind, but for the nonces of new segments."""
    try:
        found = opened(disk, reducer)
    except AgentshError as error:
        return type(error), str(error)
    scan = LogScan(disk, DIR, SESSION)
    after = [(seq, text[:-19]) for seq, text, _, _ in scan.entries()]
    scan.close()
    kept = {path: disk.data(path) for path in disk.nodes if "/quarantine/" in path}
    return content(found), found.recovery, found.last_seq, after, kept


def behind_the_anchor(data: bytes, start: int) -> Iterator[tuple[str, bytes]]:
    """Yield logs with something wrong behind the anchor's line."""
    for at in range(start, len(data), 7):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        yield f"flip {at}", bytes(flipped)
        if at % 2 == 0:
            yield f"cut {at}", data[:at]
    text = [part + b"\n" for part in data[start:].split(b"\n")[:-1]]
    head = data[:start]
    early = data.split(b"\n")[2] + b"\n"
    foreign = header(7, 1)
    yield from (
        ("as it is", data),
        ("no newline", data[:-1]),
        ("NULs", data + bytes(5_000)),
        ("garbage", data + b"garbage"),
        ("a line twice", head + text[0] + b"".join(text)),
        ("a line missing", head + b"".join(text[:2] + text[3:])),
        ("two lines swapped", head + text[1] + text[0] + b"".join(text[2:])),
        ("a line from before the anchor", data + early),
        ("another line with a number from before", data + line(42, segment(2, 41, 41)[0].salt, text="another")),
        ("two writers", head + b"".join(text) + line(50, segment(2, 41, 41)[0].salt, text="another")),
        ("foreign lines", data + foreign.raw + b"".join(lines(foreign, 1, 3))),
        ("blank lines", head + b"\n\n" + b"".join(text)),
        ("crlf", head + b"".join(part[:-1] + b"\r\n" for part in text)),
        ("glued", head + text[0][:40] + text[1] + b"".join(text[2:])),
        ("nothing behind it", head),
    )


def test_whatever_is_wrong_behind_the_anchor_is_judged_as_without_it() -> None:
    disk = with_checkpoint()
    data = disk.data(LOG)
    start = data.index(b"\n", anchor_of(disk, AT).offset) + 1
    seen = 0
    for name, log in behind_the_anchor(data, start):
        first, second = copy.deepcopy(disk), copy.deepcopy(disk)
        first.put(LOG, log)
        second.put(LOG, log)
        assert outcome(first, REDUCER) == outcome(second, None), name
        seen += 1
    assert seen > 350


def test_the_open_segment_itself_is_missing_or_half_there() -> None:
    """The anchor is in a closed segment; what the roll left of the next one is put in order as ever."""
    for log in (None, b"", b"{", header(2, 41).raw[:50], header(2, 41).raw, bytes(400)):
        disks = [with_checkpoint(40) for _ in range(2)]
        for disk in disks:
            disk.unlink(LOG) if log is None else disk.put(LOG, log)
        assert outcome(disks[0], REDUCER) == outcome(disks[1], None), log


@pytest.mark.parametrize("at", [7, 30, 45, 60])
@pytest.mark.parametrize("seal", [False, True])
def test_only_what_is_behind_the_newest_checkpoint_is_handed_out(at: int, seal: bool) -> None:
    disk = with_checkpoint(5, at)
    if seal:
        seal_all(disk)
    found = opened(disk)
    assert found.folded is not None
    assert (found.folded.upto_seq, [r.seq for r in found.records]) == (at, list(range(at + 1, 61)))
    assert content(found) == [f"text {n}" for n in range(1, 61)]
    assert not found.recovery


@pytest.mark.parametrize("kept", [0, 12])
@pytest.mark.parametrize("end", [b"", b'{"seq":5', bytes(300)])
def test_an_end_that_a_checkpoint_knew_of_is_missed_and_its_numbers_stay_unused(kept: int, end: bytes) -> None:
    """No line tells that the open segment was cut at a line's end, or that an older copy of it was put back."""
    disk = with_checkpoint(20, 60)
    data = b"".join(disk.data(LOG).splitlines(keepends=True)[: kept + 1])
    disk.put(LOG, data + end)
    last = 40 + kept
    lost = Damage(f"000002:{len(data)}", "gap", 0, last, rot=True)
    for reducer in (REDUCER, REDUCER, None):  # again at each opening, until something is written
        found = opened(disk, reducer)
        assert (found.last_seq, found.durable_seq) == (60, 60)
        assert found.recovery.damages == (lost,)
        assert found.recovery.lost_after(last) == last, "a call before it may have run"
        assert content(found) == [f"text {n}" for n in range(1, last + 1)]
        assert survey(disk, DIR, SESSION).damages == (lost,)
    disk.put(LOG, data + line(61, segment(2, 41, 41)[0].salt, dur=60))
    found = opened(disk)
    assert (found.last_seq, found.recovery.damages) == (61, (lost,)), "the gap tells of itself from here on"


def test_a_checkpoint_ahead_of_the_log_that_is_damaged_or_foreign_tells_nothing() -> None:
    disk = with_checkpoint(20, 60)
    path = f"{DIR}/checkpoints/{checkpoint_name(60)}"
    disk.put(LOG, b"".join(disk.data(LOG).splitlines(keepends=True)[:13]))
    disk.put(path, disk.data(path)[:-1])
    assert (opened(disk).last_seq, opened(disk).recovery.damages) == (52, ())
    write_checkpoint(disk, DIR, Checkpoint(Anchor(60, 2, 1, "00000000"), "20261129-zzzzzz", REDUCER, b"{}"))
    assert (opened(disk).last_seq, opened(disk).recovery.damages) == (52, ())


def test_deleting_all_checkpoints_changes_nothing() -> None:
    disk = with_checkpoint(5, 30, 45)
    with_them = outcome(disk, REDUCER)
    for path in [p for p in disk.nodes if "/checkpoints" in p]:
        del disk.nodes[path]
    assert outcome(disk, REDUCER) == with_them == outcome(with_checkpoint(), None)


def test_a_checkpoint_that_is_of_no_use_leaves_the_next_older_or_the_log() -> None:
    place = f"{DIR}/checkpoints/{checkpoint_name(45)}"
    cases: list[tuple[Callable[[MemFiles], object], int]] = [
        (lambda d: d.nodes[place].data.__setitem__(20, d.nodes[place].data[20] ^ 4), 30),
        (lambda d: d.put(place, b""), 30),
        (lambda d: d.put(LOG, d.data(LOG)[: anchor_of(d, 45).offset]), 30),  # ahead of the log
        (lambda d: write_checkpoint(d, DIR, Checkpoint(anchor_of(d, 45), SESSION, "fold 2", b"[]")), 30),
        (lambda d: write_checkpoint(d, DIR, Checkpoint(anchor_of(d, 45), "another", REDUCER, b"[]")), 30),
        (lambda d: d.put(f"{DIR}/{closed_name(1, 21)}", d.data(f"{DIR}/{closed_name(1, 21)}")[:100]), 45),
    ]
    for harm, newest in cases:
        disk = with_checkpoint(30, 45)
        harm(disk)
        found = opened(disk)
        assert found.folded is not None
        assert found.folded.upto_seq == newest
    disk = with_checkpoint(30, 45)
    assert opened(disk, "fold 3").folded is None
    assert content(opened(disk, "fold 3")) == content(opened(disk))


def test_damage_before_the_anchor_is_found_afterwards_and_not_by_opening() -> None:
    disk = with_checkpoint()
    data, start = disk.data(LOG), anchor_of(disk, AT).offset
    first = f"{DIR}/{closed_name(0, 1)}"
    for path, at in [(LOG, at) for at in range(0, start, 31)] + [(first, at) for at in range(5, 2_000, 100)]:
        hit = copy.deepcopy(disk)
        hit.nodes[path].data[at] ^= 2
        found = opened(hit)
        assert content(found) == [f"text {n}" for n in range(1, 61)], at
        assert not found.recovery.damages
        assert [d.kind for d in skipped_damages(hit, DIR, SESSION, threading.Event())] != [], (path, at)
    assert data == disk.data(LOG)
    assert skipped_damages(disk, DIR, SESSION, threading.Event()) == []


def test_what_was_verified_is_not_read_again() -> None:
    disk = with_checkpoint()
    assert skipped_damages(disk, DIR, SESSION, threading.Event()) == []
    first = disk.nodes[f"{DIR}/{closed_name(0, 1)}"]
    first.data[600] ^= 1  # the file is the same by its name, size and time
    assert skipped_damages(disk, DIR, SESSION, threading.Event()) == []
    first.data[600] ^= 1
    seal_all(disk, below=1)
    disk.nodes[f"{DIR}/{closed_name(0, 1)}.zst"].data[60] ^= 1
    assert skipped_damages(disk, DIR, SESSION, threading.Event()) != [], "another file is read"
    for nonsense in (b"", b"[]", b'{"segments":3}', b'{"segments":[3]}', b'{"segments":[[]]}', b"\xff"):
        disk.put(f"{DIR}/checkpoints/{FILE}", nonsense)
        assert skipped_damages(disk, DIR, SESSION, threading.Event()) != []


def test_a_look_back_ends_when_it_is_told_to() -> None:
    disk = MemFiles()
    head, data = segment(0, 1, 2_000)
    disk.put(LOG, data.replace(b"text 1900", b"text 190x"))
    assert head.first_seq == 1
    stop = threading.Event()
    assert len(skipped_damages(disk, DIR, SESSION, stop)) == 1
    stop.set()
    assert skipped_damages(disk, DIR, SESSION, stop) == []


def test_a_log_that_is_longer_than_memory_should_hold_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "KEPT_BYTES", 1_000)
    for seqs in ((), (30,)):
        disk = with_checkpoint(*seqs) if seqs else three_segments()
        found = opened(disk)
        count = 60 - (seqs[0] if seqs else 0)
        assert isinstance(found.records, opening.Reread)
        assert len(found.records) == count == len(list(found.records)) == len(list(found.records))
        assert [found.records[0].seq, found.records[-1].seq] == [61 - count, 60]
        assert [r.seq for r in found.records[-2:]] == [59, 60]
        assert content(found) == [f"text {n}" for n in range(1, 61)]
        data = disk.data(f"{DIR}/{OPEN_NAME}")
        disk.put(f"{DIR}/{OPEN_NAME}", data + line(61, segment(2, 41, 41)[0].salt, dur=60))
        assert len(list(found.records)) == count, "what was appended later is not of the opening"
    head = header()
    disk = MemFiles()
    disk.put(LOG, head.raw + b"".join(lines(head, 1, 60, behind=100)))  # of which no line says that it is durable
    found = open_log(disk, DIR, SESSION, by="t", reducer=None, durable=True)
    assert found.unsynced
    assert [seq for seq, _ in found.unsynced] == list(range(found.unsynced[0][0], 61))
    assert sum(len(text) for _, text in found.unsynced) <= 1_000
