"""The n-th operation on the disk fails, for every n, once and for ever: nothing acknowledged is lost."""

import errno
from collections.abc import Sequence
from contextlib import suppress

import pytest

from agentsh.base.errors import AgentshError, LogWriteFailed, SessionExists, SessionReadOnly
from agentsh.log.record import Draft, Record
from agentsh.log.store import OpenLog
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import SESSION

ERRORS = [errno.ENOSPC, errno.EIO]


def store_on(files: MemFiles | FaultyFiles) -> JsonlStore:
    return JsonlStore("/sessions", FileBlobs("/blobs", files=files), files=files)


async def append(log: OpenLog, acked: list[Record], drafts: Sequence[Draft]) -> None:
    """Append, and once more as the engine does when there is room again."""
    for _ in range(2):
        try:
            acked += await log.append(drafts)
        except LogWriteFailed:
            continue
        break


async def life(store: JsonlStore, acked: list[Record], synced: list[int]) -> None:
    """Do everything that a session does, whatever fails."""
    try:
        log = await store.create(SESSION, by="test 1")
    except (LogWriteFailed, SessionReadOnly):
        return
    for n in range(3):
        await append(log, acked, [note(f"{n}a"), note(f"{n}b")])
        with suppress(LogWriteFailed):
            await log.wait_durable(log.last_seq)
            synced.append(log.last_seq)
    await append(log, acked, [note("x" * 30_000)])
    await close(log)
    try:
        opened = await store.open(SESSION)
    except (LogWriteFailed, SessionReadOnly):
        return
    await append(opened.log, acked, [note("again")])
    await close(opened.log)


async def close(log: OpenLog) -> None:
    with suppress(LogWriteFailed):
        await log.close()
    await log.close()


async def healthy(disk: MemFiles) -> list[Record]:
    """Return what the next process finds; it must be able to go on from there."""
    store = store_on(disk)
    if SESSION not in store.sessions():
        log = await store.create(SESSION, by="test 2")
        await log.close()
    opened = await store.open(SESSION)
    found = list(opened.records)
    (more,) = await opened.log.append([note("still alive")])
    await opened.log.wait_durable(more.seq)
    await opened.log.close()
    assert [r.seq for r in store.read(SESSION)] == [*(r.seq for r in found), more.seq]
    assert not [d for d in store.damages(SESSION) if not d.harmless and d.after_seq]  # a damaged header may stand
    return found


def body(record: Record) -> tuple[int, bytes]:
    return record.seq, record.raw[:-19]  # a rescue changes the crc


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("for_ever", [False, True])
async def test_every_operation_fails_in_turn(error: int, for_ever: bool) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = MemFiles()
        files = FaultyFiles(disk, n, error, for_ever=for_ever)
        acked: list[Record] = []
        synced: list[int] = []
        await life(store_on(files), acked, synced)
        done = not files.hit
        assert disk.fds == {}, (n, files.ops[n - 1 :])
        found = await healthy(disk)
        if for_ever:  # also the cutting back fails then, so that what was refused may be there all the same
            assert [body(r) for r in found[: len(acked)]] == [body(r) for r in acked], n
        else:
            assert [body(r) for r in found] == [body(r) for r in acked], (n, files.ops[n - 1 :])
        assert all(seq <= len(found) for seq in synced)
    assert n > 40


@pytest.mark.parametrize("taken", [1, 30, 180])
async def test_every_write_is_short_in_turn(taken: int) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = MemFiles()
        files = FaultyFiles(disk, n, only=("write",), short=taken)
        acked: list[Record] = []
        await life(store_on(files), acked, [])
        done = not files.hit
        assert [body(r) for r in await healthy(disk)] == [body(r) for r in acked], n


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("for_ever", [False, True])
async def test_every_operation_of_a_recovery_fails_in_turn(error: int, for_ever: bool) -> None:
    """Recovery may stop anywhere; the next one goes on from there, and no byte is lost on the way."""
    disk = MemFiles()
    store = store_on(disk)
    log = await store.create(SESSION, by="test 1")
    await log.append([note(str(n)) for n in range(5)])
    await log.close()
    path = f"/sessions/{SESSION}/events.jsonl"
    whole, torn = disk.data(path), b'{"seq":6,"ts":"2026' + bytes(100)
    for data, kept in (
        (whole + torn, torn),
        (whole[:-1], b""),
        (b"\xff" * 99 + b"\n" + whole.partition(b"\n")[2], b""),
    ):
        n, done = 0, False
        while not done:
            n += 1
            disk = MemFiles()
            disk.put(path, data)
            files = FaultyFiles(disk, n, error, for_ever=for_ever)
            with suppress(AgentshError):
                opened = await store_on(files).open(SESSION)
                await opened.log.close()
            assert disk.fds == {}, (n, files.ops[n - 1 :])
            done = not files.hit
            assert [r.payload["text"] for r in await healthy(disk)] == list("01234"), n
            quarantine = [disk.data(p) for p in disk.nodes if "/quarantine/" in p]
            assert (kept in quarantine) == bool(kept)
        assert n > 5


async def test_a_session_that_could_not_be_created_is_not_listed() -> None:
    for n in range(1, 30):
        disk = MemFiles()
        files = FaultyFiles(disk, n, errno.ENOSPC)
        store = store_on(files)
        try:
            log = await store.create(SESSION, by="test 1")
        except LogWriteFailed:
            files.fail_at = 0
            assert store.sessions() == [], n
            log = await store.create(SESSION, by="test 1")
        except SessionExists:
            pytest.fail(f"operation {n} left a half-made session")
        files.fail_at = 0
        await log.append([note("fine")])
        await close(log)


async def test_a_full_disk_holds_and_goes_on() -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, error=errno.ENOSPC, for_ever=True, only=("write",))
    store = store_on(files)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("one")])
    files.fail_at = 1
    for _ in range(5):
        with pytest.raises(LogWriteFailed) as refused:
            await log.append([note("two")])
    assert refused.value.hint is not None
    assert "free some space" in refused.value.hint
    assert log.last_seq == 1
    assert [r.seq for r in store.read(SESSION)] == [1]
    files.fail_at = 0
    await log.append([note("two")])
    await log.close()
    assert [r.payload["text"] for r in store.read(SESSION)] == ["one", "two"]
    assert list(store.damages(SESSION)) == []


async def test_what_could_not_be_cut_back_is_cut_before_the_next_append() -> None:
    disk = MemFiles()
    writes = FaultyFiles(disk, only=("write",), short=40)
    files = FaultyFiles(writes, error=errno.EIO, for_ever=True, only=("truncate",))
    store = store_on(files)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("one")])
    writes.fail_at, files.fail_at = len(writes.ops) + 1, 1
    for _ in range(3):
        with pytest.raises(LogWriteFailed):
            await log.append([note("two")])
    files.fail_at = 0
    await log.append([note("three")])
    await log.close()
    assert [r.payload["text"] for r in store.read(SESSION)] == ["one", "three"]
    assert list(store.damages(SESSION)) == []
