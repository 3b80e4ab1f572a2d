"""Logs as files: what opening finds and does, what reading leaves alone, permissions, descriptors."""

import asyncio
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.base.errors import LogTooNew, LogWriteFailed, SessionExists, SessionHeld, SessionMissing, SessionReadOnly
from agentsh.log.frame import decode_header
from agentsh.log.store import Opened
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note, texts
from tests.log.disks import UnsyncedFiles
from tests.log.logs import SESSION, header, line, lines

HEAD = header()
LINES = lines(HEAD, 1, 10)
WHOLE = HEAD.raw + b"".join(LINES)
TEXTS = [f"text {n}" for n in range(1, 11)]


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), files=UnsyncedFiles())


def log_path(root: Path, session: str = SESSION) -> Path:
    return root / "sessions" / session / "events.jsonl"


def put(root: Path, data: bytes, session: str = SESSION) -> Path:
    path = log_path(root, session)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def quarantined(root: Path) -> list[bytes]:
    return [p.read_bytes() for p in sorted((root / "sessions" / SESSION / "quarantine").glob("*"))]


async def opened_and_continued(store: JsonlStore) -> Opened:
    """Open, append, close, and open again: the second opening must find nothing to repair."""
    first = await store.open(SESSION)
    before = texts(first.records)
    (record,) = await first.log.append([note("after")])
    await first.log.close()
    second = await store.open(SESSION)
    assert texts(second.records) == [*before, "after"]
    assert second.records[-1] == record
    assert not second.recovery.cut_bytes
    assert not second.recovery.newline_added
    assert not second.recovery.quarantined
    await second.log.close()
    return first


@pytest.mark.parametrize("tail", [b"{", bytes(1728), b"garbage", LINES[0][:60], b"\0" * 40 + b"\n", bytes(5_000_000)])
async def test_a_torn_tail_is_set_aside(store: JsonlStore, tmp_path: Path, tail: bytes) -> None:
    put(tmp_path, WHOLE + tail)
    assert store.sessions() == [SESSION]
    assert texts(store.read(SESSION)) == TEXTS
    assert [(d.kind, d.bytes) for d in store.damages(SESSION)] == [("torn", len(tail))]
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    assert opened.recovery.cut_bytes == len(tail)
    assert len(opened.recovery.quarantined) == 1
    assert quarantined(tmp_path) == [tail]
    assert list(store.damages(SESSION)) == []


async def test_every_truncation_opens_and_goes_on(store: JsonlStore, tmp_path: Path) -> None:
    for size in range(0, len(WHOLE), 3):
        session = f"cut-{size}"
        put(tmp_path, WHOLE[:size], session)
        read = list(store.read(session))
        opened = await store.open(session)
        assert list(opened.records) == read
        assert [r.seq for r in read] == list(range(1, len(read) + 1))
        (record,) = await opened.log.append([note("more")])
        await opened.log.close()
        assert [r.payload["text"] for r in store.read(session)] == [*(f"text {r.seq}" for r in read), "more"]
        assert record.seq == len(read) + 1
        assert [d for d in store.damages(session) if d.kind not in ("header", "session")] == [], size


async def test_the_missing_newline_is_added(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE[:-1])
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    assert opened.recovery.newline_added
    assert opened.recovery.cut_bytes == 0
    assert path.read_bytes().startswith(WHOLE)


async def test_a_header_without_newline_and_nothing_else(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, HEAD.raw[:-1])
    opened = await opened_and_continued(store)
    assert opened.recovery.newline_added
    assert path.read_bytes().startswith(HEAD.raw)


async def test_damage_in_the_middle_stays_and_is_told(store: JsonlStore, tmp_path: Path) -> None:
    data = bytearray(WHOLE)
    data[WHOLE.index(b"text 5")] ^= 1
    path = put(tmp_path, bytes(data))
    opened = await opened_and_continued(store)
    assert texts(opened.records) == [t for t in TEXTS if t != "text 5"]
    (damage,) = opened.recovery.damages
    assert (damage.kind, damage.after_seq, damage.rot, damage.harmless) == ("crc", 4, True, False)
    assert path.read_bytes().startswith(bytes(data))
    assert [d.kind for d in store.damages(SESSION)] == ["crc"]


@pytest.mark.parametrize(
    "data", [b"", bytes(300), b"\n", b"garbage", HEAD.raw[:100], b'{"title":"metadata of another tool"}\n']
)
async def test_a_creation_that_was_cut_short(store: JsonlStore, tmp_path: Path, data: bytes) -> None:
    path = put(tmp_path, data)
    (path.parent / "lock").write_bytes(b'{"pid":99999999,"host":"gone"}')
    assert store.sessions() == [SESSION]
    assert list(store.read(SESSION)) == []
    store.damages(SESSION)
    opened = await opened_and_continued(store)
    assert (len(opened.records), opened.log.last_seq) == (0, 1)
    assert opened.recovery.cut_bytes == len(data)
    assert quarantined(tmp_path) == ([data] if data else [])
    assert list(store.damages(SESSION)) == []


async def test_a_directory_without_a_log(store: JsonlStore, tmp_path: Path) -> None:
    log_path(tmp_path).parent.mkdir(parents=True)
    assert store.sessions() == [SESSION]
    assert list(store.read(SESSION)) == []
    assert [d.kind for d in store.damages(SESSION)] == ["missing"]
    with pytest.raises(SessionExists):
        await store.create(SESSION, by="t")
    await opened_and_continued(store)
    assert list(store.damages(SESSION)) == []


async def test_closed_segments_without_an_open_one(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE)
    path.rename(path.parent / "000000-000000000001.jsonl")
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    fresh = decode_header(path.read_bytes().partition(b"\n")[0] + b"\n")
    assert (fresh.ordinal, fresh.first_seq, fresh.rescue) == (1, 10, True)  # 10 may not be durable
    assert fresh.prev_sha256 is not None
    assert list(store.damages(SESSION)) == []


async def test_a_rescue_that_came_to_no_end_is_kept(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE)
    (path.parent / "events.jsonl.new").write_bytes(b"half a rescue")
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    assert opened.recovery.quarantined == ("events.jsonl.new",)
    assert quarantined(tmp_path) == [b"half a rescue"]


async def test_what_is_kept_is_not_overwritten_by_a_copy_in_the_making(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE)
    (path.parent / "events.jsonl.new").write_bytes(b"half a rescue")
    await opened_and_continued(store)
    path.write_bytes(b"no header, and no line to solve a salt from")
    await opened_and_continued(store)
    assert quarantined(tmp_path) == [b"no header, and no line to solve a salt from", b"half a rescue"]


@pytest.mark.parametrize("place", [5, 40, 120])
async def test_a_damaged_header_gets_a_segment_behind_it(store: JsonlStore, tmp_path: Path, place: int) -> None:
    data = bytearray(WHOLE)
    data[place] ^= 0x08
    path = put(tmp_path, bytes(data))
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    (damage,) = opened.recovery.damages
    assert (damage.kind, damage.where) == ("header", "000000:0")
    assert [d.where for d in store.damages(SESSION)] == ["000000:0"]  # so that nobody is told twice
    assert (path.parent / "000000-000000000001.jsonl").read_bytes() == bytes(data)
    assert decode_header(path.read_bytes().partition(b"\n")[0] + b"\n").ordinal == 1


async def test_bom_and_crlf_and_blank_lines_open_and_go_on(store: JsonlStore, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r\n\r\n")
    path = put(tmp_path, data)
    put(tmp_path, WHOLE, "20261129-000000")
    assert len(store.sessions()) == 2
    opened = await opened_and_continued(store)
    assert texts(opened.records) == TEXTS
    assert not opened.recovery
    assert path.read_bytes().startswith(data)
    assert {d.kind for d in store.damages(SESSION)} == {"bom", "crlf", "blank"}
    assert all(d.harmless for d in store.damages(SESSION))


async def test_two_writers_open_read_only(store: JsonlStore, tmp_path: Path) -> None:
    data = WHOLE + line(10, HEAD.salt, text="somebody else") + line(11, HEAD.salt)
    path = put(tmp_path, data)
    with pytest.raises(SessionReadOnly) as refused:
        await store.open(SESSION)
    assert refused.value.hint == f"agentsh repair {SESSION}"
    assert refused.value.exit_code == 5
    assert store.holder(SESSION) is None
    assert texts(store.read(SESSION)) == [*TEXTS, "text 11"]
    assert [d.kind for d in store.damages(SESSION)] == ["conflict"]
    assert path.read_bytes() == data


@pytest.mark.parametrize("intact", [True, False])
async def test_a_newer_format_is_left_alone(store: JsonlStore, tmp_path: Path, intact: bool) -> None:
    from zlib import crc32

    body = HEAD.raw[:-19].replace(b"agentsh-log/1", b"agentsh-log/2")
    crc = crc32(body) if intact else 0
    data = body + b',"crc":"%08x"}\n' % crc + b"whatever format 2 has\n"
    path = put(tmp_path, data)
    with pytest.raises(LogTooNew) as refused:
        await store.open(SESSION)
    assert refused.value.exit_code == 5
    assert list(store.read(SESSION)) == []
    assert "newer" in [d.kind for d in store.damages(SESSION)]
    assert path.read_bytes() == data
    assert sorted(p.name for p in path.parent.iterdir()) == ["events.jsonl", "lock"]


async def test_the_name_of_the_directory_is_the_id(store: JsonlStore, tmp_path: Path) -> None:
    put(tmp_path, WHOLE, "20261130-copied")
    opened = await store.open("20261130-copied")
    assert opened.log.session == "20261130-copied"
    assert [d.kind for d in opened.recovery.damages] == ["session"]
    await opened.log.close()


async def test_hundreds_of_damages(store: JsonlStore, tmp_path: Path) -> None:
    many = lines(HEAD, 1, 500)
    data = HEAD.raw + b"".join(text if n % 2 else b"x" * 300 + b"\n" for n, text in enumerate(many))
    put(tmp_path, data)
    opened = await store.open(SESSION)
    assert len(opened.records) == 250
    assert len(opened.recovery.damages) == len(store.damages(SESSION)) == 250
    await opened.log.close()


async def test_reading_changes_no_byte_and_makes_no_file(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE + b"torn")
    list(store.read(SESSION))
    list(store.lines(SESSION))
    store.damages(SESSION)
    store.holder(SESSION)
    store.sessions()
    assert os.listdir(path.parent) == ["events.jsonl"]
    assert path.read_bytes() == WHOLE + b"torn"
    assert os.listdir(tmp_path) == ["sessions"]


async def test_a_torn_end_of_a_log_that_is_being_written_is_no_damage(store: JsonlStore, tmp_path: Path) -> None:
    log = await store.create(SESSION, by="t")
    await log.append([note("one")])
    with log_path(tmp_path).open("ab") as half:
        half.write(b'{"seq":2,"ts"')
    assert texts(store.read(SESSION)) == ["one"]
    assert list(store.damages(SESSION)) == []
    await log.close()
    assert [d.kind for d in store.damages(SESSION)] == ["torn"]


async def test_summary_lines_need_no_decoding(store: JsonlStore, tmp_path: Path) -> None:
    put(tmp_path, WHOLE)
    assert list(store.lines(SESSION, after_seq=8)) == [(9, b"note", LINES[8]), (10, b"note", LINES[9])]


@pytest.mark.parametrize("session", ["", ".", "..", "../x", "a/b", "a\0b", ".hidden", "x" * 300])
async def test_an_id_that_is_no_name_leads_nowhere(store: JsonlStore, session: str) -> None:
    with pytest.raises(SessionMissing):
        await store.open(session)
    with pytest.raises(SessionMissing):
        store.read(session)
    with pytest.raises(ValueError):
        await store.create(session, by="t")


async def test_links_are_not_followed(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE)
    (tmp_path / "elsewhere").write_bytes(WHOLE)
    (tmp_path / "sessions" / "linked").symlink_to(path.parent)
    assert store.sessions() == [SESSION]
    with pytest.raises(SessionMissing, match="its name is a link"):
        await store.open("linked")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogWriteFailed):
        await store.open(SESSION)
    with pytest.raises(SessionReadOnly):
        list(store.read(SESSION))
    assert store.holder(SESSION) is None


async def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "not" / "yet" / "sessions", FileBlobs(tmp_path / "blobs"))
    assert store.sessions() == []
    log = await store.create(SESSION, by="t")
    assert store.sessions() == [SESSION]
    await log.close()


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = JsonlStore(tmp_path / "file" / "sessions", FileBlobs(tmp_path / "blobs"))
    with pytest.raises(LogWriteFailed):
        await store.create(SESSION, by="t")
    assert store.sessions() == []
    with pytest.raises(SessionMissing):
        await store.open(SESSION)


@pytest.mark.parametrize("umask", [0o000, 0o777])
async def test_permissions_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = JsonlStore(tmp_path / "home" / "sessions", FileBlobs(tmp_path / "home" / "blobs"))
        log = await store.create(SESSION, by="t")
        await log.append([note("x" * 40_000)])
        await log.close()
        with (tmp_path / "home" / "sessions" / SESSION / "events.jsonl").open("ab") as torn:
            torn.write(b"torn")
        opened = await store.open(SESSION)
        await opened.log.close()
    finally:
        os.umask(before)
    found = [p for p in (tmp_path / "home").rglob("*") if p.name != "home"]
    assert len(found) >= 8
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_a_cancelled_opening_leaves_no_lease(store: JsonlStore) -> None:
    made = asyncio.ensure_future(store.create(SESSION, by="t"))
    await asyncio.sleep(0)
    made.cancel()
    for n in range(20):
        opening = asyncio.ensure_future(store.open(SESSION))
        for _ in range(n % 5):
            await asyncio.sleep(0.0005)
        opening.cancel()
        with suppress(asyncio.CancelledError, SessionHeld, SessionMissing):
            await (await opening).log.close()
    for _ in range(1000):  # what nobody waits for any more may still be on its way
        with suppress(SessionHeld, SessionMissing):
            await (await store.open(SESSION)).log.close()
            return
        await asyncio.sleep(0.005)
    pytest.fail("a cancelled opening kept the lease")


def own_threads() -> int:
    """Count all threads but those of asyncio's pool, which has as many as were ever busy at one moment."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


async def test_descriptors_and_threads_stay_flat(store: JsonlStore) -> None:
    log = await store.create(SESSION, by="t")
    await log.close()

    async def once(n: int) -> None:
        opened = await store.open(SESSION)
        if n % 10 == 0:
            await opened.log.append([note("x")])
        await opened.log.close()
        next(store.read(SESSION))
        store.damages(SESSION)
        with pytest.raises(SessionMissing):
            await store.open("nobody")

    for n in range(10):
        await once(n)
    before = len(os.listdir("/proc/self/fd")), own_threads()
    for n in range(500):
        await once(n)
    assert len(os.listdir("/proc/self/fd")) <= before[0] + 2
    assert own_threads() <= before[1] + 2


async def test_a_log_without_a_lock_file_on_a_disk_that_may_only_be_read(store: JsonlStore, tmp_path: Path) -> None:
    path = put(tmp_path, WHOLE)
    path.parent.chmod(0o500)
    try:
        assert texts(store.read(SESSION)) == TEXTS
        if os.geteuid() != 0:
            with pytest.raises(SessionReadOnly):
                await store.open(SESSION)
    finally:
        path.parent.chmod(0o700)
