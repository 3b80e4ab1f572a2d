"""The first thing that a newcomer reads: the list of commands, whole on 80 columns."""

import os
import subprocess
import sys


def test_no_line_of_the_list_is_cut() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentsh", "--help"], env={**os.environ, "COLUMNS": "80", "LINES": "24"},
        capture_output=True, text=True, timeout=50, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert [row.split()[0] for row in listed[:3]] == ["new", "resume", "ls"]
    assert len(listed) > 20
    assert [row for row in listed if not row.endswith(".") or row.endswith("...")] == []
