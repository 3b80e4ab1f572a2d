"""A lost unsynced write stays one: what an opening has said of damage holds when it looks like rot later."""

from pathlib import Path

from agentsh.app.catalog import Place, places
from agentsh.app.paths import Home
from agentsh.app.remembered import lost_writes
from agentsh.app.verifying import place_line, verify
from agentsh.base.clock import SystemClock
from agentsh.context.fold import fold
from agentsh.engine.bus import Bus
from agentsh.engine.journal import Journal
from agentsh.engine.open import MAX_DAMAGES, Writer, refold, reopen
from agentsh.events.codec import decode
from agentsh.events.session import Recovered
from agentsh.log.record import Record
from agentsh.log.store import Damage
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note
from tests.log.logs import SESSION, TS, header, lines


def home_with(root: Path, data: bytes) -> tuple[Home, JsonlStore]:
    home = Home(root, trusted=True)
    (home.sessions / SESSION).mkdir(parents=True)
    (home.sessions / SESSION / "events.jsonl").write_bytes(data)
    return home, JsonlStore(home.sessions, FileBlobs(home.blobs))


async def open_and_go_on(store: JsonlStore) -> list[Recovered]:
    """Open as `resume` does, append, and return what was said of the opening."""
    opened = await store.open(SESSION)
    state = refold(opened).state
    said: list[Recovered] = []
    journal = Journal(opened.log, state, Bus(lambda *_: None), SystemClock())
    before = opened.log.last_seq
    await reopen(journal, opened.recovery, Writer("0.1.0", "here", 1))
    (record,) = await opened.log.append([note("on we go")])
    await opened.log.wait_durable(record.seq)
    await opened.log.append([note("this line says that all before was synced")])
    await opened.log.close()
    for later in store.read(SESSION, after_seq=before):
        fact = decode(later).fact
        said += [fact] if isinstance(fact, Recovered) else []
    return said


def found(home: Home) -> tuple[Damage, ...]:
    (place,) = places([home])
    assert isinstance(place, Place)
    ((_, finding),) = verify([place])
    return finding.damages


def holed(count: int, *, synced: bool = False) -> bytes:
    """Return a log in which every third of its last lines was torn out before it was synced, or changed after."""
    head = header()
    own = lines(head, 1, 5 + 3 * count, behind=1 if synced else 3 * count + 10)
    for n in range(count):
        at = 6 + 3 * n
        own[at] = own[at][:-30] + b"?" + own[at][-29:]
    return head.raw + b"".join(own)


async def test_a_lost_write_is_no_rot_later(tmp_path: Path) -> None:
    home, store = home_with(tmp_path, holed(1))
    (said,) = await open_and_go_on(store)
    assert [d["rot"] for d in said.damages] == [False]
    for _ in range(2):
        (damage,) = found(home)
        assert not damage.rot
        assert "a power cut may have taken it" in place_line(damage)
        assert await open_and_go_on(store) == [], "it is told once"


async def test_rot_stays_rot(tmp_path: Path) -> None:
    home, store = home_with(tmp_path, holed(1, synced=True))
    (said,) = await open_and_go_on(store)
    assert [d["rot"] for d in said.damages] == [True]
    (damage,) = found(home)
    assert damage.rot


async def test_rot_behind_a_lost_write_is_told(tmp_path: Path) -> None:
    home, store = home_with(tmp_path, holed(1))
    await open_and_go_on(store)
    path = home.sessions / SESSION / "events.jsonl"
    data = path.read_bytes()
    at = data.index(b"on we go")
    path.write_bytes(data[:at] + b"?" + data[at + 1 :])
    (said,) = await open_and_go_on(store)
    assert [d["rot"] for d in said.damages] == [True]
    assert [d.rot for d in found(home)] == [False, True]


async def test_more_places_than_are_named_are_told_once_all_the_same(tmp_path: Path) -> None:
    home, store = home_with(tmp_path, holed(MAX_DAMAGES + 5))
    (said,) = await open_and_go_on(store)
    assert said.damages_total == MAX_DAMAGES + 5
    assert len(found(home)) == MAX_DAMAGES + 5
    assert not any(damage.rot for damage in found(home))
    assert await open_and_go_on(store) == []


def test_a_place_that_a_rescue_has_renamed_is_known_by_what_stands_before_it() -> None:
    payload = {
        "cut_bytes": 0, "quarantined": [], "calls": 0, "turn": False,
        "damages": [{"where": "000000:900", "kind": "crc", "bytes": 90, "after_seq": 6, "rot": False}],
    }  # fmt: skip
    record = Record(9, TS, "recovered", 5, None, payload, b"")
    assert lost_writes([record]).has(Damage("000001:130", "gap", 0, 6, True))
    assert not lost_writes([record]).has(Damage("000001:130", "gap", 0, 7, True))
    assert "after 6" in fold([decode(record)]).known_damages


def test_events_that_make_no_sense_say_nothing() -> None:
    endless = {"where": "x", "after_seq": float("inf"), "rot": False}
    for payload in ({}, {"damages": 3}, {"damages": [3]}, {"damages": [{"where": "x"}]}, {"damages": [endless]}):
        lost = lost_writes([Record(9, TS, "recovered", 5, None, payload, b"")])
        assert not lost.has(Damage("x", "crc", 0, 0, True))
