"""Field reports J: interrupting, queueing and steering, on a real terminal. Each row is named by its number."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from agentsh.testing.server import ScriptedServer, call, forever, hang, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, of_type
from tests.e2e.test_replay import ended_turns, terminal
from tests.repl.pty import Terminal

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]


def users(shell: Shell) -> list[str]:
    return [str(fact["text"]) for fact in of_type(shell.events(), "user_message")]


def queued(shell: Shell) -> int:
    return len(of_type(shell.events(), "text_queued"))


def send(t: Terminal, shell: Shell, *texts: str) -> None:
    """Type texts during a turn, each as it is taken."""
    for text in texts:
        before = queued(shell)
        t.type(text + "\r")
        t.wait(lambda before=before: queued(shell) == before + 1)  # type: ignore[misc]


@pytest.mark.parametrize("how", ["\x1b", "\x03"])
def test_j152_what_waits_is_still_there_after_an_interruption(shell: Shell, serve: Serve, how: str) -> None:
    serve(hang("busy"), forever(reply("answered")))
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty") as t:
        t.wait(lambda: "busy" in t.page)
        send(t, shell, "first follow-up", "second follow-up")
        t.type(how)
        t.wait(lambda: ended_turns(shell) >= 1)
        t.wait(lambda: "› first follow-up" in t.page)  # given back, to be edited or sent
        assert users(shell) == ["go"]
        t.type("\r")
        t.wait(lambda: ended_turns(shell) == 2)
        assert users(shell) == ["go", "first follow-up\n\nsecond follow-up"]
        t.type("/exit\r")
        assert t.ended() == 0


def test_j152_what_waits_survives_a_kill(shell: Shell, serve: Serve) -> None:
    serve(hang("busy"), forever(reply("answered")))
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty") as t:
        t.wait(lambda: "busy" in t.page)
        send(t, shell, "first follow-up", "second follow-up")
        t.kill()
    with terminal(shell, 80, "resume", "--last") as t:
        t.wait(lambda: "second follow-up" in t.page)
        assert t.count("first follow-up") >= 1
        t.look(0.5)
        t.type("\r")
        t.wait(lambda: "second follow-up" in users(shell)[-1])
        t.wait(lambda: t.count("answered") >= 1)
        t.type("/exit\r")
        assert t.ended() == 0
    assert "".join(users(shell)).count("first follow-up") == "".join(users(shell)).count("second follow-up") == 1


def test_j153_a_message_during_any_phase_is_there_once_and_stops_nothing(shell: Shell, serve: Serve) -> None:
    slow = call("shell", {"command": "echo begun; until [ -e go ]; do sleep 0.02; done; echo over"})
    server = serve(
        reply("one two three", chunk=1, gap_s=0.1, calls=[slow]),
        reply(calls=[call("shell", {"command": "sleep 0.3"})]),
        forever(reply("answered")),
    )
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty") as t:
        t.wait(lambda: "one" in t.page)
        send(t, shell, "while it streams")
        t.wait(lambda: "begun" in t.page)
        send(t, shell, "while it runs")
        t.type("steered\x13")
        t.wait(lambda: queued(shell) == 3)
        (shell.workspace() / "go").touch()
        t.wait(lambda: "while it runs" in users(shell) and ended_turns(shell) >= 3)
        t.type("/exit\r")
        assert t.ended() == 0
    texts = users(shell)
    assert sorted(texts) == sorted(["go", "while it streams", "while it runs", "steered"])
    assert [r["status"] for r in of_type(shell.events(), "tool_result")] == ["ok", "ok"]
    last = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"]
    assert sorted(last) == sorted(texts)


def test_j154_nothing_falls_out_of_a_long_queue(shell: Shell, serve: Serve) -> None:
    serve(
        reply("busy", calls=[call("shell", {"command": "until [ -e go ]; do sleep 0.02; done"})]),
        forever(reply("ok")),
    )
    texts = [f"number {n:03}" for n in range(40)]
    with terminal(shell, 80, "new", "begin", "--mode", "yolo", "--empty") as t:
        t.wait(lambda: "busy" in t.page)
        t.type("".join(text + "\r" for text in texts))
        t.wait(lambda: queued(shell) == len(texts))
        (shell.workspace() / "go").touch()
        t.wait(lambda: ended_turns(shell) == len(texts) + 1, 120)
        t.type("/exit\r")
        assert t.ended() == 0
    assert users(shell) == ["begin", *texts]


def test_j157_an_interrupted_call_is_told_as_one(shell: Shell, serve: Serve) -> None:
    server = serve(
        reply(
            calls=[
                call("shell", {"command": "echo begun; sleep 60"}),
                call("write", {"path": "later.txt", "content": "x"}),
            ]
        ),
        reply("understood"),
    )
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty") as t:
        t.wait(lambda: "begun" in t.page)
        t.type("\x03")
        t.wait(lambda: ended_turns(shell) == 1)
        t.type("what now?\r")
        t.wait(lambda: ended_turns(shell) == 2)
        t.type("/exit\r")
        assert t.ended() == 0
    told = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "tool"]
    assert "interrupted while this ran" in told[0]
    assert "interrupted before this ran. It had no effects" in told[1]
    assert not (shell.workspace() / "later.txt").exists()


def test_j159_after_an_interruption_nothing_goes_on_by_itself(shell: Shell, serve: Serve) -> None:
    server = serve(*(hang(f"busy {n}") for n in range(3)), reply("only now"))
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty") as t:
        for n in range(3):
            t.wait(lambda n=n: f"busy {n}" in t.page)  # type: ignore[misc]
            t.type("\x1b")
            t.wait(lambda n=n: ended_turns(shell) == n + 1)  # type: ignore[misc]
            t.look(0.4)
            assert len(server.requests) == n + 1
            t.type(f"go on {n}\r")
        t.wait(lambda: "only now" in t.page)
        t.type("/exit\r")
        assert t.ended() == 0


def test_j160_twenty_interruptions_at_random_moments(shell: Shell, serve: Serve) -> None:
    rng = random.Random(160)
    moments: list[Any] = [
        reply("word " * 400, chunk=5, gap_s=0.01),
        reply(calls=[call("shell", {"command": "seq 100; sleep 60"})]),
        hang(),
        hang("half"),
    ]
    serve(*(moments[n % 4] for n in range(20)), raise_failures=False)
    with terminal(shell, 80, "new", "--mode", "yolo", "--empty") as t:
        for n in range(20):
            t.type(f"go {n}\r")
            t.wait(lambda n=n: len(users(shell)) == n + 1)  # type: ignore[misc]
            t.look(rng.uniform(0, 0.4))
            t.type(rng.choice("\x03\x1b"))
            t.wait(lambda n=n: ended_turns(shell) == n + 1)  # type: ignore[misc]
        t.type("/exit\r")
        assert t.ended() == 0
    assert users(shell) == [f"go {n}" for n in range(20)]
    ends = [fact["reason"] for fact in of_type(shell.events(), "turn_finished")]
    assert ends == ["interrupted"] * 20
    assert not re.search("Traceback", t.raw)
