"""The appender: one write for each append, a fence against others, group sync, and rescue after a failed sync."""

import asyncio
import errno
import time
from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed, SessionHeld
from agentsh.log.files import RealFiles
from agentsh.log.frame import decode_header
from agentsh.log.store import OpenLog
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note, texts
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import LOG, SESSION
from tests.log.test_faults import store_on


async def test_each_append_is_one_write() -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, only=("write",))
    log = await store_on(files).create(SESSION, by="test 1")
    before = len(files.ops)
    for _ in range(3):
        await log.append([note("x")] * 50)
    assert len(files.ops) - before == 3
    await log.close()


async def test_another_writer_is_noticed_before_the_write() -> None:
    disk = MemFiles()
    store = store_on(disk)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("mine")])
    disk.nodes[LOG].data += b"somebody else\n"
    before = disk.data(LOG)
    for _ in range(2):
        with pytest.raises(SessionHeld):
            await log.append([note("late")])
    disk.nodes[LOG].data[:] = before[: -len(b"somebody else\n")]
    with pytest.raises(SessionHeld):  # it cannot know what the other did meanwhile
        await log.append([note("later")])
    assert log.last_seq == 1
    await log.close()
    assert texts(store.read(SESSION)) == ["mine"]


async def durable(log: OpenLog, seq: int) -> None:
    """Look on until it is durable by itself."""
    while log.durable_seq < seq:  # noqa: ASYNC110 - nobody tells those who do not wait
        await asyncio.sleep(0.01)


async def test_nobody_waits_and_it_becomes_durable_all_the_same() -> None:
    log = await store_on(MemFiles()).create(SESSION, by="test 1")
    await log.append([note("x")])
    await durable(log, 1)
    (after,) = await log.append([note("y")])
    assert after.dur == 1
    await log.close()


class SlowSync(RealFiles):
    """A disk whose syncs take their time."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        time.sleep(0.03)
        super().sync(fd)


async def test_many_waiters_share_a_sync(tmp_path: Path) -> None:
    files = SlowSync()
    store = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), files=files)
    log = await store.create(SESSION, by="test 1")
    before = files.syncs

    async def one(n: int) -> None:
        (record,) = await log.append([note(str(n))])
        await log.wait_durable(record.seq)
        assert log.durable_seq >= record.seq

    await asyncio.gather(*(one(n) for n in range(60)))
    assert files.syncs - before < 20
    await log.close()


async def test_always_is_durable_on_return_and_none_never_syncs(tmp_path: Path) -> None:
    files = SlowSync()
    blobs = FileBlobs(tmp_path / "blobs")
    log = await JsonlStore(tmp_path / "a", blobs, files=files, durability="always").create(SESSION, by="t")
    for n in range(1, 4):
        await log.append([note("x")])
        assert log.durable_seq == n
    await log.close()
    store = JsonlStore(tmp_path / "n", blobs, files=files, durability="none")
    assert not store.capabilities.durable
    log = await store.create(SESSION, by="t")
    before = files.syncs
    await log.append([note("x")] * 300)
    await log.wait_durable(300)
    await log.close()
    assert files.syncs == before


class SlowWrite(RealFiles):
    """A disk whose writes block, as a throttled one does."""

    def write(self, fd: int, data: bytes) -> int:
        time.sleep(0.2)
        return super().write(fd, data)


async def test_a_slow_disk_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), files=SlowWrite())
    log = await store.create(SESSION, by="test 1")
    writing = asyncio.ensure_future(log.append([note("x")]))
    turns = 0
    while not writing.done():
        turns += 1
        await asyncio.sleep(0.001)
    assert turns > 5
    await log.close()


@pytest.mark.parametrize("waits", [True, False])
async def test_a_failed_sync_moves_the_lines_to_a_rescue_segment(waits: bool) -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, error=errno.EIO, only=("sync",))
    store = store_on(files)
    log = await store.create(SESSION, by="test 1")
    await log.append([note(str(n)) for n in range(3)])
    await log.wait_durable(3)
    files.fail_at = len(files.ops) + 1
    await log.append([note("3"), note("4")])
    if waits:
        await log.wait_durable(5)
    else:
        await durable(log, 5)
    assert log.durable_seq == 5
    names = sorted(disk.listdir(f"/sessions/{SESSION}"))
    assert names == ["000000-000000000001.jsonl", "events.jsonl", "lock"]
    header = decode_header(disk.data(LOG).partition(b"\n")[0] + b"\n")
    assert (header.rescue, header.ordinal, header.first_seq) == (True, 1, 4)
    await log.append([note("5")])
    await log.close()
    assert texts(store.read(SESSION)) == list("012345")
    assert list(store.damages(SESSION)) == []
    # What the kernel dropped does not matter: the old lines beyond the rescue's first seq are not looked at.
    closed = disk.nodes[f"/sessions/{SESSION}/000000-000000000001.jsonl"]
    closed.data[-90:] = bytes(90)
    opened = await store.open(SESSION)
    assert texts(opened.records) == list("012345")
    assert not opened.recovery
    await opened.log.append([note("6")])
    await opened.log.close()
    assert texts(store.read(SESSION)) == list("0123456")


async def test_a_second_rescue() -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, error=errno.EIO, only=("sync",))
    store = store_on(files)
    log = await store.create(SESSION, by="test 1")
    for n in range(4):
        files.fail_at = len(files.ops) + 1
        await log.append([note(str(n))])
        await log.wait_durable(n + 1)
    await log.close()
    assert texts(store.read(SESSION)) == list("0123")
    assert len([name for name in disk.listdir(f"/sessions/{SESSION}") if name.endswith(".jsonl")]) == 5


async def test_when_the_rescue_fails_too_nothing_more_is_promised() -> None:
    disk = MemFiles()
    files = FaultyFiles(disk, error=errno.EIO, for_ever=True, only=("sync",))
    store = store_on(files)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("0")])
    await log.wait_durable(1)
    await log.append([note("1")])
    files.fail_at = len(files.ops) + 1
    for _ in range(2):
        with pytest.raises(LogWriteFailed):
            await log.wait_durable(2)
        with pytest.raises(LogWriteFailed):
            await log.append([note("2")])
    await log.wait_durable(1)
    with pytest.raises(LogWriteFailed):
        await log.close()
    assert disk.fds == {}
    assert texts(store_on(disk).read(SESSION)) == ["0", "1"]
    opened = await store_on(disk).open(SESSION)
    await opened.log.close()


async def test_lines_of_a_dead_process_are_rescued_as_well() -> None:
    disk = MemFiles()
    log = await JsonlStore("/sessions", FileBlobs("/blobs", files=disk), files=disk, durability="none").create(
        SESSION, by="t"
    )
    await log.append([note(str(n)) for n in range(5)])
    await log.close()
    files = FaultyFiles(disk, 1, errno.EIO, only=("sync",))
    opened = await store_on(files).open(SESSION)
    await opened.log.append([note("5")])
    await opened.log.wait_durable(6)
    await opened.log.close()
    header = decode_header(disk.data(LOG).partition(b"\n")[0] + b"\n")
    assert (header.rescue, header.first_seq) == (True, 1)
    assert texts(store_on(disk).read(SESSION)) == list("012345")


async def test_waiting_for_what_was_never_written() -> None:
    log = await store_on(MemFiles()).create(SESSION, by="test 1")
    with pytest.raises(LogWriteFailed):
        await log.wait_durable(7)
    await log.close()
