"""The line mode: for dumb terminals, screen readers and pipes. Not one control sequence is written in it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentsh.ports.approver import Answer
from agentsh.ports.asker import UserQuestion
from agentsh.repl.ask_user import ModelQuestion
from agentsh.repl.plain import ARM_S
from agentsh.repl.plain_asked import asked_in_words
from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, of_type
from tests.repl.pty import Terminal

__all__ = ["serve", "shell"]

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def talking() -> Terminal:
    return Terminal(TALK_PLAIN="1", TERM="dumb")


def bare(terminal: Terminal) -> str:
    """What the program wrote: nothing in it may move a cursor. The echo of a key is the terminal's own."""
    return terminal.raw.replace("^C", "").replace("^D\b\b", "")


def seen(t: Terminal, text: str, times: int = 1) -> None:
    t.wait(lambda: t.raw.count(text) >= times)


def invited(t: Terminal, turns: int) -> None:
    """Wait for the end of so many turns, and for the mark behind the last."""
    t.wait(lambda: t.raw.count("— 1 step") + t.raw.count("— 2 steps") + t.raw.count("— 0 steps") >= turns)
    t.wait(lambda: t.raw.endswith("› "))


def test_a_turn_with_an_approval_writes_no_control_sequence() -> None:
    with talking() as t:
        t.type("touch\r")
        seen(t, "? touch x")
        t.look(ARM_S + 0.05)
        t.type("maybe\r")
        seen(t, "type yes, session", 2)
        t.type("no, not today\r")
        invited(t, 1)
        assert "✗ refused: not today" in t.raw
        t.type("touch\r")
        seen(t, "type yes, session", 3)
        t.look(ARM_S + 0.05)
        t.type("YES\r")
        invited(t, 2)
        assert "✓ approved" in t.raw
        t.type("/copy\r")
        seen(t, "writes no control sequences")
        t.type("\x04")
        assert t.ended() == 0
        assert CONTROLS.findall(bare(t)) == []
        assert t.raw.endswith("\n")


def test_a_message_stands_there_once_and_the_answer_once() -> None:
    with talking() as t:
        t.type("hello there\r")
        invited(t, 1)
        t.type("long\r")
        invited(t, 2)
        assert t.raw.count("› hello there") == t.raw.count("You said: hello there") == 1
        assert [n for n in range(60) if t.raw.count(f"Marker {n:03}") != 1] == []
        t.type("one\\\rtwo\r")
        invited(t, 3)
        assert "You said 2 lines." in t.raw


def test_what_is_typed_before_a_question_is_no_answer_to_it() -> None:
    with talking() as t:
        t.type("touch\ryes\r")
        seen(t, "? touch x")
        seen(t, "queued: yes")
        t.look(ARM_S + 0.05)
        t.type("n\r")
        invited(t, 2)
        assert "✗ refused" in t.raw
        assert "You said: yes" in t.raw


async def test_a_question_of_the_models_is_answered_by_number_by_text_or_not_at_all() -> None:
    asked = asked_in_words(ModelQuestion.of(UserQuestion("Which\x1b[2J one?", ("red", "blue"))), 0.0)
    assert asked.head() == [
        "? the model asks:", "  Which one?", "  1 red", "  2 blue",
        "  type a number or an answer; an empty line gives none:",
    ]  # fmt: skip
    said = [asked.answered(line) for line in ("2", "3", " green ", "")]
    assert said == [Answer("yes", "blue"), Answer("yes", "3"), Answer("yes", "green"), Answer("no")]


def test_ctrl_c_interrupts_gives_the_queue_back_and_leaves_at_the_second() -> None:
    with talking() as t:
        t.type("sleep\r")
        t.look(0.3)
        t.type("later\r")
        seen(t, "queued: later")
        t.type("\x03")
        seen(t, "■ interrupted")
        seen(t, "was not sent: Enter alone sends it")
        t.type("\r")
        seen(t, "You said: later")
        t.wait(lambda: t.raw.endswith("› "))
        t.type("\x03")
        seen(t, "Ctrl-C again to leave")
        t.type("\x03")
        t.ended()
        assert CONTROLS.findall(bare(t)) == []


def test_a_text_steers_by_a_word() -> None:
    with talking() as t:
        t.type("sleep\r")
        t.look(0.3)
        t.type("/steer be quick\r")
        seen(t, "steers: be quick")
        t.type("\x03")
        seen(t, "was not sent")
        t.type("/steer too late\r")
        seen(t, "no turn is running that it could join")
        t.type("\r")
        seen(t, "You said: too late")


@pytest.mark.parametrize(
    "how", [{"TERM": "dumb"}, {"AGENTSH_SCREEN_READER": "1"}, {"word": "--plain"}, {"file": "1"}]
)
def test_every_way_into_it_is_plain_from_the_first_byte(
    shell: Shell, serve: Callable[..., ScriptedServer], how: dict[str, str]
) -> None:
    serve(reply("I edit.", calls=[call("write", {"path": "a.txt", "content": "a\n"})]), reply("It is **done**."))
    if how.get("file"):
        shell.home.mkdir(parents=True)
        (shell.home / "agentsh.toml").write_text("[ui]\nscreen_reader = true\n")
    words = [how["word"]] if "word" in how else []
    argv = [sys.executable, "-m", "agentsh", "new", "--mode", "ask", *words]
    env = shell.env(PYTHONPATH=os.getcwd(), **{k: v for k, v in how.items() if k.isupper()})
    environment: dict[str, Any] = {k: v for k, v in env.items() if not k.startswith("PYTEST")}
    with Terminal(argv=argv, cwd=shell.cwd, **environment) as t:
        t.type("go\r")
        seen(t, "type yes, session")
        t.look(ARM_S + 0.05)
        t.type("yes\r")
        invited(t, 1)
        t.type("/sessions\r")
        seen(t, "/resume N")
        (session,) = (place.name for place in (shell.home / "sessions").iterdir())
        assert f"1  {session}" in t.raw
        t.type("/status\r")
        t.wait(lambda: t.raw.count("mode") >= 2)
        t.type("/clear\r")
        seen(t, "the session before is kept")
        t.wait(lambda: t.raw.endswith("› "))
        t.type("/exit\r")
        assert t.ended() == 0
        assert CONTROLS.findall(bare(t)) == []
        assert "It is done." in t.raw
    assert [file.read_text() for file in (shell.home / "workspaces").glob("*/a.txt")] == ["a\n"]


def test_lines_come_from_a_pipe_where_it_is_asked_for(shell: Shell, serve: Callable[..., ScriptedServer]) -> None:
    """Field report K170."""
    serve(reply("First answer."), reply("Second answer."))
    done = shell.run("new", "--plain", stdin=b"one\ntwo")
    assert done.code == 0, done.err
    assert done.text.index("› one") < done.text.index("First answer.") < done.text.index("› two")
    assert done.text.count("Second answer.") == 1
    assert CONTROLS.findall(done.text) == []
    assert [m["text"] for m in of_type(shell.events(), "user_message")] == ["one", "two"]


def test_without_a_terminal_and_without_the_word_it_is_one_prompt_and_one_answer(
    shell: Shell, serve: Callable[..., ScriptedServer]
) -> None:
    """Field report K170: no prompt library is asked to draw into a pipe."""
    serve(reply("Only the answer."))
    assert shell.run("new", stdin=b"one").text == "Only the answer.\n"


def test_it_is_announced(shell: Shell) -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "agentsh", "new", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=shell.env(PYTHONPATH=os.getcwd()),
    ).stdout
    assert "--plain" in help_text
    assert "screen readers" in " ".join(help_text.split())
