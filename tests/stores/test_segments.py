"""The store rolls at a turn's end and seals in the background, and nobody who uses a session sees any of it."""

# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 - processes here are short, and nothing else runs on the loop

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentsh.log.files import RealFiles
from agentsh.log.store import OpenLog
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note, texts
from tests.log.disks import UnsyncedFiles
from tests.log.logs import SESSION
from tests.log.sealed_logs import unpacked


def store_at(root: Path, *, segment_bytes: int = 4_000, files: RealFiles | None = None) -> JsonlStore:
    return JsonlStore(
        root / "sessions", FileBlobs(root / "blobs"), segment_bytes=segment_bytes, files=files or UnsyncedFiles()
    )


def names(root: Path) -> list[str]:
    return sorted(os.listdir(root / "sessions" / SESSION))


async def turns(log: OpenLog, count: int, first: int = 0) -> None:
    for turn in range(first, first + count):
        await log.append([note(f"{turn}.{n} " + "x" * 300) for n in range(10)])
        await log.turn_ended()


async def sealed(root: Path, count: int) -> None:
    """Return once there are that many sealed segments and no others that are closed."""
    for _ in range(1000):
        found = [name for name in names(root) if "-" in name]
        if len(found) >= count and all(name.endswith(".zst") for name in found):
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"{names(root)}")


def wanted(count: int) -> list[str]:
    return [f"{turn}.{n}" for turn in range(count) for n in range(10)]


def read(store: JsonlStore) -> list[str]:
    return [text.split()[0] for text in texts(store.read(SESSION))]


async def test_a_long_session(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    log = await store.create(SESSION, by="t")
    await turns(log, 8)
    await sealed(tmp_path, 8)
    assert names(tmp_path)[-2:] == ["events.jsonl", "lock"]
    assert read(store) == wanted(8)
    for after in (0, 1, 9, 10, 45, 79, 80):
        assert [r.seq for r in store.read(SESSION, after_seq=after)] == list(range(after + 1, 81))
    assert list(store.damages(SESSION)) == []
    await log.append([note("end")])
    await log.close()
    opened = await store.open(SESSION)
    assert (len(opened.records), opened.log.last_seq, bool(opened.recovery)) == (81, 81, False)
    await opened.log.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("seal ")]
    modes = {(tmp_path / "sessions" / SESSION / name).stat().st_mode & 0o777 for name in names(tmp_path)}
    assert modes == {0o600}


async def test_a_session_shorter_than_a_segment_stays_one_file(tmp_path: Path) -> None:
    store = store_at(tmp_path, segment_bytes=1 << 20)
    log = await store.create(SESSION, by="t")
    await turns(log, 5)
    await log.close()
    assert names(tmp_path) == ["events.jsonl", "lock"]


class HeldSync(UnsyncedFiles):
    """A disk on which the sync of a sealed segment takes as long as the test wants: until go, or for at_most_s."""

    def __init__(self, at_most_s: float) -> None:
        self.at_most_s = at_most_s
        self.go = threading.Event()
        self.names: dict[int, str] = {}

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        self.names[fd] = path
        return fd

    def sync(self, fd: int) -> None:
        if self.names.get(fd, "").endswith(".zst.new"):
            self.go.wait(self.at_most_s)


async def test_a_turn_does_not_wait_for_the_sealing(tmp_path: Path) -> None:
    files = HeldSync(at_most_s=60)
    store = store_at(tmp_path, files=files)
    log = await store.create(SESSION, by="t")
    await turns(log, 1)
    try:
        await turns(log, 5, first=1)
        (last,) = await log.append([note("end")])
        await asyncio.wait_for(log.wait_durable(last.seq), 30)
    finally:
        files.go.set()
    await log.close()
    assert read(store) == [*wanted(6), "end"]


async def test_what_closing_interrupts_is_resumed_by_the_next_opening(tmp_path: Path) -> None:
    files = HeldSync(at_most_s=0.05)
    store = store_at(tmp_path, files=files)
    log = await store.create(SESSION, by="t")
    await turns(log, 6)
    await log.close()
    closed = [name for name in names(tmp_path) if name.endswith(".jsonl") and "-" in name]
    assert closed
    assert not [name for name in names(tmp_path) if name.endswith(".new")]
    assert read(store) == wanted(6)
    (tmp_path / "sessions" / SESSION / f"{closed[0]}.zst.new").write_bytes(b"half of one, from a crash")
    opened = await store_at(tmp_path).open(SESSION)
    await sealed(tmp_path, 6)
    await opened.log.close()
    assert not [name for name in names(tmp_path) if name.endswith(".new")]
    assert read(store) == wanted(6)


async def test_a_reader_meanwhile_sees_all_of_it(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    log = await store.create(SESSION, by="t")
    done = threading.Event()
    seen: list[int] = []
    wrong: list[object] = []

    def watch() -> None:
        while not done.is_set():
            found = [r.seq for r in store.read(SESSION)]
            if found != list(range(1, len(found) + 1)) or (seen and len(found) < seen[-1]):
                wrong.append(found)
            seen.append(len(found))
            wrong.extend(store.damages(SESSION))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for turn in range(25):
        await turns(log, 1, first=turn)
        await asyncio.sleep(0.01)
    done.set()
    await asyncio.to_thread(watcher.join)
    await log.close()
    assert not wrong
    assert len(set(seen)) > 3


@pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd command")
async def test_zstd_prints_the_whole_log(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    log = await store.create(SESSION, by="t")
    await turns(log, 3)
    await sealed(tmp_path, 3)
    await log.close()
    place = tmp_path / "sessions" / SESSION
    packed = [str(place / name) for name in names(tmp_path) if name.endswith(".zst")]
    printed = subprocess.check_output(["zstd", "-dcq", *packed])
    lines = [line for line in printed.splitlines(keepends=True) if b'"seq"' in line[:8]]
    assert lines == [r.raw for r in store.read(SESSION)]
    assert printed == b"".join(unpacked(Path(p).read_bytes()) for p in packed)


async def test_kill_while_sealing(tmp_path: Path) -> None:
    """Whatever files a dead process left behind, the next one has all events, and the sealing comes to its end."""
    code = """
import asyncio, sys
from tests.stores.test_segments import SESSION, store_at, turns
from pathlib import Path
async def main():
    log = (await store_at(Path(sys.argv[1])).open(SESSION)).log
    n = log.last_seq // 10
    while True:
        await turns(log, 1, first=n)
        n += 1
        print(n, flush=True)
asyncio.run(main())
"""
    store = store_at(tmp_path)
    await (await store.create(SESSION, by="t")).close()
    acked = 0
    for stop in (1, 4, 9):
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(stop):
            acked = int(process.stdout.readline())
        process.kill()
        rest, _ = process.communicate()
        acked = max([acked, *map(int, rest.split(b"\n")[:-1])])
        found = read(store)
        assert found[: acked * 10] == wanted(acked)
        opened = await store.open(SESSION)
        assert not opened.recovery.damages
        extra = -len(opened.records) % 10  # the append that was cut short was all or nothing
        assert extra == 0
        await opened.log.close()
    opened = await store.open(SESSION)
    await sealed(tmp_path, acked // 2)
    await opened.log.close()
    assert read(store) == wanted(len(read(store)) // 10)
    assert list(store.damages(SESSION)) == []
