"""`replay --follow` reads a log again when it has changed, and not when it has not."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.catalog import Place, find
from agentsh.app.paths import Home, Homes
from agentsh.app.stores import event_store
from agentsh.cli.replay import LONGEST_REST_S, POLL_S, REST, ReplayOptions, _records
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft, Record
from agentsh.log.store import EventStore
from tests.app.rig import a_home, an_id

A = an_id(1)
FOLLOW = ReplayOptions(A, False, None, False, 1, 3, (), True, "screen", None)
TS = "2026-11-29T16:20:01.123456Z"


def log(count: int, text: str = "text", more: str = "") -> bytes:
    """A log of `count` events; `more` goes to the last one."""
    header = encode_header(A, ordinal=0, first_seq=1, nonce="0" * 16, created=TS, by="test")
    texts = [text] * (count - 1) + [text + more]
    lines = [
        encode_event(Draft("note", TS, {"text": t}), seq=n, dur=0, salt=header.salt) for n, t in enumerate(texts, 1)
    ]
    return header.raw + b"".join(lines)


class Counting:
    """A store that counts how often a log is read; each reading takes `takes_s` of the clock."""

    def __init__(self, store: EventStore, clock: "Clock", takes_s: float) -> None:
        self._store, self._clock, self._takes_s = store, clock, takes_s
        self.readings = 0

    def read(self, session: str, *, after_seq: int = 0) -> Iterator[Record]:
        self.readings += 1
        self._clock.now_s += self._takes_s
        yield from self._store.read(session, after_seq=after_seq)


class Clock:
    """Time that passes by sleeping, with something that happens at each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens: list[Callable[[], Any]]) -> None:
        self.now_s, self.slept_s = 0.0, list[float]()
        self._happens = happens
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        self._happens.pop(0)()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = a_home(tmp_path / "home")
    (home.sessions / A).mkdir()
    (home.sessions / A / "events.jsonl").write_bytes(log(2))
    return home


def followed(home: Home, clock: Clock, takes_s: float = 0.0) -> tuple[list[int], Counting]:
    place: Place = find(Homes((home,), home), A)
    store = Counting(event_store(home), clock, takes_s)
    return [record.seq for record in _records(store, place, FOLLOW)], store  # type: ignore[arg-type]


def test_a_log_that_has_not_changed_is_not_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home.sessions / A / "events.jsonl"
    clock = Clock(monkeypatch, [*[lambda: None] * 5, lambda: file.write_bytes(log(3))])
    seqs, store = followed(home, clock)
    assert seqs == [1, 2, 3]
    assert store.readings == 2
    assert clock.slept_s == [POLL_S] * 6


def test_another_file_of_the_same_size_is_a_change(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    file, new = home.sessions / A / "events.jsonl", home.sessions / A / "events.jsonl.new"
    whole = log(3)
    file.write_bytes(log(2, more="x" * (len(whole) - len(log(2)))))
    assert file.stat().st_size == len(whole)

    def rescue() -> None:
        new.write_bytes(whole)
        new.rename(file)

    assert followed(home, Clock(monkeypatch, [rescue]))[0] == [1, 2, 3]


@pytest.mark.parametrize(("takes_s", "rests_s"), [(0.1, REST * 0.1), (60.0, LONGEST_REST_S)])
def test_a_long_log_is_not_read_all_the_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, takes_s: float, rests_s: float
) -> None:
    file = home.sessions / A / "events.jsonl"
    clock = Clock(monkeypatch, [lambda: file.write_bytes(log(3))])
    assert followed(home, clock, takes_s)[0] == [1, 2, 3]
    assert clock.slept_s == [pytest.approx(rests_s)]
