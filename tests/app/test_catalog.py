"""What sessions there are: the same rows with and without an index, whatever lies between the logs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.app.catalog import (
    _SEGMENT,
    LOG_NAME,
    Filter,
    Row,
    find,
    find_by_id,
    places,
    read_summary,
    refuse_held,
    row_of,
    rows,
)
from agentsh.app.paths import Home, Homes
from agentsh.base.errors import SessionAmbiguous, SessionHeld, SessionMissing
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.lease import take
from agentsh.log.record import Draft
from agentsh.log.seal import seal_closed
from agentsh.log.segment import OPEN_NAME, closed_name, closed_segments
from tests.app.rig import a_home, a_session, an_id

TS = "2026-11-29T16:20:01.123456Z"
A, B, C, D = (an_id(n) for n in (1, 2, 3, 4))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "home")


def one(home: Home) -> Homes:
    return Homes((home,), home)


def listed(home: Home, **wanted: object) -> list[str]:
    return [row.place.id for row in rows(one(home), Filter(**wanted))]  # type: ignore[arg-type]


def four(home: Home) -> None:
    """Sessions whose orders by time, size and cost all differ."""
    a_session(home, A, prompt="fix the tests", second=4, cost=0.5, tags=["work"], filler=10)
    a_session(home, B, prompt="write the docs", second=3, cost=2.0, tags=["work", "docs"], filler=3000)
    a_session(home, C, prompt="fix the docs", second=2, filler=200)
    a_session(home, D, prompt=None, second=1)


def test_the_newest_come_first_and_the_states_are_told(home: Home) -> None:
    four(home)
    a_session(home, an_id(5), ended=False, second=5)
    assert [(r.place.id, r.state) for r in rows(one(home), Filter())] == [
        (an_id(5), "crashed"), (A, "idle"), (B, "idle"), (C, "idle"), (D, "idle"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"query": "fix"}, [A, C]),
        ({"query": "DOCS fix"}, [C]),
        ({"query": A[-4:]}, [A]),
        ({"query": "shop"}, [A, B, C, D]),
        ({"query": "nothing"}, []),
        ({"tags": ("work",)}, [A, B]),
        ({"tags": ("work", "docs")}, [B]),
        ({"tags": ("wor",)}, []),
        ({"sort": "size"}, [B, C, A, D]),
        ({"sort": "cost"}, [B, A, C, D]),
        ({"sort": "created", "limit": 2}, [A, B]),
        ({"sort": "size", "limit": 1}, [B]),
        ({"limit": 0}, [A, B, C, D]),
        ({"query": "docs", "limit": 1}, [B]),
    ],
)
def test_filters_and_orders(home: Home, wanted: dict[str, object], ids: list[str]) -> None:
    four(home)
    assert listed(home, **wanted) == ids
    assert listed(home, **wanted) == ids  # now from the index


def deleted(index: Path) -> None:
    index.unlink()


def garbled(index: Path) -> None:
    index.write_bytes(b"SQLite format 3\0" + os.urandom(4096))


def a_directory(index: Path) -> None:
    index.unlink()
    index.mkdir()


def lying(index: Path) -> None:
    """Rows of another version, of other logs, and no JSON at all."""
    import sqlite3

    db = sqlite3.connect(index)
    with db:
        db.execute("UPDATE summaries SET summary = '{\"version\": 0}' WHERE session = ?", (A,))
        db.execute("UPDATE summaries SET stamp = 'x', summary = '{}' WHERE session = ?", (B,))
        db.execute("UPDATE summaries SET summary = '[' WHERE session = ?", (C,))
    db.close()


def read_only(index: Path) -> None:
    index.unlink()
    index.symlink_to("/proc/version")


@pytest.mark.parametrize("spoil", [deleted, garbled, a_directory, lying, read_only])
def test_the_index_changes_nothing_but_time(home: Home, spoil: Callable[[Path], None]) -> None:
    four(home)
    before = rows(one(home), Filter(limit=0))
    assert home.index_file.is_file()
    spoil(home.index_file)
    for _ in range(2):
        assert rows(one(home), Filter(limit=0)) == before


def test_a_log_that_went_on_is_read_again(home: Home) -> None:
    a_session(home, A, second=1)
    assert listed(home, query="hello") == [A]
    shutil.rmtree(home.sessions / A)
    a_session(home, A, prompt="other words", second=2)
    assert listed(home, query="other") == [A]


def test_an_untrusted_home_is_not_written_to_and_its_index_not_believed(tmp_path: Path) -> None:
    home = a_home(tmp_path / "theirs", trusted=False)
    a_session(home, A)
    rows(one(home), Filter())
    assert not home.index_file.exists()
    home.index_file.write_bytes(b"theirs")
    assert [r.summary["title"] for r in rows(one(home), Filter())] == ["hello"]
    assert home.index_file.read_bytes() == b"theirs"


def unreadable_logs(home: Home) -> list[str]:
    """Places whose log does not open, each for a reason of its own."""
    ids = [an_id(n, "20260101") for n in range(5)]
    for session in ids:
        (home.sessions / session).mkdir()
    logs = [home.sessions / session / "events.jsonl" for session in ids]
    logs[0].symlink_to(home.sessions / A / "events.jsonl")
    logs[1].mkdir()
    logs[2].symlink_to("nowhere")
    os.mkfifo(logs[3])  # opening it would wait for a writer
    logs[4].with_name("000000-000000000001.jsonl").symlink_to(logs[4])
    return ids


def test_a_log_that_does_not_open_takes_nothing_else_down(home: Home) -> None:
    a_session(home, A, title="a title")
    ids = unreadable_logs(home)
    for _ in range(2):  # with and without an index
        found = {row.place.id: row for row in rows(one(home), Filter(limit=0))}
        assert {i: found[i].state for i in (A, *ids)} == {A: "idle", **dict.fromkeys(ids, "damaged")}
        assert find(one(home), "a title").id == A
    assert all(found[i].summary["problem"] for i in ids)
    (home.sessions / ids[1] / "events.jsonl").rmdir()
    shutil.copy(home.sessions / A / "events.jsonl", home.sessions / ids[1] / "events.jsonl")
    assert "problem" not in row_of(find(one(home), ids[1])).summary


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_log_without_permission_is_damaged_and_well_again_afterwards(home: Home) -> None:
    log = a_session(home, A)
    log.chmod(0)
    assert row_of(find(one(home), A)).state == "damaged"
    log.chmod(0o600)
    assert row_of(find(one(home), A)).state == "idle"


@pytest.mark.parametrize("whole", [True, False])
def test_a_session_that_never_began_is_empty(home: Home, whole: bool) -> None:
    log = a_session(home, A)
    log.write_bytes(log.read_bytes().partition(b"\n")[0] + b"\n" if whole else b"")
    assert row_of(find(one(home), A)).state == "empty"


def test_damage_is_told_and_a_torn_end_is_none(home: Home) -> None:
    log = a_session(home, A)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    assert row_of(find(one(home), A)).state == "crashed"
    log.write_bytes(b"".join([*lines[:2], lines[2].replace(b"hello", b"hallo"), *lines[3:]]))
    assert row_of(find(one(home), A)).state == "damaged"


def test_a_session_is_found_by_what_people_call_it(home: Home) -> None:
    four(home)
    a_session(home, "20250101-zzzzzz", title="my session", second=9)
    homes = one(home)
    assert find(homes, None, last=True).id == "20250101-zzzzzz"
    for text in ("20250101-zzzzzz", "2025", "zzzz", "my session"):
        assert find(homes, text).id == "20250101-zzzzzz"
    with pytest.raises(SessionAmbiguous) as caught:
        find(homes, "20261129")
    assert caught.value.candidates == (A, B, C, D)
    for text in ("", "my", "nope", "../" + A):
        with pytest.raises(SessionMissing):
            find(homes, text)
    assert find_by_id(homes, A) is not None
    assert find_by_id(homes, "20261129") is None
    assert find_by_id(homes, "my session") is None


def test_an_id_in_two_homes_is_the_one_that_was_written_last(home: Home, tmp_path: Path) -> None:
    other = a_home(tmp_path / "other")
    a_session(home, A, second=1)
    a_session(other, A, second=2)
    for homes in (Homes((home, other), home), Homes((other, home), home)):
        assert find(homes, A).home == other
        assert find_by_id(homes, A) == find(homes, A)


def test_the_log_has_one_name() -> None:
    assert LOG_NAME == OPEN_NAME


def test_a_log_of_several_segments(home: Home) -> None:
    """Its size is that of all; its age and its row in the index go by the newest, with or without an open one."""
    a_session(home, A, filler=9000, second=1)
    a_session(home, B, filler=3000, second=2)
    path = a_session(home, C, filler=100, second=3)
    closed = path.with_name(closed_name(0, 1))
    path.rename(closed)
    head = encode_header(C, ordinal=1, first_seq=5, nonce="1" * 16, created=TS, by="t")
    draft = Draft("renamed", TS, {"title": "the newest", "by": "user"})
    path.write_bytes(head.raw + encode_event(draft, seq=5, dur=4, salt=head.salt))
    for number in range(3, 8):  # others lie beside them that are no segments
        (path.parent / f"{number}.jsonl").write_bytes(b"x" * 5000)
    both = closed.stat().st_size + path.stat().st_size
    row = next(r for r in rows(one(home), Filter()) if r.place.id == C)
    assert (row.place.size, row.summary["title"], row.state) == (both, "the newest", "idle")
    assert row_of(row.place).place.size == both
    assert listed(home, sort="size") == [A, B, C]
    seal_closed(RealFiles(), str(path.parent), C, below=1, min_bytes=0)
    sealed = closed.with_name(closed.name + ".zst")
    row = next(r for r in rows(one(home), Filter()) if r.place.id == C)
    assert row.place.size == sealed.stat().st_size + path.stat().st_size
    path.unlink()  # a change of segments was interrupted
    os.utime(sealed, (2e9, 2e9))
    (row, *_) = rows(one(home), Filter())
    assert (row.place.id, row.place.size, row.state) == (C, sealed.stat().st_size, "idle")
    assert row.place.updated_ns == 2e18


def test_a_segment_that_is_no_plain_file_is_not_waited_for(home: Home) -> None:
    path = a_session(home, A, second=1)
    os.mkfifo(path.with_name(closed_name(0, 1)))
    (row,) = rows(one(home), Filter())
    assert row.summary["problem"] == f"the log of session {A} is a named pipe, no plain file"


def test_the_names_of_segments_are_those_of_the_log() -> None:
    names = [OPEN_NAME, closed_name(0, 1), closed_name(7, 61213) + ".zst", closed_name(1234567, 1)]
    others = ["lock", "events.jsonl.new", closed_name(0, 1) + ".zst.new", "1-1.jsonl", "0000000-1.jsonl"]
    assert [n for n in [*names, *others] if _SEGMENT.fullmatch(n)] == names
    assert sorted(c.name for c in closed_segments([*names, *others])) == sorted(names[1:])


def test_what_is_no_session_is_not_listed(home: Home) -> None:
    a_session(home, A)
    for name in (".gitkeep", "20261129-abc", "README", "20261129-ABCDEF", "20261129-iiiiii"):
        (home.sessions / name).mkdir()
    assert [place.id for place in places([home])] == [A]
    assert places([Home(home.root / "nowhere", True)]) == []
    with pytest.raises(SessionMissing, match="no session yet"):
        find(one(Home(home.root / "nowhere", True)), None, last=True)


def test_a_held_session_is_running_and_its_holder_named(home: Home) -> None:
    a_session(home, A)
    place = find(one(home), A)
    refuse_held(place)
    lease = take(RealFiles(), str(home.sessions / A), A)
    try:
        row: Row = row_of(place)
        assert (row.state, row.holder.pid if row.holder else None) == ("running", os.getpid())
        with pytest.raises(SessionHeld, match=f"pid {os.getpid()}") as caught:
            refuse_held(place)
        assert caught.value.hint is not None
        assert "--follow" in caught.value.hint
    finally:
        lease.release()
    refuse_held(place)


def test_a_shorter_list_is_the_beginning_of_the_whole_one(home: Home, tmp_path: Path) -> None:
    """Whatever lies between: equal times, foreign names that look newest, archives, logs that are missing."""
    other = a_home(tmp_path / "other")
    for n in range(30):
        a_session(home if n % 3 else other, an_id(n), second=n % 4)
    (home.sessions / an_id(50)).mkdir()
    shutil.move(home.sessions / an_id(7) / "events.jsonl", home.sessions / an_id(7) / "archive.jsonl.zst")
    for foreign in ("README", "20261129-iiiiii"):
        (home.sessions / foreign).mkdir()
        (home.sessions / foreign / LOG_NAME).write_text("newest of all")
    for archived in (True, False):
        whole = places([home, other], archived=archived)
        assert len(whole) == 31 - (not archived)
        assert whole == sorted(whole, key=lambda p: (p.updated_ns, p.id), reverse=True)
        for newest in (1, 2, 17, 30, 31, 99):
            assert places([home, other], newest=newest, archived=archived) == whole[:newest]
    for named in ("", "2026", an_id(3), an_id(3)[-1:], "nothing", "README"):
        fitting = [p for p in whole if p.id.startswith(named) or p.id.endswith(named)]
        assert places([home, other], named=named, archived=False) == fitting


def test_three_hundred_sessions(home: Home) -> None:
    for n in range(300):
        a_session(home, an_id(n), prompt=f"word{n}", second=n % 60, cost=n / 100)
    whole = rows(one(home), Filter(limit=0))
    assert len(whole) == 300
    assert whole == rows(one(home), Filter(limit=0))
    assert [row.summary for row in whole] == [read_summary(row.place) for row in whole]
    assert len(rows(one(home), Filter())) == 50
    assert listed(home, sort="cost", limit=3) == [an_id(299), an_id(298), an_id(297)]
    assert len(listed(home, query="word29", limit=0)) == 11
