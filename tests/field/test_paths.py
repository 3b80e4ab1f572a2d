"""Field reports N: paths and names of projects. N200, N204 and N205 stand in tests/e2e, N201 in test_commands."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.app.grants import ProjectGrants, project_of
from agentsh.testing.server import ScriptedServer, reply
from tests.app.homes import add
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, of_type

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]
PAIRS = {
    "N193": ("a/b-c", "a-b/c"),
    "N194": ("проект/а", "проект/б"),
    "N195": ("проект-а", "проект/а"),
}


@pytest.mark.parametrize("row", PAIRS)
def test_n193_n194_n195_no_two_projects_are_one(shell: Shell, serve: Serve, tmp_path: Path, row: str) -> None:
    serve(reply("one"), reply("two"))
    places = [tmp_path / place for place in PAIRS[row]]
    for place in places:
        place.mkdir(parents=True)
        (place / ".git").mkdir()
        shell.cwd = place
        assert shell.run("new", f"in {place.name}", "-p", "--empty").code == 0
    assert {of_type(shell.events(i), "session_init")[0]["cwd"] for i in shell.ids} == {str(place) for place in places}
    own = tmp_path / "own"
    first, second = (ProjectGrants(own, project_of(str(place))) for place in places)
    first.add(["shell(make *)"])
    assert ProjectGrants(own, project_of(str(places[0]))).rules == ("shell(make *)",)
    assert ProjectGrants(own, project_of(str(places[1]))).rules == second.rules == ()


def test_n197_the_spelling_of_a_path_never_changes(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    server = serve(reply("one"), reply("two"), reply("three"))
    place = tmp_path / "Projekt" / "Shop"
    place.mkdir(parents=True)
    shell.cwd = place
    assert shell.run("new", "first", "-p", "--in-place", "--mode", "yolo").code == 0
    link = tmp_path / "shortcut"
    link.symlink_to(place)
    os.symlink(tmp_path / "Projekt", tmp_path / "projekt")
    for other in (link, tmp_path / "projekt" / "Shop"):
        shell.cwd = other
        assert shell.run("resume", "--last", "more", "-p").code == 0
    systems = [request.json["messages"][0] for request in server.requests]
    assert systems[0] == systems[1] == systems[2]
    assert str(place) in systems[0]["content"]
    assert not of_type(shell.events(), "environment_changed")[1:]


def test_n198_a_name_that_two_sessions_have_is_asked_about(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    serve(reply("one"), reply("two"))
    for name in ("shop", "blog"):
        shell.cwd = tmp_path / name
        shell.cwd.mkdir()
        assert shell.run("new", "go", "-p", "--empty", "--name", "fix tests").code == 0
    before = [shell.log(i).read_bytes() for i in shell.ids]
    done = shell.run("resume", "fix tests", "which?", "-p")
    assert done.code == 3
    assert all(i in done.err for i in shell.ids)
    assert [shell.log(i).read_bytes() for i in shell.ids] == before
    assert len(shell.ids) == 2


def test_n199_last_is_the_first_row(shell: Shell) -> None:
    shell.home.parent.mkdir()
    for n in (3, 1, 2):
        add(shell.home, n)
    rows = [json.loads(line) for line in shell.run("ls", "--json").out.splitlines()]
    shown = json.loads(shell.run("show", "--last", "--json").out)
    table = next(line for line in shell.run("ls").text.splitlines() if rows[0]["id"] in line)
    assert shown["id"] == rows[0]["id"]
    assert rows[0]["id"].endswith("3")
    assert table
