"""Promise P4: a replay leaves the same lines in a terminal as the live run did, at the same width."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, cut_stream, error, reply
from tests.e2e.harness import COMMAND, Shell
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
MARKDOWN = """# A heading

Some **bold** words, `code`, and a rather long sentence that has to be wrapped, 修复失败的测试 included, at any width.

- one
- two
  - nested

```python
def f(x):
    return x + 1
```

| a | b |
|---|---|
| 1 | two |

Done."""


def terminal(shell: Shell, columns: int, *words: str) -> Terminal:
    shell.introduced()
    env = shell.env(TERM="xterm-256color")
    return Terminal(columns, 24, argv=[str(COMMAND), *words], cwd=shell.cwd, **env)


def left(terminal: Terminal) -> list[str]:
    """The lines that a program has left behind, without empty ones at the end."""
    return terminal.page.splitlines()


def ended_turns(shell: Shell) -> int:
    return shell.log().read_bytes().count(b'"type":"turn_finished"') if shell.ids else 0


def replayed(shell: Shell, columns: int) -> list[str]:
    again = terminal(shell, columns, "replay", "--last")
    try:
        assert again.ended() == 0
        return left(again)
    finally:
        again.__exit__()


@pytest.mark.parametrize("columns", [80, 43])
def test_a_replay_leaves_the_lines_of_the_live_run(shell: Shell, serve: Serve, columns: int) -> None:
    serve(
        reply(MARKDOWN, chunk=7, gap_s=0.003, reasoning="I think about it.\nTwice.", calls=[
            call("write", {"path": "a.py", "content": "x = 1\n"}), call("read", {"path": "a.py"})
        ]),
        reply(calls=[
            call("edit", {"path": "a.py", "old": "1", "new": "2"}), call("shell", {"command": "cat a.py; false"})
        ]),
        error(503, "busy", headers={"Retry-After": "0"}),
        reply("Second thoughts.\n\nAnd a " + "long " * 60 + "end.", chunk=5, gap_s=0.002),
        cut_stream("half an answer"),
        reply("And the last one."),
        raise_failures=False,
    )  # fmt: skip
    with terminal(shell, columns, "new", "please do it", "--mode", "yolo") as live:
        for turn, text in enumerate(("two\x1b\rlines of it", "last"), 1):
            live.wait(lambda turn=turn: ended_turns(shell) == turn and "›" in live.lines[-1] + live.page[-200:], 30)  # type: ignore[misc]
            live.type(text)
            live.look(0.3)
            live.type("\r")
        live.wait(lambda: ended_turns(shell) == 3, 30)
        live.look(0.5)
        live.type("/exit\r")
        assert live.ended() == 0
        shown = left(live)
    assert shown == replayed(shell, columns)
    text = "\n".join(shown)
    assert "And the last one." in text
    assert "half an answer" in text


def test_replay_in_its_forms(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    serve(reply("**fine**", calls=[call("list", {"path": "."})]), reply("Over."))
    shell.run("new", "go", "-p")
    log = shell.log().read_bytes().partition(b"\n")[2]
    assert shell.run("replay", "--last", "--json").out == log
    lines = log.splitlines(keepends=True)
    assert shell.run("replay", "--last", "--json", "--from", "3", "--to", "5").out == b"".join(lines[2:5])
    only = shell.run("replay", "--last", "--json", "--type", "tool_call", "--type", "tool_result").events
    assert [e["type"] for e in only] == ["tool_call", "tool_result"]
    piped = shell.run("replay", "--last").text
    assert "\x1b" not in piped
    assert "Over." in piped
    assert shell.run("replay", "--last", "--speed", "1000").text == piped
    for form in ("text", "json", "md", "html"):
        out = tmp_path / f"out.{form}"
        assert shell.run("replay", "--last", "--format", form, "-o", str(out)).code == 0
        assert out.stat().st_mode & 0o777 == 0o600
        before = out.read_bytes()
        again = shell.run("replay", "--last", "--format", form, "-o", str(out), "--to", "2")
        assert (again.code, out.read_bytes()) == (2, before)
        assert "is there already" in again.err
    assert (tmp_path / "out.text").read_text() == piped
    assert shell.run("replay", "--last", "--type", "nonsense").code == 2
    beyond = shell.run("replay", "--last", "--from", "100000")
    assert (beyond.code, beyond.out) == (0, b"")
    assert "no event" in beyond.err


def test_follow_shows_what_is_added(shell: Shell, serve: Serve) -> None:
    import subprocess

    server = serve(reply("one"), reply("two"))
    shell.run("new", "go", "-p")
    process = shell.start("replay", "--last", "--follow", "--json")
    assert process.stdout is not None
    before = [process.stdout.readline() for _ in shell.events()]
    shell.run("resume", "--last", "more", "-p")
    after: list[bytes] = []
    while not after or json.loads(after[-1])["type"] != "turn_finished":
        after.append(process.stdout.readline())
    process.kill()
    process.communicate()
    assert b"".join(before + after) == shell.log().read_bytes().partition(b"\n")[2]
    assert len(server.requests) == 2
    assert isinstance(process, subprocess.Popen)


def test_terminal_controls_of_tools_and_models_reach_no_terminal(shell: Shell, serve: Serve) -> None:
    hostile = "\x1b]52;c;aGk=\x07\x1b]0;title\x07\x1b[2J\x1b[6n\x9b31m\u202eevil\x00"
    command = "printf '\\033]52;c;aGk=\\007\\033[2J\\033[6nvisible'"
    serve(
        reply("text " + hostile, calls=[call("shell", {"command": command})]),
        reply("over"),
    )  # fmt: skip
    shell.run("new", "title " + hostile.replace("\x00", ""), "-p", "--mode", "yolo")
    for words in (["replay", "--last"], ["ls"], ["show", "--last"], ["replay", "--last", "--json"]):
        out = shell.run(*words).text
        assert not set(out) & set("\x1b\x9b\x07\x00\u202e"), words


def ready(live: Terminal, shell: Shell, turns: int) -> None:
    """Wait until so many turns are over and the prompt is there again."""
    live.wait(lambda: ended_turns(shell) == turns, 40)
    live.look(0.6)


def test_approvals_interruptions_and_a_resumed_session_replay_as_they_were_seen(shell: Shell, serve: Serve) -> None:
    """D94 google-gemini/gemini-cli#14761: what was there before is on the screen again after a resume."""
    serve(
        reply("I write.", calls=[call("write", {"path": "a.txt", "content": "x\n"})]),
        reply("And I run it.", calls=[call("shell", {"command": "sh a.txt"})]),
        reply("You said no."),
        reply("A very long answer.\n\n" + "word " * 400, chunk=5, gap_s=0.02),
        reply("Here again."),
    )
    with terminal(shell, 80, "new", "please", "--mode", "ask") as live:
        live.wait(lambda: "yes, for this session" in live.page, 40)
        live.look(0.3)
        live.type("y")
        live.wait(lambda: shell.log().read_bytes().count(b'"approval_asked"') == 2, 40)
        live.look(0.5)
        live.type("n")
        ready(live, shell, 1)
        live.type("go on\r")
        live.wait(lambda: "A very long answer." in live.page and live.count("word") > 40, 40)
        live.type("\x03")
        ready(live, shell, 2)
        live.type("/exit\r")
        assert live.ended() == 0
        first = left(live)
    assert first == replayed(shell, 80)
    assert "interrupted" in "\n".join(first)
    with terminal(shell, 80, "resume", "--last") as live:
        live.look(1.0)
        live.type("hello\r")
        ready(live, shell, 3)
        live.type("/exit\r")
        assert live.ended() == 0
        second = left(live)
    assert second == replayed(shell, 80)
    assert second[: len(first)] == first
