"""A real full disk, a tmpfs of 256 KiB: what was acknowledged is there, and the log goes on once there is room."""

# ruff: noqa: ASYNC221 - nothing else runs on the loop

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh.app.stores import event_store
from agentsh.base.errors import LogWriteFailed
from agentsh.events.signals import SavingStopped
from agentsh.log.record import Record
from agentsh.log.segment import closed_name
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import SESSION, note, texts
from tests.app.homes import add, sid
from tests.app.rig import a_session

SIZE = 256 << 10
PAGE = 4096


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on a disk of 256 KiB."""
    yield from disk_of(tmp_path / "small", SIZE)


@pytest.fixture
def middling(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on a disk of 4 MiB, on which room for blobs is kept."""
    yield from disk_of(tmp_path / "middling", 4 << 20)


def disk_of(place: Path, size: int) -> Iterator[Path]:
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount(8) here, so no small disk")
    if done.returncode != 0:
        pytest.skip(f"a small tmpfs needs the right to mount: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave(place: Path, free: int, name: str = "ballast") -> Path:
    """Fill a disk but for so many bytes, and return the file that does it."""
    ballast = place / name
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


async def test_the_last_records_find_room_that_was_kept_for_them(small: Path) -> None:
    """Somebody else takes every byte of the disk; the turn that is under way is recorded to its end all the same."""
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"))
    log = await store.create(SESSION, by="test 1")
    acked = list(await log.append([note("a prompt")]))
    ballast = leave(small, 0)
    with pytest.raises(OSError, match="No space left"):
        (small / "other").write_bytes(b"x" * PAGE)
    assert await log.nearly_full() is not None
    for _ in range(3):  # results and the end of the turn: lines of any length
        acked += await log.append([note("r" * 20_000)])
        await log.wait_durable(log.last_seq)
    assert [r.raw for r in store.read(SESSION)] == [r.raw for r in acked]
    with pytest.raises(LogWriteFailed, match="No space left"):
        await log.append([note("r" * 20_000) for _ in range(8)])  # it is no more than that
    assert [r.raw for r in store.read(SESSION)] == [r.raw for r in acked]
    await log.close()
    ballast.unlink()


async def test_without_a_reserve_the_last_records_find_none(small: Path) -> None:
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"), min_free_bytes=0)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("a prompt")])
    leave(small, 0)
    assert await log.nearly_full() is None
    with pytest.raises(LogWriteFailed, match="No space left"):
        await log.append([note("r" * 20_000)])
    await log.close()


def long_text(seed: int) -> str:
    """Return a text for a blob, of 60 kB when it is packed: it leaves nothing worth mentioning of its room."""
    return random.Random(seed).randbytes(60_000).hex()


def rooms(place: Path) -> list[Path]:
    return [path for path in (place / "blobs").iterdir() if path.name.startswith(".room-")]


@pytest.mark.parametrize("directories", ["there", "missing"])
async def test_the_last_long_texts_find_room_too(middling: Path, directories: str) -> None:
    """What a tool has printed is in the log though the disk has no room for a blob, and `kill -9` comes next."""
    blobs = FileBlobs(middling / "blobs")
    store = JsonlStore(middling / "sessions", blobs)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("a prompt")])
    for n in range(256 if directories == "there" else 0):
        (middling / "blobs" / f"{n:02x}").mkdir()
    ballast = leave(middling, 0)
    both = note(long_text(1), for_user=long_text(2))
    await log.append([both])  # what the model sees, and what the user sees
    await log.wait_durable(2)
    leave(middling, 0, "more")  # the blocks that they did not take are everybody's
    with pytest.raises(LogWriteFailed, match="No space left"):
        await log.append([note(long_text(3))])  # it is no more than that
    await log.append([note("short ones have room of their own")])
    ballast.unlink()
    await log.append([note(long_text(3))])
    assert len(rooms(middling)) == 2  # and are kept again
    found = [record.payload for record in JsonlStore(middling / "sessions", blobs).read(SESSION)]
    fresh = FileBlobs(middling / "blobs")
    assert fresh.get(found[1]["text"]["blob"]).decode() == long_text(1)
    assert fresh.get(found[1]["for_user"]["blob"]).decode() == long_text(2)
    assert fresh.get(found[3]["text"]["blob"]).decode() == long_text(3)
    await log.close()
    assert rooms(middling) == []


async def test_a_text_that_takes_more_than_its_room_waits_for_some(middling: Path) -> None:
    store = JsonlStore(middling / "sessions", FileBlobs(middling / "blobs"))
    log = await store.create(SESSION, by="test 1")
    await log.append([note("a prompt")])
    leave(middling, 0)
    with pytest.raises(LogWriteFailed, match="No space left"):
        await log.append([note(long_text(1) + long_text(2))])
    assert len(rooms(middling)) == 2
    await log.close()


async def test_the_room_of_a_killed_writer_is_swept_and_that_of_others_is_not(middling: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(middling)], check=False, timeout=50)
    assert done.returncode == -9
    (left,) = {path.name.split("-")[1] for path in rooms(middling)}
    others = JsonlStore(middling / "sessions", FileBlobs(middling / "blobs"))
    log = await others.create("20261129-bbbbbb", by="test 1")
    await log.append([note("x")])
    mine = rooms(middling)
    assert len(mine) == 2
    assert left not in {path.name.split("-")[1] for path in mine}
    more = JsonlStore(middling / "sessions", FileBlobs(middling / "blobs"))
    second = await more.create("20261129-cccccc", by="test 1")
    await second.append([note("x")])
    assert set(mine) < set(rooms(middling))
    await second.close()
    assert set(rooms(middling)) == set(mine)
    await log.close()
    assert rooms(middling) == []


async def test_the_reserve_is_given_back(small: Path) -> None:
    def used() -> int:
        return (small / "sessions" / SESSION / "events.jsonl").stat().st_blocks * 512

    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"), segment_bytes=1000)
    log = await store.create(SESSION, by="test 1")
    await log.append([note("x" * 2000)])
    assert used() > 100_000
    await log.turn_ended()  # the segment is closed
    await log.append([note("y")])
    await log.close()
    (closed,) = [name for name in os.listdir(small / "sessions" / SESSION) if name.startswith(closed_name(0, 1))]
    assert (small / "sessions" / SESSION / closed).stat().st_blocks * 512 == PAGE
    assert used() == PAGE
    assert texts(store.read(SESSION)) == ["x" * 2000, "y"]


async def test_a_session_is_resumed_on_a_full_disk_with_its_saving_stopped(small: Path) -> None:
    """It opens, says so, and runs nothing; once there is room, what it had to record of its opening comes first."""
    from agentsh.app.build import resume_session
    from agentsh.app.paths import Home
    from agentsh.app.plan import Plan, Screens
    from agentsh.app.settings import Settings, choose_model
    from agentsh.context.state import SessionState
    from agentsh.testing import KeepingRenderer

    home = Home(small, trusted=True)
    a_session(home, SESSION, ended=False)
    home.workspaces.joinpath(SESSION).mkdir(parents=True)
    settings, screen = Settings(), KeepingRenderer()
    padding = small / "sessions" / SESSION / "events.jsonl"
    padding.write_bytes(padding.read_bytes().ljust(PAGE, b"\n")[:PAGE])  # no room left in its last page either
    ballast = leave(small, 0)

    async def plan_for(state: SessionState) -> Plan:
        return Plan(home, settings, choose_model(settings, {}, "demo"), Screens((screen,)))

    running = await resume_session(home, SESSION, settings, plan_for=plan_for, show=lambda past: None)
    assert any(isinstance(signal, SavingStopped) for signal in screen.signals)
    with pytest.raises(LogWriteFailed, match="No space left"):
        await running.session.submit("hello")
    assert [r.type for r in event_store(home).read(SESSION)][-1] == "agent_message"
    ballast.unlink()
    assert (await running.session.submit("hello")).reason == "done"
    await running.session.close()
    kinds = [r.type for r in event_store(home).read(SESSION)]
    after = kinds[kinds.index("opened") :]
    assert after[:3] == ["opened", "recovered", "turn_finished"]
    assert "model_changed" in after
    assert kinds[-1] == "turn_finished"
    assert [d.kind for d in event_store(home).damages(SESSION) if not d.harmless] == []


DIES = """
import asyncio, os, signal, sys
from tests.crash.test_full_disk import JsonlStore, FileBlobs, SESSION, note
async def main():
    store = JsonlStore(sys.argv[1] + "/sessions", FileBlobs(sys.argv[1] + "/blobs"))
    log = await store.create(SESSION, by="test 1")
    records = await log.append([note("a prompt")])
    await log.wait_durable(records[-1].seq)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_what_a_killed_writer_had_kept_serves_its_recovery(small: Path) -> None:
    """A torn end on a disk without a free byte: its copy in quarantine finds the room that the dead had reserved."""
    subprocess.run([sys.executable, "-c", DIES, str(small)], check=False, timeout=50)
    path = small / "sessions" / SESSION / "events.jsonl"
    leave(small, 0)
    with path.open("ab") as file:
        file.write(b'{"seq":2,"ts":"20')
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"))
    opened = await store.open(SESSION)
    assert (opened.recovery.cut_bytes, texts(opened.records)) == (17, ["a prompt"])
    assert (path.parent / "quarantine" / opened.recovery.quarantined[0]).read_bytes() == b'{"seq":2,"ts":"20'
    (record,) = await opened.log.append([note("on")])
    await opened.log.wait_durable(record.seq)
    await opened.log.close()


def test_sessions_can_be_removed_from_a_disk_without_a_free_byte(middling: Path) -> None:
    """To the trash and out of it, or at once; what makes room must not need any."""
    logs = [add(middling, n) for n in (1, 2)]
    for log in logs:
        (middling / "workspaces" / log.parent.name / "big").write_bytes(bytes(200_000))
    leave(middling, 0)
    for words in (["rm", sid(1), "--yes"], ["rm", sid(2), "--yes", "--now"], ["gc", "--older-than", "0"]):
        done = agentsh(middling, *words)
        assert (done.returncode, done.stderr) == (0, b""), words
    room = os.statvfs(middling)
    assert room.f_bavail * room.f_frsize > 400_000
    assert [os.listdir(middling / name) for name in ("sessions", "workspaces", "trash")] == [[], [], []]


def agentsh(home: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    keep = ("PATH", "PYTHONPATH", "LANG", "HOME")
    return subprocess.run(
        [sys.executable, "-m", "agentsh", *words], capture_output=True, timeout=50, check=False,
        env={name: os.environ[name] for name in keep if name in os.environ} | {"AGENTSH_HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("pages", [0, 1, 2, 3, 4, 5])
def test_a_whole_run_in_a_home_that_is_full(small: Path, pages: int) -> None:
    leave(small, pages * PAGE)
    done = agentsh(small, "new", "--model", "demo", "--empty", "-p", "--json", "hello")
    said = done.stderr.decode()
    assert "Traceback" not in said
    assert "internal error" not in said
    store = JsonlStore(small / "sessions", FileBlobs(small / "blobs"))
    sessions = store.sessions()
    if done.returncode != 0:
        assert done.returncode == 1
        assert "No space left" in said
        told = [line for line in said.splitlines() if line.startswith("agentsh:")]
        assert len([line for line in told if "nearly full" not in line]) == 1, said
    if pages < 2:
        assert done.returncode == 1
        assert sessions == []
        assert done.stdout == b""
    for session in sessions:
        assert list(store.damages(session)) == []
        lines = [record.raw for record in store.read(session)]
        assert b"".join(lines).startswith(done.stdout)
    assert not list((small / "blobs").rglob("*.new"))
