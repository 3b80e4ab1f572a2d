"""The loop in a real pseudo terminal."""

import os
import re
import signal
import stat
from pathlib import Path

import pytest

from agentsh.repl.asked import ARM_S
from tests.repl.pty import Terminal

STATUS = "20261129-k3v9qd"


def ready(t: Terminal, turns: int, typed: str = "") -> None:
    """Wait until this many turns are done and the prompt is there alone, with what was typed."""
    prompt = re.compile(r"\n\n› ?" + re.escape(typed) + r"\n[^\n]*" + STATUS + "$")
    t.wait(lambda: len(re.findall(r"^— \d+ step", t.page, re.M)) == turns and bool(prompt.search(t.page)))


def question(t: Terminal) -> None:
    """Wait for a question, and as long as a person needs to see it."""
    t.wait(lambda: "? touch x" in t.page)
    t.look(ARM_S + 0.1)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_type_stream_exit_and_the_replay_is_what_was_left(columns: int, tmp_path: Path) -> None:
    with Terminal(columns, TALK_REPLAY=str(tmp_path / "replay")) as t:
        t.type("hello\r")
        ready(t, 1)
        assert t.count("› hello") == 1
        assert t.count("You said: hello") == 1
        t.type("long\r")
        ready(t, 2)
        for n in range(60):
            assert t.count(f"Marker {n:03}") == 1
        assert t.page.count("›") == 3  # two messages and one prompt: never doubled
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored
        replay = (tmp_path / "replay").read_text(encoding="utf-8")
        assert t.page.split("\n") == replay.rstrip("\n").split("\n")


def test_commands_are_shown_and_gone() -> None:
    with Terminal() as t:
        t.type("/help\r")
        t.wait(lambda: t.count("/model [NAME]") == 1)
        t.type("/hepl\r")
        t.wait(lambda: t.count("did you mean /help?") == 1)
        assert t.count("/model [NAME]") == 0
        assert "▸" not in t.page, "the list goes with what was typed"
        t.type("/model other\r")
        t.wait(lambda: t.count("— model: other —") == 1)
        t.type("/status\r")
        t.wait(lambda: "model      other" in t.page)
        t.type("/etc/hosts is a path\r")
        ready(t, 1)
        assert t.count("You said: /etc/hosts is a path") == 1
        assert "model      other" not in t.page


def test_ctrl_c_stops_a_turn_then_clears_then_leaves() -> None:
    with Terminal() as t:
        t.type("sleep\r")
        t.wait(lambda: "tick" in t.page and "running" in t.page)
        t.type("\x03")
        ready(t, 1)
        assert "● sleep x  interrupted" in t.page
        assert "tick" not in t.page.replace("tick 0", "")[: t.page.index("●")]
        t.type("half a line\x03")
        t.wait(lambda: "half a line" not in t.page and "Ctrl-C again to leave" in t.page)
        t.wait(lambda: "again to leave" not in t.page)  # it is true for two seconds
        t.type("\x1b[A")  # Up: nothing typed is lost
        t.wait(lambda: "› half a line" in t.page)
        t.type("\x03\x03\x03")
        assert t.ended() in (0, 130)  # 130 where it is still a second Ctrl-C after the one that stopped the turn
        assert t.restored


def test_ctrl_c_twice_during_a_turn_leaves() -> None:
    with Terminal() as t:
        t.type("sleep\r")
        t.wait(lambda: "running" in t.page)
        t.type("\x03")
        t.look(0.1)  # the kernel makes one signal of two in the same moment
        t.type("\x03")
        assert t.ended() == 130
        assert t.restored
        assert "■ interrupted" in t.page


def test_ctrl_c_of_turns_in_a_row_does_not_leave() -> None:
    with Terminal() as t:
        for n in (1, 2, 3):
            t.type("sleep\r")
            t.wait(lambda n=n: t.count("› sleep") == n and "running" in t.page)  # type: ignore[misc]
            t.type("\x03")
            ready(t, n)
        t.type("/exit\r")
        assert t.ended() == 0


@pytest.mark.parametrize(("number", "busy"), [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGHUP, True)])
def test_signals_end_it_cleanly(number: signal.Signals, busy: bool) -> None:
    with Terminal() as t:
        if busy:
            t.type("sleep\r")
            t.wait(lambda: "running" in t.page)
        t.signal(number)
        assert t.ended() == 130
        assert t.restored


def test_typing_into_a_lost_paste_recovers_too() -> None:
    with Terminal() as t:
        t.type("\x1b[200~abc")
        for key in "defghijklmnop":
            t.type(key)
            t.look(0.15)
        t.wait(lambda: "› abcdef" in t.page, 1.0)


def test_keys_typed_during_a_turn_do_not_answer_a_question() -> None:
    with Terminal() as t:
        t.type("touch\ryes please")
        question(t)
        assert "? touch x" in t.page
        t.type("n")
        t.wait(lambda: "› yes please" in t.page)


def test_texts_typed_during_a_turn_are_queued_and_become_turns() -> None:
    with Terminal() as t:
        t.type("long\r")
        t.wait(lambda: "Marker 001" in t.page)
        t.type("second\rthird\rhalf a li")
        t.wait(lambda: "⏎ queued: third" in t.page)
        ready(t, 3, "half a li")
        assert [n for n in range(60) if t.count(f"Marker {n:03}") != 1] == []
        assert t.count("› second") == t.count("› third") == 1
        assert t.page.index("Marker 059") < t.page.index("› second") < t.page.index("You said: second")
        assert t.page.index("You said: second") < t.page.index("› third") < t.page.index("You said: third")
        t.type("ne\r")
        ready(t, 4)
        assert t.count("You said: half a line") == 1


def test_reasoning_is_folded_and_a_key_opens_it() -> None:
    with Terminal() as t:
        t.type("think\r")
        t.wait(lambda: "thought-1" in t.page)  # it streams while it is thought
        ready(t, 1)
        assert re.search(r"^∴ thought for \d+(\.\d)? m?s, 420 words$", t.page, re.MULTILINE)
        assert "thought-" not in t.page
        t.type("half\x14")
        t.wait(lambda: "what the model thought:" in t.page and "thought-000" in t.page)
        t.type("\x1b[6~" * 40)
        t.wait(lambda: "thought-419" in t.page)
        t.type("\x14")
        t.wait(lambda: "thought-" not in t.page)
        assert "› half" in t.page


def test_history_is_kept_private_and_tolerates_garbage(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"older"\n\xff\xfe garbage\n"\\ud800 lone"\n[1, 2]\n{"a\n')
    with Terminal(TALK_HISTORY=str(file)) as t:
        t.type_bytes(b"byte \xff\xc3 end\r")
        ready(t, 1)
        t.type("\x1b[A\x1b[A\x1b[A")
        t.wait(lambda: "› older" in t.page)
        t.type("\x03/exit\r")
        assert t.ended() == 0
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_the_window_changes_while_text_streams() -> None:
    with Terminal(80) as t:
        t.type("long\r")
        t.wait(lambda: "Marker 003" in t.page)
        for columns in (60, 100, 45, 80, 70, 120, 80):
            t.resize(columns, 24)
            t.look(0.1)
        ready(t, 1)
        for n in range(8, 60):
            assert t.raw.count(f"Marker {n:03}") >= 1
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored


@pytest.mark.parametrize(("tokens", "rate"), [(2_000, 500), (300, 60)])
def test_a_long_answer_costs_less_than_three_times_its_bytes(tokens: int, rate: int) -> None:
    """Field report K167."""
    with Terminal(TALK_TOKENS=str(tokens), TALK_RATE=str(rate)) as t:
        before = len(t.raw.encode())
        t.type("essay\r")
        t.wait(lambda: bool(re.search(r"^— \d+ step", t.page, re.M)), 60)
        ready(t, 1)
        visible = sum(len(line.encode()) + 1 for line in t.lines)
        assert [n for n in range(tokens) if t.count(f"w{n:05}") != 1] == []
        assert len(t.raw.encode()) - before <= 3 * visible


def test_no_colour() -> None:
    with Terminal(NO_COLOR="1") as t:
        t.type("long\r")
        ready(t, 1)
        assert not re.search(r"\x1b\[(?:\d+;)*(?:[34][0-8]|9[0-7]|10[0-7])(?:;\d+)*m", t.raw)
