"""todo, ask_user, job and web_fetch in real sessions: offered, judged, recorded, shown; and kept exports."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from agentsh.testing.server import ScriptedServer, call, reply
from agentsh.tools.ask_user import NOBODY
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.e2e.test_signals import alive
from tests.repl.pty import Terminal
from tests.tools.test_web import server

__all__ = ["server"]

Serve = Callable[..., ScriptedServer]
MAX_REQUEST_BYTES = 12_000
ITEMS = [{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}]


def calls(name: str, **arguments: object) -> object:
    return reply(calls=[call(name, arguments)])


def configure(shell: Shell, text: str) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(text)


def test_plan_mode_and_nobody_there(shell: Shell, serve: Serve) -> None:
    provider = serve(
        calls("todo", items=ITEMS),
        calls("ask_user", question="Which port?", choices=["8000", "8080"]),
        calls("shell", command="ls", background=True),
        calls("shell", command="touch x", background=True),
        calls("job", action="wait", id="1", timeout_s=20),
        calls("web_fetch", url="http://127.0.0.1/"),
        reply("planned"),
    )
    done = shell.run("new", "go", "-p", "--mode", "plan")
    assert (done.code, done.text) == (0, "planned\n"), done.err
    results = of_type(shell.events(), "tool_result")
    assert [r["status"] for r in results] == ["ok", "ok", "ok", "denied", "ok", "error"]
    assert results[0]["for_model"] == "The todo list is kept: 2 items, 1 done."
    assert results[1]["for_model"] == NOBODY
    assert "plan mode is read-only" in results[3]["for_model"]
    assert "There is no tool 'web_fetch'" in results[5]["for_model"]
    assert of_type(shell.events(), "todo_changed") == [{"items": ITEMS}]
    shown = shell.run("replay", "--last").text
    assert "☑ look\n▶ mend" in shown
    first = json.loads(provider.requests[0].body)
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"shell", "job", "todo", "ask_user"}
    assert len(provider.requests[0].body) < MAX_REQUEST_BYTES


def test_the_web_is_asked_about_by_host(shell: Shell, serve: Serve, server: str) -> None:
    web = '[tools]\nweb = true\nweb_private = ["127.0.0.1"]\n'
    configure(shell, web)
    provider = serve(calls("web_fetch", url=f"http://{server}/page"), reply("no"))
    assert shell.run("new", "go", "-p", "--mode", "auto").code == 8
    assert of_type(shell.events(), "tool_result")[0]["status"] == "denied"
    assert len(provider.requests[0].body) < MAX_REQUEST_BYTES, "with all tools"
    configure(shell, web + '[permissions]\nallow = ["web_fetch(127.0.0.1)"]\n')
    serve(calls("web_fetch", url=f"http://{server}/page"), reply("read"))
    events = shell.run("new", "go", "--json", "--mode", "auto").events
    (result,) = of_type(events, "tool_result")
    assert "## Use" in result["for_model"]
    (started,) = of_type(events, "tool_started")
    assert (started["sandbox"], started["decision"], started["effects"]) == ("none", "rule", ["net"])


def test_an_exported_path_gives_no_harmless_word_another_meaning(shell: Shell, serve: Serve) -> None:
    configure(shell, '[sandbox]\nkind = "none"\n[permissions]\nallow = ["shell(export *)", "shell(cd *)"]\n')
    evil: Path = shell.cwd / "evil"
    evil.mkdir()
    (evil / "ls").write_text("#!/bin/sh\ntouch pwned\n")
    (evil / "ls").chmod(0o755)
    serve(calls("shell", command='export PATH="$PWD/evil:$PATH"'), calls("shell", command="ls"), reply("done"))
    assert shell.run("new", "go", "-p", "--mode", "ask").code == 0
    results = of_type(shell.events(), "tool_result")
    assert [s["decision"] for s in of_type(shell.events(), "tool_started")] == ["rule", "harmless"]
    assert "evil" in results[1]["for_model"]
    assert "[Run without the variables that earlier commands exported.]" in results[1]["for_model"]
    assert not (shell.workspace() / "pwned").exists()
    (kept,) = of_type(shell.events(), "shell_changed")
    assert kept["exports"]["PATH"].startswith(f"{shell.workspace()}/evil:")


def test_a_repository_that_plain_edits_made_runs_nothing_unasked(shell: Shell, serve: Serve) -> None:
    """A directory that looks like a bare repository is one to git, and its configuration names programs."""
    configure(shell, '[sandbox]\nkind = "none"\n[permissions]\nallow = ["write"]\n')
    inner = {
        "HEAD": "ref: refs/heads/main\n",
        "config": f"[core]\nbare = false\nworktree = {shell.cwd}\nfsmonitor = touch {shell.cwd}/pwned; false\n",
        "objects/x": "",
        "refs/x": "",
    }
    serve(
        reply(calls=[call("write", {"path": f"evil/{path}", "content": text}) for path, text in inner.items()]),
        calls("shell", command="git -C evil status"),
        calls("shell", command="cd evil; git status"),
        reply("done"),
    )
    assert shell.run("new", "go", "-p", "--mode", "ask", "--in-place").code == 0
    assert [s["decision"] for s in of_type(shell.events(), "tool_started")][-2:] == ["harmless", "harmless"]
    assert all("bare repository" in r["for_model"] for r in of_type(shell.events(), "tool_result")[-2:])
    assert not (shell.cwd / "pwned").exists()


def test_a_terminal_asks_shows_the_end_of_a_job_and_leaves_nothing(shell: Shell, serve: Serve) -> None:
    """The question by key; a job that ends while nobody works; Ctrl-C twice with another one running."""
    sleep = f"sleep 8{os.getpid()}"
    serve(
        calls("shell", command="until [ -e go ]; do sleep 0.05; done; exit 3", background=True),
        calls("shell", command=f"setsid {sleep} & {sleep}", background=True),
        calls("ask_user", question="Which port?", choices=["8000", "8080"]),
        reply("as you say"),
    )
    argv = [str(COMMAND), "new", "go", "--mode", "yolo"]
    with Terminal(80, 24, argv=argv, cwd=shell.cwd, **shell.env(TERM="xterm-256color")) as live:
        live.wait(lambda: "1-2 choose" in live.page, 60)
        live.look(0.6)
        live.type("2")
        live.wait(lambda: "as you say" in live.page, 60)
        assert "● ask_user Which port?" in live.page
        (shell.workspace() / "go").touch()
        live.wait(lambda: "— job 1: ended, exit 3 after" in live.page, 60)
        assert len(alive(sleep)) >= 2
        live.type("\x03")
        live.wait(lambda: "Ctrl-C again to leave" in live.page)
        live.type("\x03")
        live.ended()
    assert not alive(sleep)
    assert [j["state"] for j in of_type(shell.events(), "job_changed")] == ["running", "running", "ended", "killed"]
    (result,) = (r for r in of_type(shell.events(), "tool_result") if "8080" in r["for_model"])
    assert result["for_model"] == "The user answers: 8080"
