"""The first thing that a newcomer reads: the list of commands, whole on 80 columns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.homes import add, sid
from tests.cli.test_odd_files import run


def test_no_line_of_the_list_is_cut() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentsh", "--help"], env={**os.environ, "COLUMNS": "80", "LINES": "24"},
        capture_output=True, text=True, timeout=50, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert [row.split()[0] for row in listed[:3]] == ["new", "resume", "ls"]
    assert len(listed) > 20
    assert [row for row in listed if not row.endswith(".") or row.endswith("...")] == []


@pytest.mark.parametrize("command", ["diff", "apply", "rewind", "fork"])
def test_the_newest_session_needs_no_id(tmp_path: Path, command: str) -> None:
    """As in `resume`, `replay`, `show` and `context`."""
    home = tmp_path / "home"
    for n in (1, 2):
        os.utime(add(home, n), (n * 1e9, n * 1e9))
    newest, named, neither, both = run(
        home, [command, "--last"], [command, sid(2)], [command], [command, sid(2), "--last"]
    )
    assert newest[0] == named[0]
    if command == "fork":
        assert f"of {sid(2)}" in newest[1]
    else:
        assert newest == named
    assert (neither[0], f"`agentsh {command} ID`; `agentsh ls` lists them, --last is" in neither[2]) == (2, True)
    assert (both[0], "do not go together" in both[2]) == (2, True)
