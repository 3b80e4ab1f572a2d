"""A real full disk, a tmpfs of 256 KiB: what was acknowledged is there, and the log goes on once there is room."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed
from agentsh.log.record import Record
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import SESSION, note, texts

SIZE = 256 << 10
PAGE = 4096


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on a disk of 256 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount(8) here, so no small disk")
    if done.returncode != 0:
        pytest.skip(f"a small tmpfs needs the right to mount: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave(place: Path, free: int) -> Path:
    """Fill a disk but for so many bytes, and return the file that does it."""
    ballast = place / "ballast"
    room = os.statvfs(place)
    size = room.f_bavail * room.f_frsize - free
    ballast.write_bytes(bytes(size))
    return ballast


async def test_a_storm_of_appends_on_a_disk_that_fills_up(small: Path) -> None:
    dice = random.Random(5)
    ballast = leave(small, SIZE // 2)
    blobs = FileBlobs(small / "blobs")
    store = JsonlStore(small / "sessions", blobs)
    log = await store.create(SESSION, by="test 1")
    acked: list[Record] = []
    refused = 0
    while refused < 20:
        size = dice.choice((10, 300, 3_000, 30_000 if dice.random() < 0.1 else 5_000))
        drafts = [note(dice.randbytes(size // 2).hex()) for _ in range(dice.randint(1, 3))]
        try:
            acked += await log.append(drafts)
        except LogWriteFailed:
            refused += 1
        if dice.random() < 0.2:
            await log.wait_durable(log.last_seq)
    assert len(acked) > 10
    assert [r.raw for r in store.read(SESSION)] == [r.raw for r in acked]
    ballast.unlink()
    acked += await log.append([note("there is room again")])
    await log.wait_durable(log.last_seq)
    await log.close()
    opened = await store.open(SESSION)
    assert [r.raw for r in opened.records] == [r.raw for r in acked]
    assert not opened.recovery
    for record in opened.records:
        if isinstance(record.payload["text"], dict):
            blobs.get(record.payload["text"]["blob"])
    await opened.log.close()


async def test_a_full_disk_still_opens(small: Path) -> None:
    """Also with a torn end, for which there is no room in quarantine: then it says so, and nothing is cut."""
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"))
    log = await store.create(SESSION, by="test 1")
    await log.append([note(str(n)) for n in range(10)])
    await log.close()
    path = small / "sessions" / SESSION / "events.jsonl"
    ballast = leave(small, 0)
    opened = await store.open(SESSION)
    assert texts(opened.records) == [str(n) for n in range(10)]
    await opened.log.close()
    with path.open("ab") as file:
        file.write(b'{"seq":11,"ts":"20')  # in the room that is left in its last page
    torn = path.read_bytes()
    with pytest.raises(LogWriteFailed, match="No space left"):
        await store.open(SESSION)
    assert path.read_bytes() == torn
    assert texts(store.read(SESSION)) == [str(n) for n in range(10)]
    ballast.unlink()
    opened = await store.open(SESSION)
    assert opened.recovery.cut_bytes == 18
    (record,) = await opened.log.append([note("10")])
    await opened.log.wait_durable(record.seq)
    await opened.log.close()
    assert texts(store.read(SESSION)) == [str(n) for n in range(11)]


@pytest.mark.parametrize("pages", [0, 1, 2, 3, 4, 5])
def test_a_whole_run_in_a_home_that_is_full(small: Path, pages: int) -> None:
    leave(small, pages * PAGE)
    keep = ("PATH", "PYTHONPATH", "LANG", "HOME")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    environment["AGENTSH_HOME"] = str(small)
    done = subprocess.run(
        [sys.executable, "-m", "agentsh", "new", "--model", "demo", "--empty", "-p", "--json", "hello"],
        env=environment, capture_output=True, timeout=50, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = done.stderr.decode()
    assert "Traceback" not in said
    assert "internal error" not in said
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"))
    sessions = store.sessions()
    if done.returncode != 0:
        assert done.returncode == 1
        assert "No space left" in said
        assert len([line for line in said.splitlines() if line.startswith("agentsh:")]) == 1, said
    if pages < 2:
        assert done.returncode == 1
        assert sessions == []
        assert done.stdout == b""
    for session in sessions:
        assert list(store.damages(session)) == []
        lines = [record.raw for record in store.read(session)]
        assert b"".join(lines).startswith(done.stdout)
    assert not list((small / "blobs").rglob("*.new"))
