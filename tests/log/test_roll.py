"""Changing segments at a turn's end: a crash or a refusal at any step leaves a log with nothing lost."""

import asyncio
import errno
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from agentsh.log.frame import decode_header
from agentsh.log.record import Header
from agentsh.log.recover import OpenSegment
from agentsh.log.segment import OPEN_NAME, begin_segment, closed_name
from agentsh.log.writer import Appender
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.memory import MemoryBlobs
from agentsh.testing.store_contract import note, texts
from tests.log.disks import FaultyFiles, MemFiles, PowerCut
from tests.log.logs import DIR, LOG, SESSION, header, scanned
from tests.log.test_faults import store_on

ERRORS = [errno.ENOSPC, errno.EIO]


def head_of(data: bytes) -> Header:
    return decode_header(data.partition(b"\n")[0] + b"\n")


def appender_on(files: MemFiles | FaultyFiles, **more: object) -> Appender:
    """Return an appender of an empty log, without a thread, so that every operation has its number."""
    first = header()
    fd = begin_segment(files, DIR, first)
    segment = OpenSegment(fd, len(first.raw), first.salt, 0, 1)
    return Appender(
        files, DIR, SESSION, segment, blobs=MemoryBlobs(), by="test 1", last_seq=0, durable_seq=0, durability="none"
    )


def disk_with(kind: Callable[[], MemFiles]) -> MemFiles:
    disk = kind()
    disk.put(f"{DIR}/lock", b"")
    return disk


def test_a_segment_is_closed_and_another_begun() -> None:
    disk = disk_with(MemFiles)
    log = appender_on(disk)
    assert not log.roll()  # nothing in it yet
    log.append([note(str(n)) for n in range(5)])
    whole = disk.data(LOG)
    assert not log.roll(len(whole) + 1)
    assert log.roll(len(whole))
    assert (log.ordinal, log.size) == (1, len(disk.data(LOG)))
    assert not log.roll()
    log.append([note(str(n)) for n in range(5, 8)])
    log.close()
    assert disk.fds == {}
    assert disk.data(f"{DIR}/{closed_name(0, 1)}") == whole
    second = head_of(disk.data(LOG))
    assert (second.ordinal, second.first_seq, second.rescue) == (1, 6, False)
    assert second.prev_sha256 == sha256(whole).hexdigest()
    found, scan = scanned(disk)
    assert [seq for seq, _ in found] == list(range(1, 9))
    assert scan.damages == []


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("for_ever", [False, True])
async def test_every_operation_of_a_roll_fails_in_turn(error: int, for_ever: bool) -> None:
    """Once: a refusal, after which the log goes on. For ever: a crash, also one that takes what was not synced."""
    n, done = 0, False
    while not done:
        n += 1
        disk = disk_with(PowerCut)
        assert isinstance(disk, PowerCut)
        files = FaultyFiles(disk)
        log = appender_on(files)
        log.append([note(str(n)) for n in range(5)])
        files.ops, files.fail_at, files.error, files.for_ever = [], n, error, for_ever
        assert log.roll() or files.hit
        done = not files.hit
        if done or not for_ever:
            files.fail_at = 0
        wanted = list("01234")
        if not for_ever:
            log.append([note("5")])
            log.roll()
            log.append([note("6")])
            wanted += ["5", "6"]
        files.fail_at = 0
        log.close()
        assert disk.fds == {}, n
        for after in (*disk.left(), disk) if for_ever else (disk,):
            store = store_on(after)
            read = texts(store.read(SESSION))
            synced = after is disk or n > files.ops.index("sync") + 1  # with durability `none` the roll syncs first
            assert read == (wanted if synced else []), n
            opened = await store.open(SESSION)
            assert not opened.recovery.damages, n
            await opened.log.append([note("more")])
            await opened.log.close()
            assert texts(store.read(SESSION)) == [*read, "more"], n
            assert [r.seq for r in store.read(SESSION, after_seq=3)] == list(range(4, len(read) + 2)), n
            assert list(store.damages(SESSION)) == [], n
    assert n > 8


def test_a_header_that_finds_no_room() -> None:
    """The empty file is taken away again, and the log goes on in the old segment until there is room."""
    disk = disk_with(MemFiles)
    files = FaultyFiles(disk, only=("write",))
    log = appender_on(files)
    log.append([note("0")])
    files.error, files.fail_at = errno.ENOSPC, len(files.ops) + 1
    assert not log.roll()
    assert sorted(disk.listdir(DIR)) == [OPEN_NAME, "lock"]
    log.append([note("1")])
    files.fail_at = 0
    assert log.roll()
    log.append([note("2")])
    log.close()
    assert [seq for seq, _ in scanned(disk)[0]] == [1, 2, 3]


def test_a_file_that_somebody_else_changed_is_not_closed() -> None:
    disk = disk_with(MemFiles)
    log = appender_on(disk)
    log.append([note("0")])
    disk.nodes[LOG].data += b"x"
    assert not log.roll()
    del disk.nodes[LOG].data[-1:]
    disk.put(f"{DIR}/other", b"")
    disk.nodes[f"{DIR}/mine"] = disk.nodes.pop(LOG)
    assert not log.roll()
    assert scanned(disk)[0] == []
    log.close()


async def test_rolling_while_others_wait_for_their_syncs(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), segment_bytes=3_000)
    log = await store.create(SESSION, by="test 1")

    async def one(n: int) -> None:
        (record,) = await log.append([note(f"{n} " + "x" * 200)])
        if n % 3:
            await log.wait_durable(record.seq)
        await log.turn_ended()

    for first in range(0, 150, 10):
        await asyncio.gather(*(one(n) for n in range(first, first + 10)))
    await log.close()
    records = list(store.read(SESSION))
    assert [r.seq for r in records] == list(range(1, 151))
    assert {text.split()[0] for text in texts(records)} == {str(n) for n in range(150)}
    assert len([p for p in (tmp_path / "sessions" / SESSION).iterdir() if "-" in p.name]) > 8
    assert list(store.damages(SESSION)) == []


async def test_a_rescue_and_a_roll(tmp_path: Path) -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, error=errno.EIO, only=("sync",))
    store = JsonlStore("/sessions", FileBlobs("/blobs", files=files), files=files, segment_bytes=1)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("0")])
    files.fail_at = len(files.ops) + 1  # the roll has to sync what is written, and that goes wrong
    await log.turn_ended()
    await log.append([note("1")])
    await log.turn_ended()
    await log.append([note("2")])
    await log.close()
    store = store_on(disk)
    assert texts(store.read(SESSION)) == list("012")
    assert list(store.damages(SESSION)) == []
