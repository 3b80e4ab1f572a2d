"""`agentsh search`: what is printed of what was said, for people and for programs."""

import json
from pathlib import Path

import pytest

from agentsh.app.paths import Home
from agentsh.base.errors import UsageProblem
from agentsh.cli import search
from agentsh.cli.archive import archive
from tests.app.rig import a_home, a_session, an_id


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = a_home(tmp_path / "home")
    monkeypatch.setenv("AGENTSH_HOME", str(made.root))
    monkeypatch.setenv("COLUMNS", "120")
    return made


def test_it_prints_id_date_title_and_the_words_newest_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for n in (1, 2):
        a_session(home, an_id(n), prompt=f"The Zebra number {n} is striped \x1b[2J", title=f"title {n}", second=n)
    a_session(home, an_id(3), title="about a ZEBRA", second=3)
    a_session(home, an_id(4), prompt="a horse", second=4)
    assert search.run(["zebra"], as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [an_id(3), an_id(2), an_id(1)]
    assert lines[1] == f"{an_id(2)}  2026-11-29  {'title 2':30}  The Zebra number 2 is striped"
    assert search.run(["zebra", "number", "1"], as_json=True) == 0
    (found,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["id"], found["title"], found["match"]) == (an_id(1), "title 1", "The Zebra number 1 is striped")
    assert search.run(["zebras"], as_json=True) == 1
    assert capsys.readouterr().out == ""
    with pytest.raises(UsageProblem, match="2 characters"):
        search.run([" z "], as_json=False)


def test_it_looks_into_archives_and_fits_a_narrow_window(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_session(home, an_id(1), prompt="hello", title="later")
    text = "long ago there was a 斑马 " + "and so on " * 20
    a_session(home, an_id(2), prompt=text)
    archive([an_id(2)])
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "40")
    assert search.run(["斑马"], as_json=False) == 0
    head, where = capsys.readouterr().out.splitlines()
    assert head.startswith(an_id(2))
    assert where.startswith("    long ago there was a 斑马 and")
    assert len(where) < 40
