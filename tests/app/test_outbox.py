"""The process beside a session: when it tries, when it waits, and that its end comes."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.app import outbox
from agentsh.app.outbox import Outbox, serve
from agentsh.app.paths import Home
from agentsh.app.uploading import pending
from agentsh.base.errors import StorageConflict, StorageUnavailable

URL = "file:///nowhere"


class Served:
    """A `serve` on a thread, and what it was asked for. answers: what each attempt raises, None for success."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.at_s: list[float] = []
        self.swept = 0
        self.answers: list[Exception | None] = []
        reader, self.writer = os.pipe()
        self.reader = reader
        self.looked = 0
        self.looks: list[Exception | None] = []
        self.thread = threading.Thread(target=lambda: serve(reader, self._ready, self._attempt, self._sweep))

    def start(self) -> "Served":
        self.thread.start()
        return self

    def _ready(self) -> None:
        self.looked += 1
        answer = self.looks.pop(0) if self.looks else None
        if answer is not None:
            raise answer

    def _attempt(self, seq: int) -> None:
        self.asked.append(seq)
        self.at_s.append(time.monotonic())
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def _sweep(self) -> None:
        self.swept += 1

    def say(self, text: str) -> None:
        os.write(self.writer, text.encode())

    def wait(self, count: int) -> None:
        end = time.monotonic() + 20
        while len(self.asked) < count:
            assert time.monotonic() < end, self.asked
            time.sleep(0.005)

    def end(self) -> None:
        os.close(self.writer)
        self.thread.join(timeout=20)
        assert not self.thread.is_alive()
        os.close(self.reader)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Served]:
    monkeypatch.setattr(outbox, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(outbox, "LONGEST_PAUSE_S", 0.2)
    return Served


def test_each_turn_is_brought_up_and_once_more_at_the_end(started: Callable[[], Served]) -> None:
    served = started().start()
    served.say("7\n")
    served.wait(1)
    served.say("9\n12\n")
    served.wait(2)
    served.end()
    assert served.asked[0] == 7
    assert served.asked[-2:] == [12, 0] or served.asked[-3:] == [9, 12, 0]
    assert served.swept == 1


def test_a_session_that_dies_at_once_is_brought_up_all_the_same(started: Callable[[], Served]) -> None:
    served = started().start()
    served.end()
    assert (served.asked, served.swept) == ([0], 1)


def test_a_place_that_does_not_answer_is_asked_again_more_and_more_seldom(started: Callable[[], Served]) -> None:
    served = started().start()
    served.answers = [StorageUnavailable("x") for _ in range(4)]
    served.say("3\n")
    served.wait(2)
    served.say("5\n")  # a turn that ends meanwhile does not make it hurry
    served.wait(5)
    served.end()
    assert served.asked == [3, 5, 5, 5, 5, 0] or served.asked == [3, 3, 5, 5, 5, 0]
    pauses = [b - a for a, b in zip(served.at_s, served.at_s[1:5], strict=False)]
    assert all(pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.2, 0.2), strict=True))


def test_a_place_that_says_no_is_asked_again_by_the_next_turn_only(started: Callable[[], Served]) -> None:
    served = started().start()
    served.answers = [StorageConflict("x")]
    served.say("3\n")
    served.wait(1)
    time.sleep(0.15)
    assert served.asked == [3]
    served.say("4\n")
    served.wait(2)
    served.end()
    assert served.asked == [3, 4, 0]


def test_at_the_end_a_place_that_does_not_answer_is_asked_once(started: Callable[[], Served]) -> None:
    served = started().start()
    served.answers = [StorageUnavailable("x") for _ in range(9)]
    served.say("3\n")
    served.wait(1)
    served.end()
    assert served.asked[-1] == 0
    assert served.swept == 0


def test_the_place_is_looked_at_before_there_is_anything_to_bring(started: Callable[[], Served]) -> None:
    for answer in (None, StorageUnavailable("x"), StorageConflict("x")):
        served = started()
        served.looks = [answer]
        served.start()
        while not served.looked:
            time.sleep(0.005)
        served.say("3\n")
        served.wait(1)
        served.end()
        assert (served.looked, served.asked[0], served.asked[-1]) == (1, 3, 0)


def test_where_something_is_to_be_brought_nothing_else_is_asked(started: Callable[[], Served]) -> None:
    served = started()
    served.say("3\n")
    served.start()
    served.wait(1)
    served.end()
    assert (served.looked, served.asked) == (0, [3, 0])


def test_what_no_copier_ever_tried_is_left_for_the_next(tmp_path: Path) -> None:
    """The machine went down, there was no room for a process: the session itself has said that it is to be copied."""
    home = Home(tmp_path, trusted=True)
    directory = home.sessions / "20261129-k3v9qd"
    directory.mkdir(parents=True)
    (directory / "events.jsonl").write_bytes(b"{}\n")
    assert list(pending(home, URL)) == []
    outbox = Outbox(home, "20261129-k3v9qd", URL, {"PATH": "/nowhere", "PYTHONHOME": "/nowhere"})
    outbox.begin()
    if outbox._process is not None:
        os.waitpid(outbox._process.pid, 0)
    outbox.close()
    assert [place.id for place in pending(home, URL)] == ["20261129-k3v9qd"]
    assert list(pending(home, "file:///elsewhere")) == []


def test_nothing_that_happens_to_the_process_reaches_the_session(tmp_path: Path) -> None:
    """It cannot be started, it dies, it never reads: `wake` and `close` return at once all the same."""
    gone = Outbox(Home(tmp_path / "not there", trusted=True), "20261129-k3v9qd", URL, os.environ)
    gone.wake(3)
    gone.close()
    dying = Outbox(
        Home(tmp_path, trusted=True), "20261129-k3v9qd", URL, {"PATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    )
    for n in range(3):
        dying.wake(n)
        if dying._process is not None:
            os.waitpid(dying._process.pid, 0)  # dead, but nobody told the outbox
    dying.close()
    stuck = Outbox(Home(tmp_path, trusted=True), "20261129-k3v9qd", URL, {**os.environ, "AGENTSH_X": "1"})
    stuck.wake(1)
    assert stuck._process is not None
    process = stuck._process
    os.kill(process.pid, signal.SIGSTOP)
    try:
        for n in range(20_000):
            stuck.wake(n)
        stuck.close()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
