"""Field report K173, place by place: what a tool, a file, a model, a title or a name holds never steers the terminal.

The live view, the line mode and the first look are in test_terminals.py, tests/render and tests/repl/test_plain.py.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell
from tests.e2e.test_replay import terminal
from tests.field.test_terminals import BREAKS_OUT, HOSTILE
from tests.repl.pty import Terminal

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]
EVIL = HOSTILE + "seen"
"""Controls, and a word behind them that has to be there."""
NAME = EVIL.replace("\x07", "")
PLACES = {
    "/status": "session ",
    "/context": "request ",
    "/model": "▸ scripted",
    "/rewind": "Back to before",
    "/sessions": "Sessions · 1",
    "/rename": "title: ",
    "/tag": "tags: ",
    "/diff": "diff --git",
    "/apply check": "path",
    "/replay": "PgUp, PgDn",
    "/tools": "read ",
    "/permissions": "deny, ask and allow",
    "/todo": "1 item of 1 left",
    "/jobs": "seen",
    "/config models": "models.",
    "/output": "● ",
    "/output 2": "● ",
    "/reasoning": "what the model thought",
    "/help": "PgUp, PgDn",
    "/evil": "there is no /evil",
    "/e": "▸ /",
    "see @n": "▸ notes.md",
}
"""What is typed, and what tells that it is there."""


def clean(raw: str, place: str) -> None:
    own = raw.replace("\x1b]0;agentsh", "").replace("\x1b]2;agentsh", "")
    assert [part for part in BREAKS_OUT[:-1] if part in own] == [], place


@pytest.fixture
def evil(shell: Shell, serve: Serve) -> Shell:
    """A session in which everything that has a name or a text has an evil one."""
    names = json.dumps(f"m{NAME}")
    own = shell.home.parent / ".agentsh"
    (own / "commands").mkdir(parents=True)
    (own / "agentsh.toml").write_text(f"[models.{names}]\nmodel = {names}\n")
    (own / "commands" / "evil-look.md").write_text(f"---\ndescription: {EVIL}\n---\n{EVIL}\n")
    (shell.cwd / f"n{NAME}.txt").write_text("x\n")
    (shell.cwd / "notes.md").write_text("x\n")
    printf = "printf '\\033]52;c;aGk=\\007\\033[2J\\302\\233seen\\n'"
    serve(
        reply(
            "text " + EVIL,
            reasoning="thought " + EVIL,
            calls=[
                call("write", {"path": f"w{NAME}.txt", "content": EVIL}),
                call("shell", {"command": printf + f"; echo '{NAME}'"}),
                call("todo", {"items": [{"text": EVIL, "status": "pending"}]}),
            ],
        ),
        reply("done " + EVIL),
    )
    words = ["new", "asked " + EVIL, "-p", "--mode", "yolo", "--from", ".", "--name", "title " + EVIL, "--tag", NAME]
    assert shell.run(*words).code == 0
    return shell


def shows(t: Terminal, typed: str, there: str) -> None:
    """Type something, wait for what it shows, look at every byte of that, and take it away."""
    before, listed = len(t.raw), there.startswith("▸ /") or typed.startswith("see")
    t.type(typed if listed else typed + "\r")
    t.wait(lambda: there in t.page.replace("\n  ", " "))
    t.look(0.1)
    clean(t.raw[before:], typed)
    if listed:
        t.type("\x03")
        t.wait(lambda: "▸" not in t.page)
    elif "type to filter" in t.page:
        t.type("\x1b")
        t.wait(lambda: "type to filter" not in t.page)


def test_k173_no_command_menu_or_completion_passes_controls_on(evil: Shell) -> None:
    with terminal(evil, 80, "resume", "--last") as t:
        t.wait(lambda: "\n›" in t.page and t.page.endswith(evil.ids[0]))
        for typed, there in PLACES.items():
            shows(t, typed, there)
        clean(t.raw, "the past of a session")
        t.type("\x03/exit\r")
        assert t.ended() == 0


LISTINGS = """\
ls
ls --all --json
show ID
context ID
diff ID --stat
tag ID
replay ID
replay ID --format text
replay ID --format md
replay ID --format html
resume ID --read-only
fork ID
rename ID new
verify ID
rm ID --yes"""


def test_k173_no_listing_or_export_passes_controls_on(evil: Shell) -> None:
    for words in LISTINGS.splitlines():
        done = evil.inside(*words.replace("ID", evil.ids[0]).split())
        assert done.code == 0, (words, done.err)
        clean(done.text + done.err, words)
        assert "\x1b" not in done.text + done.err, words
        assert "\x07" not in done.text + done.err, words
    diff = terminal(evil, 80, "diff", evil.ids[0])
    assert diff.ended() == 0
    clean(diff.raw, "diff on a terminal")
    diff.__exit__()


def test_k173_files_that_are_exported_hold_none(evil: Shell, tmp_path: Path) -> None:
    for form in ("md", "html"):
        file = tmp_path / f"out.{form}"
        assert evil.inside("replay", evil.ids[0], "--format", form, "-o", str(file)).code == 0
        text = file.read_text()
        clean(text, form)
        assert "\x1b" not in text
        assert "seen" in text
