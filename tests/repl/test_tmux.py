"""A real terminal that wraps old lines anew, and tells of a change later than it makes it: tmux."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
WORDS = 1_500


class Tmux:
    """One server of its own, with one window."""

    def __init__(self, directory: Path) -> None:
        self._socket = str(directory / "socket")

    def run(self, *words: str) -> str:
        """Run a tmux command."""
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout

    def page(self) -> str:
        """All lines, those that were wrapped joined."""
        return self.run("capture-pane", "-p", "-J", "-S", "-", "-t", "a")

    def wait(self, condition: Callable[[str], bool], seconds: float = 30.0) -> str:
        """Wait for something to be seen; return all lines."""
        end = time.monotonic() + seconds
        while not condition(page := self.page()):
            assert time.monotonic() < end, page
            time.sleep(0.1)
        return page


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path)
    program = f"PYTHONPATH=. TALK_TOKENS={WORDS} TALK_RATE=400 {sys.executable} -m tests.repl.talk; sleep 60"
    tmux.run("new-session", "-d", "-s", "a", "-x", "80", "-y", "24", "sleep 60")
    tmux.run("set-option", "-g", "history-limit", "50000")
    tmux.run("respawn-window", "-k", "-t", "a", program)
    yield tmux
    tmux.run("kill-server")


def test_twenty_resizes_while_text_streams_lose_and_double_nothing(tmux: Tmux) -> None:
    tmux.wait(lambda page: "›" in page)
    tmux.run("send-keys", "-t", "a", "essay", "Enter")
    tmux.wait(lambda page: "w00030" in page)
    for n in range(20):
        columns, rows = (40, 80, 200, 61, 120)[n % 5], (24, 12, 40)[n % 3]
        tmux.run("resize-window", "-t", "a", "-x", str(columns), "-y", str(rows))
        tmux.run("send-keys", "-t", "a", "x")
        time.sleep(0.12)
    tmux.run("resize-window", "-t", "a", "-x", "80", "-y", "24")
    page = tmux.wait(lambda page: "— 1 step" in page and "\n› " + "x" * 20 in page)
    assert [n for n in range(WORDS) if page.count(f"w{n:05}") != 1] == []
    assert page.count("› x") == 1
