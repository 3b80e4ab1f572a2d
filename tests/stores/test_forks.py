"""Forks on disk: shared segments of every kind, and nothing that becomes of one log is seen in the other."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from agentsh.app.paths import Home
from agentsh.app.repairing import session_repair
from agentsh.base.errors import LogWriteFailed, SessionExists, UsageProblem
from agentsh.log.files import RealFiles
from agentsh.log.seal import seal_closed
from agentsh.log.segment import OPEN_NAME
from agentsh.stores.archiving import archive_session
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import BY, OTHER, SESSION, note, texts

GRANDCHILD = "20261129-k3v9qf"
GREAT_GRANDCHILD = "20261129-greatx"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def store_at(home: Path, files: RealFiles | None = None, segment_bytes: int = 1 << 30) -> JsonlStore:
    return JsonlStore(home / "sessions", FileBlobs(home / "blobs"), files=files, segment_bytes=segment_bytes)


async def a_log(store: JsonlStore, first: int, last: int) -> None:
    """Records first to last in one opening, so that each opening can end a segment."""
    log = await store.create(SESSION, by=BY) if first == 1 else (await store.open(SESSION)).log
    await log.append([note(f"text {n}") for n in range(first, last + 1)])
    await log.close()


def behind(log: Path, data: bytes) -> None:
    with open(log, "ab") as file:
        file.write(data)


async def segments_of_each_kind(home: Path) -> None:
    """1 to 40 sealed, 41 to 80 closed, 81 to 100 open."""
    store = store_at(home, segment_bytes=1)
    for first, last in ((1, 40), (41, 80)):
        log = await store.create(SESSION, by=BY) if first == 1 else (await store.open(SESSION)).log
        await log.append([note(f"text {n}") for n in range(first, last + 1)])
        log._appender.roll()  # type: ignore[attr-defined]
        await log.close()
    seal_closed(RealFiles(), str(home / "sessions" / SESSION), SESSION, below=1, min_bytes=0, frame_bytes=700)
    await a_log(store_at(home), 81, 100)
    names = sorted(os.listdir(home / "sessions" / SESSION))
    assert [n for n in names if "jsonl" in n] == [
        "000000-000000000001.jsonl.zst", "000001-000000000041.jsonl", OPEN_NAME,
    ]  # fmt: skip


async def test_at_every_event_of_every_kind_of_segment(home: Path) -> None:
    await segments_of_each_kind(home)
    store = store_at(home)
    for seq in (1, 2, 3, 20, 39, 40, 41, 42, 60, 79, 80, 81, 99, 100):
        child = f"20261129-{seq:06}"
        log = await store.fork(SESSION, child, upto_seq=seq, by=BY)
        await log.append([note("own")])
        await log.close()
        wanted = [f"text {n}" for n in range(1, seq + 1)] + ["own"]
        assert texts(store.read(child)) == wanted
        assert [r.seq for r in store.read(child)] == list(range(1, seq + 2))
        assert texts(store.read(child, after_seq=seq - 1)) == wanted[seq - 1 :]
        assert list(store.damages(child)) == []
        again = await store.open(child)
        assert texts(again.records) == wanted
        assert not again.recovery
        await again.log.close()
    log = await store.fork(SESSION, OTHER, by=BY)
    assert log.last_seq == 100
    await log.close()


async def test_the_segments_are_the_same_files(home: Path) -> None:
    await segments_of_each_kind(home)
    store = store_at(home)
    await (await store.fork(SESSION, OTHER, upto_seq=90, by=BY)).close()
    parent, child = home / "sessions" / SESSION, home / "sessions" / OTHER
    for mine, theirs in (
        ("000000-000000000001.jsonl.zst", "000000-000000000001.jsonl.zst"),
        ("000001-000000000041.jsonl", "000001-000000000041.jsonl"),
        ("000002-000000000081.jsonl", OPEN_NAME),
    ):
        assert (child / mine).samefile(parent / theirs)
    assert len((child / OPEN_NAME).read_bytes().splitlines()) == 1
    assert child.stat().st_mode & 0o777 == 0o700
    assert not [n for n in os.listdir(home / "sessions") if n.startswith(".")]


async def test_neither_notices_what_becomes_of_the_other(home: Path) -> None:
    await segments_of_each_kind(home)
    store = store_at(home, segment_bytes=1)
    await (await store.fork(SESSION, OTHER, upto_seq=90, by=BY)).close()
    await (await store.fork(OTHER, GRANDCHILD, upto_seq=85, by=BY)).close()
    wanted = [f"text {n}" for n in range(1, 91)]
    parent = home / "sessions" / SESSION

    opened = await store.open(SESSION)  # it goes on, and its segment is closed and sealed
    await opened.log.append([note("later")])
    opened.log._appender.roll()  # type: ignore[attr-defined]
    await opened.log.close()
    seal_closed(RealFiles(), str(parent), SESSION, below=3, min_bytes=0)
    assert texts(store.read(OTHER)) == wanted
    assert texts(store.read(SESSION))[-2:] == ["text 100", "later"]

    behind(parent / OPEN_NAME, b'{"seq":102,"ts"')  # a torn end is cut off at the next opening
    await (await store.open(SESSION)).log.close()
    assert texts(store.read(OTHER)) == wanted

    shutil.rmtree(parent)
    assert texts(store.read(OTHER)) == wanted
    assert texts(store.read(GRANDCHILD)) == wanted[:85]
    opened = await store.open(OTHER)
    await opened.log.append([note("the child lives")])
    await opened.log.turn_ended()
    await opened.log.close()
    assert texts(store.read(OTHER)) == [*wanted, "the child lives"]
    seal_closed(RealFiles(), str(home / "sessions" / OTHER), OTHER, below=3, min_bytes=0)
    assert texts(store_at(home).read(OTHER)) == [*wanted, "the child lives"]
    shutil.rmtree(home / "sessions" / OTHER)
    assert texts(store.read(GRANDCHILD)) == wanted[:85]
    assert list(store.damages(GRANDCHILD)) == []


async def test_of_an_archive_at_every_event_and_of_a_fork_in_one(home: Path) -> None:
    """Nothing can be linked there: the child gets copies, plain ones, and the archive stays as it is."""
    await segments_of_each_kind(home)
    store = store_at(home)
    await (await store.fork(SESSION, OTHER, upto_seq=90, by=BY)).close()
    for session in (SESSION, OTHER):
        archive_session(str(home / "sessions"), session, dict)
    archived = (home / "sessions" / SESSION / "archive.jsonl.zst").read_bytes()
    for parent, seq in [(SESSION, seq) for seq in (1, 39, 40, 41, 80, 81, 99, 100)] + [(OTHER, 3), (OTHER, 90)]:
        child = f"20261129-{seq:05}{'x' if parent == OTHER else 'y'}"
        log = await store.fork(parent, child, upto_seq=None if seq in (100, 90) else seq, by=BY)
        await log.append([note("own")])
        await log.close()
        assert texts(store.read(child)) == [f"text {n}" for n in range(1, seq + 1)] + ["own"]
        assert list(store.damages(child)) == []
        again = await store.open(child)
        assert not again.recovery
        await again.log.close()
    assert (home / "sessions" / SESSION / "archive.jsonl.zst").read_bytes() == archived
    with pytest.raises(UsageProblem):
        await store.fork(SESSION, GRANDCHILD, upto_seq=101, by=BY)
    (home / "sessions" / SESSION / "archive.jsonl.zst").write_bytes(archived[:-40])  # nothing is lost by that
    await (await store.fork(SESSION, GREAT_GRANDCHILD, upto_seq=1, by=BY)).close()
    (home / "sessions" / SESSION / "archive.jsonl.zst").write_bytes(archived[:1000])
    with pytest.raises(LogWriteFailed, match="archive is damaged"):
        await store.fork(SESSION, GRANDCHILD, upto_seq=1, by=BY)
    assert not (home / "sessions" / GRANDCHILD).exists()


async def test_a_torn_end_of_the_parent_is_not_the_childs(home: Path) -> None:
    store = store_at(home)
    await a_log(store, 1, 10)
    log = home / "sessions" / SESSION / OPEN_NAME
    behind(log, b'{"seq":11,"ts":"half of a li')
    await (await store.fork(SESSION, OTHER, by=BY)).close()
    assert texts(store.read(OTHER)) == [f"text {n}" for n in range(1, 11)]
    assert list(store.damages(OTHER)) == []
    behind(log, b"\0" * 5000)
    await (await store.open(SESSION)).log.close()
    assert texts(store.read(OTHER)) == [f"text {n}" for n in range(1, 11)]


async def test_repair_of_the_parent_does_not_touch_the_child(home: Path) -> None:
    store = store_at(home)
    await a_log(store, 1, 10)
    await (await store.fork(SESSION, OTHER, upto_seq=8, by=BY)).close()
    log = home / "sessions" / SESSION / OPEN_NAME
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1  # rot is in the one file that both have
    log.write_bytes(data)
    shared = texts(store.read(OTHER))
    assert len(shared) == 7
    with session_repair(Home(home, True), SESSION) as repairer:
        plan = repairer.plan()
        assert plan is not None
        repairer.repair(plan)
    assert texts(store.read(OTHER)) == shared


class Crossing(RealFiles):
    """Another device, or a file system without hard links."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fail_at: str | None = None

    def link(self, source: str, target: str) -> None:
        raise OSError(self.number, os.strerror(self.number), target)


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
async def test_copies_where_links_cannot_be(home: Path, number: int) -> None:
    await segments_of_each_kind(home)
    store = store_at(home, Crossing(number))
    for seq, child in ((90, OTHER), (20, GRANDCHILD)):
        await (await store.fork(SESSION, child, upto_seq=seq, by=BY)).close()
        assert texts(store.read(child)) == [f"text {n}" for n in range(1, seq + 1)]
    shutil.rmtree(home / "sessions" / SESSION)
    assert texts(store.read(OTHER)) == [f"text {n}" for n in range(1, 91)]
    assert (home / "sessions" / OTHER / "000002-000000000081.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.parametrize("operation", ["mkdir", "link", "sync", "write", "rename", "sync_dir"])
async def test_a_disk_that_refuses_leaves_nothing_of_the_child(
    home: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await segments_of_each_kind(home)
    files = RealFiles()
    store = store_at(home, files)
    before = sorted(os.listdir(home / "sessions"))

    def refuse(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, operation, refuse)
    with pytest.raises(LogWriteFailed):
        await store.fork(SESSION, OTHER, by=BY)
    monkeypatch.undo()
    assert [n for n in sorted(os.listdir(home / "sessions")) if not n.startswith(".")] == before
    await (await store.fork(SESSION, OTHER, by=BY)).close()
    assert len(texts(store.read(OTHER))) == 100


async def test_a_fork_that_a_crash_left_half_done_is_no_session_and_in_nobodys_way(home: Path) -> None:
    store = store_at(home)
    await a_log(store, 1, 3)
    left = home / "sessions" / f".{OTHER}.new"
    left.mkdir()
    (left / "000000-000000000001.jsonl").write_bytes(b"half")
    assert store.sessions() == [SESSION]
    await (await store.fork(SESSION, OTHER, by=BY)).close()
    assert not left.exists()
    with pytest.raises(SessionExists):
        await store.fork(SESSION, OTHER, by=BY)
    assert texts(store.read(OTHER)) == ["text 1", "text 2", "text 3"]


async def test_a_lost_event_is_told(home: Path) -> None:
    store = store_at(home)
    await a_log(store, 1, 5)
    log = home / "sessions" / SESSION / OPEN_NAME
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b"x" * 50 + b"\n", *lines[4:]]))
    with pytest.raises(UsageProblem, match="no event 3"):
        await store.fork(SESSION, OTHER, upto_seq=3, by=BY)
    await (await store.fork(SESSION, OTHER, upto_seq=4, by=BY)).close()
    assert texts(store.read(OTHER)) == ["text 1", "text 2", "text 4"]
