"""Slash commands in a real terminal, on the real program: other sessions, what was changed, exports, own commands."""

import base64
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, error, reply
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
HOSTILE = "a\x1b]52;c;aGk=\x07b \x1b[2Jc <script>alert(1)</script> ![x](http://127.0.0.1/x.png)"


def terminal(shell: Shell, *words: str, columns: int = 80, rows: int = 30) -> Terminal:
    shell.introduced()
    return Terminal(columns, rows, argv=[str(COMMAND), *words], cwd=shell.cwd, **shell.env(TERM="xterm-256color"))


def turns(shell: Shell, session: str) -> int:
    return len(of_type(shell.events(session), "turn_finished"))


def at(t: Terminal, session: str) -> None:
    """Wait for a prompt in this session, with nothing typed."""
    t.wait(lambda: t.page.endswith(session) and re.search(r"^› ?$", t.page, re.M) is not None)


@pytest.mark.parametrize("columns", [40, 200])
def test_a_session_is_found_by_what_was_said_in_it_and_gone_on_with(shell: Shell, serve: Serve, columns: int) -> None:
    serve(reply("Certainly. The zebra is striped."), reply("A plain answer."), reply("Still here."))
    shell.inside("new", "-p", "tell me of animals\x1b]0;owned\x07")
    shell.inside("new", "-p", "tell me of stones 修复失败的测试")
    zebra, stone = sorted(shell.ids, key=lambda i: shell.log(i).stat().st_mtime_ns)
    with terminal(shell, "resume", stone, columns=columns) as t:
        at(t, stone)
        t.type("/sessions\r")
        t.wait(lambda: "Sessions · 2" in t.page and "▸ tell me of stones" in t.page)
        assert "owned" not in t.page, "titles are clean"
        t.type("zebra")  # in no title: only in what was answered
        t.wait(lambda: "Sessions · 1 of 2" in t.page and "▸ tell me of animals" in t.page)
        t.wait(lambda: f"{zebra[:12]}" in t.page.partition("Sessions")[2])  # the preview
        t.type("\r")
        at(t, zebra)
        assert "The zebra is striped." in t.page, "the past of the other session is shown"
        assert shell.inside("resume", stone, "-p", "and now?").code == 0, "its lease is free"
        t.type("/sessions\r")
        t.wait(lambda: "Sessions · 2" in t.page)
        t.type("\x1b")
        at(t, zebra)
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored
    assert [turns(shell, i) for i in (zebra, stone)] == [1, 2]
    assert shell.inside("verify", "--all").code == 0


def test_what_cannot_be_opened_is_one_line_and_the_session_stays(shell: Shell, serve: Serve) -> None:
    serve(reply("one"), reply("two"))
    for text in ("first", "second"):
        shell.inside("new", "-p", text)
    held, own = sorted(shell.ids, key=lambda i: shell.log(i).stat().st_mtime_ns)
    with terminal(shell, "resume", held) as holder, terminal(shell, "resume", own) as t:
        at(holder, held)
        at(t, own)
        t.type(f"/resume {held}\r")
        t.wait(lambda: "✗ session" in t.page and "in use by" in t.page.replace("\n", " "))
        t.type("/resume nonsense\r")
        t.wait(lambda: "✗ no session 'nonsense'" in t.page)
        t.type(f"/resume {own}\r")
        t.wait(lambda: "is the session that you are in" in t.page)
        t.type("/exit\r")
        assert t.ended() == 0


def test_one_that_fails_to_open_leads_back(shell: Shell, serve: Serve) -> None:
    serve(reply("one"), reply("two"))
    for text in ("first", "second"):
        shell.inside("new", "-p", text)
    broken, own = sorted(shell.ids, key=lambda i: shell.log(i).stat().st_mtime_ns)
    raw = shell.log(broken).read_bytes().splitlines(keepends=True)
    shell.log(broken).write_bytes(raw[0])  # a log without an event: that is found when it is opened
    with terminal(shell, "resume", own) as t:
        at(t, own)
        t.type(f"/resume {broken}\r")
        t.wait(lambda: "✗ session" in t.page and "is empty" in t.page.replace("\n", " "))
        at(t, own)
        t.type("/exit\r")
        assert t.ended() == 0
    assert len(of_type(shell.events(own), "opened")) == 2


def test_j155_a_queued_text_waits_while_another_session_is_open_and_clear_keeps_the_old(
    shell: Shell, serve: Serve
) -> None:
    serve(error(401, "no such key", delay_s=2.0), reply("done"))
    with terminal(shell, "new") as t:
        t.wait(lambda: len(shell.ids) == 1)
        (first,) = shell.ids
        t.type("one\r")
        t.wait(lambda: bool(of_type(shell.events(first), "context_built")))
        t.type("later\r")
        t.wait(lambda: "queued: later" in t.page)
        t.wait(lambda: turns(shell, first) == 1)  # it failed: what waits is not sent into the same trouble
        t.type("/clear\r")
        t.wait(lambda: len(shell.ids) == 2 and f"/resume {first}" in t.page.replace("\n  ", " "))
        (second,) = set(shell.ids) - {first}
        at(t, second)
        assert "queued: later" not in t.page
        assert shell.workspace(second).is_dir()
        assert shell.workspace(first).is_dir()
        t.type("/resume 2\r")
        at(t, first)
        assert "queued: later" in t.page
        t.type("\r")
        t.wait(lambda: turns(shell, first) == 2)
        t.type("/exit\r")
        assert t.ended() == 0
    assert [m["text"] for m in of_type(shell.events(first), "user_message")] == ["one", "later"]


def test_what_is_typed_before_the_screen_begins_is_in_the_prompt_and_not_in_the_banner(
    shell: Shell, serve: Serve
) -> None:
    serve()
    t = terminal(shell, "new", "--empty")
    t.type("typed early")
    with t:
        t.wait(lambda: "\n› typed early\n" in t.page)
        assert t.page.startswith(f"typed early\nagentsh · session {shell.ids[0]}\n")


def test_changes_are_shown_brought_back_and_exported(shell: Shell, serve: Serve) -> None:
    (shell.cwd / "a.py").write_text("x = 1\n")
    edit = call("edit", {"path": "a.py", "old": "x = 1", "new": "x = 2  # \x1b[2J"})
    serve(reply("I change it.", calls=[edit]), reply(f"Done. {HOSTILE}\n\n```python\nx = 2\n```"))
    with terminal(shell, "new", "change it", "--mode", "yolo") as t:
        t.wait(lambda: bool(shell.ids) and turns(shell, shell.ids[0]) == 1)
        (session,) = shell.ids
        t.type("/diff\r")
        t.wait(lambda: "+x = 2" in t.page and "diff --git a/a.py b/a.py" in t.page)
        t.type("/apply check\r")
        t.wait(lambda: "1 path would change" in t.page)
        assert (shell.cwd / "a.py").read_text() == "x = 1\n"
        t.type("/apply\r")
        t.wait(lambda: "1 path changed" in t.page)
        assert "x = 2" in (shell.cwd / "a.py").read_text()
        for form in ("md", "html", "jsonl"):
            t.type(f"/export {form}\r")
            t.wait(lambda form=form: f"agentsh-{session}.{form}" in t.page.replace("\n  ", ""))  # type: ignore[misc]
        t.type(f"/export {shell.cwd / 'a.py'}\r")
        t.wait(lambda: "is there already" in t.page)
        t.type("/copy code\r")
        t.wait(lambda: "1 line sent to the clipboard" in t.page)
        copied = base64.b64encode(b"x = 2").decode()
        assert t.raw.count(f"\x1b]52;c;{copied}\x07") == 1
        assert "]52;c;aGk=" not in t.raw, "K173: what a model says is never taken for a clipboard"
        t.type("/feedback-bundle\r")
        t.wait(lambda: "written:" in t.page)
        t.type("/exit\r")
        assert t.ended() == 0
    _exports_are_clean(shell, session)


def _exports_are_clean(shell: Shell, session: str) -> None:
    md = (shell.cwd / f"agentsh-{session}.md").read_text()
    page = (shell.cwd / f"agentsh-{session}.html").read_text()
    for text in (md, page):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), "K173"
        assert "x = 2" in text
    assert "<script" not in md
    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    lines = (shell.cwd / f"agentsh-{session}.jsonl").read_bytes().splitlines()
    logged = shell.log(session).read_bytes().splitlines()[1:]
    assert lines == logged[: len(lines)]
    with zipfile.ZipFile(shell.cwd / f"agentsh-feedback-{session}.zip") as bundle:
        whole = "".join(bundle.read(name).decode() for name in bundle.namelist())
        events = [json.loads(line) for line in bundle.read("events.jsonl").splitlines()]
    assert [e["type"] for e in events][:2] == ["session_init", "environment_changed"]
    for secret in ("change it", "a.py", "x = 2", "striped", "sk-test", str(shell.cwd), str(shell.home.parent)):
        assert secret not in whole, secret


def test_settings_rules_and_findings_are_shown(shell: Shell, serve: Serve) -> None:
    serve()
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text(
        '[permissions]\nallow = ["shell(npm test *)"]\n[models.x]\nbase_url = "http://me:pw@127.0.0.1:1/v1"\n'
        'options = { api_token = "hush" }\n'
    )
    with terminal(shell, "new", rows=60, columns=120) as t:
        t.type("/permissions\r")
        t.wait(lambda: "shell(npm test *)" in t.page and "project   nothing" in t.page)
        t.type("/config models.x\r")
        t.wait(lambda: "models.x.base_url" in t.page)
        assert "http://…@127.0.0.1:1/v1" in t.page
        assert "hush" not in t.page
        assert "me:pw" not in t.page
        t.type("/config model\r")
        t.wait(lambda: re.search(r"^  model +scripted  · AGENTSH_MODEL", t.page, re.M) is not None)
        t.type("/doctor\r")
        t.wait(lambda: "ok    python" in t.page, 20)
        t.type("/replay\r")
        t.wait(lambda: t.page.count("resume with: agentsh resume") == 2)
        t.type("/todo\r")
        t.wait(lambda: "there is no todo list yet" in t.page and t.page.count("resume with") == 1)
        t.type("/exit\r")
        assert t.ended() == 0


def test_commands_that_the_user_wrote(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    server = serve(reply("I look."))
    own = tmp_path / "user" / ".agentsh" / "commands"
    own.mkdir(parents=True)
    (own / "review.md").write_text("---\ndescription: look at a file\n---\nLook at $1. Mind: $ARGUMENTS\n")
    with terminal(shell, "new") as t:
        t.type("/rev")
        t.wait(lambda: "/review" in t.page and "look at a file" in t.page)
        t.type("\tcart.py and $1\r")
        t.wait(lambda: bool(shell.ids) and turns(shell, shell.ids[0]) == 1)
        t.type("/exit\r")
        assert t.ended() == 0
    (said,) = of_type(shell.events(), "user_message")
    assert said["text"] == "Look at cart.py. Mind: cart.py and $1"
    assert len(server.requests) == 1


def test_d93_a_command_of_the_users_joins_the_next_request_and_the_replay(shell: Shell, serve: Serve) -> None:
    server = serve(reply("I see."), reply("An aside."), reply("Go on."))
    with terminal(shell, "new") as t:
        t.wait(lambda: bool(shell.ids))
        t.type("!echo se''en; printf 'x\\033]52;c;aGk=\\007y\\n'; exit 3\r")
        t.wait(lambda: "exit 3" in t.page and "\n  xy\n" in t.page)
        t.type("!!echo hid''den\r")
        t.wait(lambda: "\n  hidden\n" in t.page)
        t.type("what was that?\r")
        t.wait(lambda: turns(shell, shell.ids[0]) == 1)
        t.type("/btw who are you?\r")
        t.wait(lambda: "An aside." in t.page and "not in the context" in t.page)
        assert "asks      aside" in shell.inside("context", "--last").text
        t.type("go on\r")
        t.wait(lambda: turns(shell, shell.ids[0]) == 2)
        t.type("/exit\r")
        assert t.ended() == 0
        lines = t.page.splitlines()
    bodies = [r.body.decode() for r in server.requests]
    assert all("seen" in body for body in bodies)
    assert not any("hidden" in body for body in bodies)
    assert "who are you?" in bodies[1]
    assert "who are you?" not in bodies[2]
    assert "An aside." not in bodies[2]
    again = terminal(shell, "replay", "--last")
    try:
        assert again.ended() == 0
        assert again.page.splitlines() == lines, "P4"
    finally:
        again.__exit__()


def test_a_model_or_a_budget_without_room_is_refused_and_a_smaller_one_says_what_follows(
    shell: Shell, serve: Serve
) -> None:
    server = serve(reply("word " * 9_000), reply("short"))
    (shell.home.parent / ".agentsh").mkdir(parents=True)
    config = shell.home.parent / ".agentsh" / "agentsh.toml"
    profile = '[models.{}]\ncontext_window = {}\nbase_url = "{}"\napi_key_env = "OPENAI_API_KEY"\n'
    profiles = "".join(profile.format(n, w, server.base_url) for n, w in (("tiny", 2_000), ("small", 8_000)))
    config.write_text(profiles)
    with terminal(shell, "new", "--empty", rows=40) as t:
        t.wait(lambda: len(shell.ids) == 1)
        (session,) = shell.ids
        at(t, session)
        t.type("talk\r")
        t.wait(lambda: turns(shell, session) == 1)
        t.type("/model tiny\r")
        t.wait(lambda: "is too small for this session" in t.page.replace("\n", " "))
        assert "take one with a larger one" in t.page.replace("\n", " ")
        assert of_type(shell.events(session), "model_changed") == []
        t.type("/model small\r")
        t.wait(lambda: "it is made shorter before the next one" in t.page.replace("\n  ", " "))
        (changed,) = of_type(shell.events(session), "model_changed")
        assert changed["model"] == "small"
        t.type("/exit\r")
        assert t.ended() == 0
    config.write_text("[context]\nbudget_tokens = 1500\n" + profiles)
    done = shell.inside("resume", session, "more", "-p")
    assert done.code == 2
    assert "a budget of 1,500 tokens is too small for this session" in done.err
    assert "budget_tokens below [context]" in done.err
    assert turns(shell, session) == 1


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_what_a_tool_printed_is_folded_and_a_key_opens_it(shell: Shell, serve: Serve, columns: int) -> None:
    serve(reply(calls=[call("shell", {"command": "seq -f 'line %03g' 60"})]), reply("Counted."), reply("Sent."))
    with terminal(shell, "new", "--mode", "yolo", "--empty", "count", columns=columns, rows=24) as t:
        t.wait(lambda: "Counted." in t.page and "— 2 steps" in t.page)
        assert "  … 52 more lines · Ctrl-O" in t.page
        t.type("\x0f")
        t.wait(lambda: "line 001" in t.page and "PgUp, PgDn" in t.page)
        t.type("\x1b[6~" * 6)
        t.wait(lambda: "lines above" in t.page and "line 060" in t.page.partition("Counted.")[2])
        t.type("\x0f")
        t.wait(lambda: "PgUp, PgDn" not in t.page)
        assert t.count("line 020") == 0, "what was opened leaves nothing behind"
        t.type("a message\x1b#")  # readline's key that comments a line out, and sends it
        t.wait(lambda: "Sent." in t.page)
        t.type("\x04")
        assert t.ended() == 0
        assert t.restored
