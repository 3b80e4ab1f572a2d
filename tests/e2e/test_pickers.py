"""The menus in a real terminal, on the real program, with a thousand sessions: sessions, turns, models."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from agentsh.testing.server import ScriptedServer, reply
from tests.app.homes import add, sid
from tests.e2e.harness import COMMAND, Shell
from tests.repl.pty import Terminal

SESSIONS = 1_000
UP, DOWN = "\x1b[A", "\x1b[B"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("user") / ".agentsh"
    for n in range(SESSIONS):
        add(home, n, 1 if n % 50 else 4, words="tune the carburettor" if n == 7 else "do")
    (home / "agentsh.toml").write_text('[models.small]\nwire = "demo"\n[models.large]\nwire = "demo"\n')
    (home / "first-run.json").write_text('{"introduced": true}')
    return home


@pytest.fixture
def terminal(home: Path, tmp_path: Path) -> Iterator[Callable[[int], Terminal]]:
    with ScriptedServer([reply("ok")]) as server:
        shell = Shell(home, tmp_path, server.base_url)

        def start(columns: int) -> Terminal:
            argv = [str(COMMAND), "resume", sid(900 if columns == 40 else 950)]
            return Terminal(columns, 24, argv=argv, cwd=tmp_path, **shell.env(TERM="xterm-256color"))

        yield start


def menu(t: Terminal, title: str) -> str:
    page = t.page
    assert all(cell_len(line) <= t.columns for line in page.split("\n"))
    return page[page.rindex(title) :] if title in page else ""


def gone(t: Terminal, title: str) -> None:
    t.wait(lambda: title not in t.page and re.search(r"^› ?$", t.page, re.M) is not None)
    t.look(0.15)  # so that the next key is not taken for one with Alt


@pytest.mark.parametrize("columns", [40, 80])
def test_menus_with_a_thousand_sessions(terminal: Callable[[int], Terminal], columns: int) -> None:
    with terminal(columns) as t:
        t.type("/sessions\r")
        t.wait(lambda: "Sessions · 1,000" in t.page and "▸" in menu(t, "Sessions"))
        assert "do 0 of" in menu(t, "Sessions")
        assert "$0.0" in t.page or columns < 80, "cost, where there is room"
        assert re.search(r"\d+[wd]\b", menu(t, "Sessions")), "age"
        t.type("carbur")  # of the first prompt of one of them
        t.wait(lambda: "Sessions · 1 of 1,000" in t.page and "▸ tune the carburettor" in t.page)
        t.wait(lambda: sid(7)[:12] in menu(t, "Sessions"))  # the preview names it
        t.type("\x15" + sid(123))
        t.wait(lambda: "Sessions · 1 of 1,000" in t.page and "▸ do 0 of 20261129-000123"[:columns] in t.page)
        t.type("\x15nothing at all")
        t.wait(lambda: "nothing fits" in t.page)
        t.type("\x1b")
        gone(t, "Sessions")
        t.type("/rewind\r")
        t.wait(lambda: "Back to before which turn? · 4" in t.page and "▸ do 3 of" in t.page)
        t.type(UP)
        t.wait(lambda: "▸ do 2 of" in t.page)
        t.type("\r")
        t.wait(lambda: "What goes back to before turn 3?" in t.page and "▸ both" in t.page)
        t.type("talk alone\r")
        t.wait(lambda: "(conversation) —" in t.page and "› do 2 of" in t.page.rpartition("rewound")[2])
        t.type("\x03/redo\r")
        t.wait(lambda: "the rewind was undone" in t.page)
        t.type("/model\r")
        t.wait(lambda: "Models ·" in t.page and "▸ scripted" in t.page)
        t.type("larg")
        t.wait(lambda: "▸ large" in t.page and "small" not in menu(t, "Models"))
        t.type("\r")
        t.wait(lambda: "— model: large" in t.page)
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored
        assert "▸" not in t.page
