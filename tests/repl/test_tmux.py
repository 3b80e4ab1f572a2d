"""A real terminal that wraps old lines anew, and tells of a change later than it makes it: tmux."""

import os
import shutil
import signal
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
        self._pid = 0

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

    def resize(self, columns: int, rows: int, *then: str) -> None:
        """Change the window between two writes of the program; then do one thing more.

        What a program has written and the terminal has not read yet is drawn into a window of another size than it
        was written for; whoever wants to know what is lost then must know what was on its way. So nothing is.
        """
        self._pid = self._pid or int(self.run("display-message", "-p", "-t", "a", "#{pane_pid}"))
        os.kill(self._pid, signal.SIGSTOP)
        try:
            self.page()  # all of it is read now
            self.run("resize-window", "-t", "a", "-x", str(columns), "-y", str(rows), *then)
        finally:
            os.kill(self._pid, signal.SIGCONT)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path)
    program = f"PYTHONPATH=. TALK_TOKENS={WORDS} TALK_RATE=400 exec {sys.executable} -m tests.repl.talk"
    tmux.run("new-session", "-d", "-s", "a", "-x", "80", "-y", "24", "sleep 60")
    tmux.run("set-option", "-g", "history-limit", "50000")
    tmux.run("respawn-window", "-k", "-t", "a", program)
    yield tmux
    tmux.run("kill-server")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_k165_k166_twenty_resizes_while_text_streams_lose_and_double_nothing(tmux: Tmux, width: int) -> None:
    """Each of the numbered words reaches the terminal once; the prompt is there once, with all that was typed."""
    tmux.run("resize-window", "-t", "a", "-x", str(width), "-y", "24")
    tmux.wait(lambda page: "›" in page)
    tmux.run("send-keys", "-t", "a", "essay", "Enter")
    tmux.wait(lambda page: "w00030" in page)
    for n in range(20):
        tmux.resize((40, 80, 200, 61, 120)[n % 5], (24, 12, 40)[n % 3], ";", "send-keys", "-t", "a", "x")
        time.sleep(0.08)
    assert "— 1 step" not in tmux.page(), "the text had ended before the last change"
    tmux.resize(width, 24)
    page = tmux.wait(lambda page: "— 1 step" in page and "\n› " + "x" * 20 in page)
    assert [n for n in range(WORDS) if page.count(f"w{n:05}") != 1] == []
    assert page.count("› x") == 1
    assert page.count("›") == 2
