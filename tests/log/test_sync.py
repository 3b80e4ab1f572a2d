"""Group sync: every batch closes, whoever waits is told, and the thread is woken only where it must be."""

import asyncio
import errno
import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from agentsh.base.errors import LogWriteFailed
from agentsh.log import sync as module
from agentsh.log.sync import GroupSync
from agentsh.testing.store_contract import note, texts
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import LOG, SESSION
from tests.log.test_faults import store_on

PATIENCE_S = 20


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Written:
    """Lines that are written, and the syncs of them."""

    def __init__(self) -> None:
        self.seq = 0
        self.syncs = 0
        self.sync = GroupSync(self._flush, 0, 0, "s")

    def _flush(self) -> int:
        self.syncs += 1
        return self.seq

    def write(self, events: int = 1, size: int = 1) -> None:
        self.seq += events
        self.sync.wrote(self.seq, events, size)


def test_a_batch_closes_by_its_age_also_where_nobody_woke_the_thread() -> None:
    lines = Written()
    for n in range(1, 4):  # from the second on the thread has not gone to sleep for good yet
        lines.write()
        until(lambda: lines.sync.durable_seq == lines.seq)
        assert lines.syncs == n
    until(lambda: lines.sync._looks_at == math.inf)
    lines.write()
    until(lambda: lines.sync.durable_seq == 4)
    lines.sync.stop()
    assert lines.syncs == 4


def test_the_thread_is_not_woken_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_AGE_S", 3600.0)
    lines = Written()
    lines.write()
    until(lambda: lines.sync._looks_at > time.monotonic())
    for _ in range(90):
        lines.write()
    assert lines.sync._wake.empty()
    assert lines.syncs == 0
    lines.sync.stop()
    assert (lines.syncs, lines.sync.durable_seq) == (1, 91)


@pytest.mark.parametrize(("events", "size"), [(module.MAX_BATCH_EVENTS, 1), (1, module.MAX_BATCH_BYTES)])
@pytest.mark.parametrize("asleep", [False, True])
def test_a_full_batch_closes_at_once(events: int, size: int, asleep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_AGE_S", 3600.0)
    lines = Written()
    lines.write()
    if asleep:
        until(lambda: lines.sync._looks_at > time.monotonic())
    lines.write(events, size)
    until(lambda: lines.sync.durable_seq == lines.seq)
    lines.sync.stop()


def test_everybody_who_waits_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_AGE_S", 3600.0)
    lines, order, told = Written(), threading.Lock(), list[int]()

    def tell(seq: int, failure: LogWriteFailed | None) -> None:
        assert failure is None
        told.append(seq)

    def some() -> None:
        for n in range(100):
            with order:
                lines.write()
                seq = lines.seq
                if n % 7 == 0:
                    lines.sync.now(seq)
            if n % 3 == 0:
                lines.sync.when_durable(seq, partial(tell, seq))
            if n % 10 == 0:
                lines.sync.wait(seq).result(timeout=PATIENCE_S)

    threads = [threading.Thread(target=some) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(told) == 3 * 34)
    assert len(set(told)) == len(told)
    lines.sync.stop()
    assert lines.sync.durable_seq == 300


class TestAppendsThatSomebodyWaitsFor:
    """`append(…, awaited=True)`: the sync begins with the append, on its thread."""

    async def test_they_are_durable_on_return_with_one_sync(self) -> None:
        disk = MemFiles()
        log = await store_on(disk).create(SESSION, by="test 1")
        before = len(disk.synced)
        await log.append([note("0")])
        records = await log.append([note("1"), note("2")], awaited=True)
        assert log.durable_seq == records[-1].seq == 3
        await log.wait_durable(3)
        await log.close()
        assert len(disk.synced) - before == 1

    async def test_a_failing_sync_moves_the_lines_to_a_rescue(self) -> None:
        disk = MemFiles()
        files = FaultyFiles(disk, error=errno.EIO, only=("sync",))
        log = await store_on(files).create(SESSION, by="test 1")
        await log.append([note("0")])
        files.fail_at = len(files.ops) + 1
        await log.append([note("1")], awaited=True)
        await log.wait_durable(2)
        await log.append([note("2")])
        await log.close()
        assert texts(store_on(disk).read(SESSION)) == list("012")
        assert "000000-000000000001.jsonl" in disk.listdir(f"/sessions/{SESSION}")

    async def test_where_that_fails_too_they_are_appended_and_who_waits_is_told(self) -> None:
        disk = MemFiles()
        files = FaultyFiles(disk, error=errno.EIO, for_ever=True, only=("sync",))
        log = await store_on(files).create(SESSION, by="test 1")
        files.fail_at = len(files.ops) + 1
        (record,) = await log.append([note("0")], awaited=True)
        assert (record.seq, log.last_seq, log.durable_seq) == (1, 1, 0)
        with pytest.raises(LogWriteFailed, match="rescue"):
            await log.wait_durable(1)
        with pytest.raises(LogWriteFailed, match="rescue"):
            await log.append([note("1")], awaited=True)
        with pytest.raises(LogWriteFailed):
            await log.close()
        assert texts(store_on(disk).read(SESSION)) == ["0"]


class LyingDisk(MemFiles):
    """Its first sync of a log waits for `goes_on` and fails, so does that of the rescue; from then on all is well."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def sync(self, fd: int) -> None:
        node = self.fds[fd][0]
        if not self.goes_on.is_set() and node is self.nodes.get(LOG) and node.data.count(b"\n") > 1:
            self.begun.set()
            assert self.goes_on.wait(PATIENCE_S)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.begun.is_set() and node is self.nodes.get(f"{LOG}.new"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


class Queue:
    """A lock that tells when somebody waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waited = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waited.set()
            self._lock.acquire()

    def __exit__(self, *what: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("awaited_first", [False, True])
async def test_who_waited_for_a_sync_that_failed_does_not_sync_again(awaited_first: bool) -> None:
    """Two threads sync; after a failure the kernel takes the lost pages for clean, and a second sync would lie."""
    disk = LyingDisk()
    log = await store_on(disk).create(SESSION, by="test 1")
    appender, queue = log._appender, Queue()  # type: ignore[attr-defined]
    appender._flushing = queue
    if awaited_first:
        first = asyncio.create_task(log.append([note("0")], awaited=True))
        assert await asyncio.to_thread(disk.begun.wait, PATIENCE_S)
        appender._sync.wrote(1, module.MAX_BATCH_EVENTS, 1)  # a batch is due on the other thread meanwhile
    else:
        await log.append([note("0")])
        first = asyncio.create_task(log.wait_durable(1))  # type: ignore[arg-type]
        assert await asyncio.to_thread(disk.begun.wait, PATIENCE_S)
        second = asyncio.create_task(log.append([note("1")], awaited=True))
    assert await asyncio.to_thread(queue.waited.wait, PATIENCE_S)
    disk.goes_on.set()
    await asyncio.wait([first])
    if not awaited_first:
        assert isinstance(first.exception(), LogWriteFailed)
        await second
    for seq in range(1, log.last_seq + 1):
        with pytest.raises(LogWriteFailed, match="rescue"):
            await log.wait_durable(seq)
    with pytest.raises(LogWriteFailed):
        await log.close()
    assert log.durable_seq == 0
    assert texts(store_on(disk).read(SESSION)) == list("01")[: log.last_seq]


class TestSyncOnTheCallersThread:
    """`GroupSync.now`: what `always` uses."""

    def test_it_syncs_at_once_and_here(self) -> None:
        where: list[int] = []

        def flush() -> int:
            where.append(threading.get_ident())
            return 5

        sync = GroupSync(flush, 0, 0, "s")
        sync.now(5)
        assert (sync.durable_seq, where) == (5, [threading.get_ident()])
        sync.wait(5).result(timeout=30)
        sync.stop()
        assert len(where) == 1

    def test_after_a_failure_nothing_is_promised_to_anybody(self) -> None:
        def flush() -> int:
            raise LogWriteFailed("broken")

        sync = GroupSync(flush, 0, 0, "s")
        sync.wrote(3, 1, 1)
        for _ in range(2):
            with pytest.raises(LogWriteFailed, match="broken"):
                sync.now(3)
        with pytest.raises(LogWriteFailed, match="broken"):
            sync.wait(3).result(timeout=30)
        with pytest.raises(LogWriteFailed, match="broken"):
            sync.stop()
