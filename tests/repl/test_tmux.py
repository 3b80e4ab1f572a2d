"""A real terminal that wraps old lines anew, and tells of a change later than it makes it: tmux."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell

__all__ = ["serve", "shell"]

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
WORDS = 1_500


class Tmux:
    """One server of its own, with one window."""

    def __init__(self, directory: Path) -> None:
        self._socket, self.paused = str(directory / "socket"), directory / "paused"
        self._pid = 0

    def run(self, *words: str) -> str:
        """Run a tmux command."""
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout

    def page(self) -> str:
        """All lines, those that were wrapped joined."""
        return self.run("capture-pane", "-p", "-J", "-S", "-", "-t", "a")

    def seen(self) -> str:
        """The lines in the window."""
        return self.run("capture-pane", "-p", "-J", "-t", "a")

    def wait(self, condition: Callable[[str], bool], seconds: float = 30.0) -> str:
        """Wait for something to be seen in the window; return all lines."""
        end = time.monotonic() + seconds
        while not condition(seen := self.seen()):
            assert time.monotonic() < end, seen
            time.sleep(0.1)
        return self.page()

    def resize(self, columns: int, rows: int, *then: str) -> None:
        """Change the window between two writes of the program; then do one thing more.

        What is on its way while the size changes is drawn for another size than that of the window: no program can
        know of it. So nothing is on its way here: the script stops between two of its doings, and all is read.
        """
        self._pid = self._pid or int(self.run("display-message", "-p", "-t", "a", "#{pane_pid}"))
        os.kill(self._pid, signal.SIGUSR1)
        end = time.monotonic() + 20
        while not self.paused.exists():
            assert time.monotonic() < end, "it does not stop"
            time.sleep(0.002)
        self.page()
        self.run("resize-window", "-t", "a", "-x", str(columns), "-y", str(rows), *then)
        self.paused.unlink()
        os.kill(self._pid, signal.SIGUSR2)

    def start(self, program: str, cwd: Path | None = None) -> None:
        """Run a program in the window."""
        self.run("new-session", "-d", "-s", "first", "sleep 600")
        self.run("set-option", "-g", "history-limit", "200000")  # of windows that are made from now on
        where = ["-c", str(cwd)] if cwd else []
        self.run("new-session", "-d", "-s", "a", "-x", "80", "-y", "24", *where, program)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path)
    yield tmux
    tmux.run("kill-server")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_k165_k166_twenty_resizes_while_text_streams_lose_and_double_nothing(tmux: Tmux, width: int) -> None:
    """Each of the numbered words reaches the terminal once; the prompt is there once, with all that was typed."""
    told = f"PYTHONPATH=. TALK_TOKENS={WORDS} TALK_RATE=400 TALK_PAUSED={tmux.paused}"
    tmux.start(f"{told} exec {sys.executable} -m tests.repl.talk")
    tmux.run("resize-window", "-t", "a", "-x", str(width), "-y", "24")
    tmux.wait(lambda page: "›" in page)
    tmux.run("send-keys", "-t", "a", "essay", "Enter")
    tmux.wait(lambda seen: "w00030" in seen)
    for n in range(20):
        tmux.resize((40, 80, 200, 61, 120)[n % 5], (24, 12, 40)[n % 3], ";", "send-keys", "-t", "a", "x")
        time.sleep(0.08)
    assert "— 1 step" not in tmux.page(), "the text had ended before the last change"
    tmux.resize(width, 24)
    page = tmux.wait(lambda page: "— 1 step" in page and "\n› " + "x" * 20 in page)
    assert [n for n in range(WORDS) if page.count(f"w{n:05}") != 1] == []
    assert page.count("› x") == 1
    assert page.count("›") == 2


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP], ids=["told", "not told"])
def test_a_process_that_was_stopped_is_there_again(tmux: Tmux, tmp_path: Path, number: signal.Signals) -> None:
    """Stopped from outside, and `fg`: the shell gets the terminal; then the prompt is there with what was typed."""
    tmux.start("PS1='$ ' bash --norc", Path.cwd())
    pid = tmp_path / "pid"
    program = f"echo $$ > {pid}; PYTHONPATH=. exec {sys.executable} -m tests.repl.talk"
    tmux.run("send-keys", "-t", "a", "clear; sh -c " + shlex.quote(program), "Enter")
    tmux.wait(lambda seen: "\n›" in seen)
    tmux.run("send-keys", "-t", "a", "half")
    tmux.wait(lambda seen: "› half" in seen)
    os.kill(int(pid.read_text()), number)
    tmux.wait(lambda seen: "Stopped" in seen)
    tmux.run("send-keys", "-t", "a", "echo be''tween", "Enter")
    tmux.wait(lambda seen: "between" in seen)
    tmux.run("send-keys", "-t", "a", "fg", "Enter")
    tmux.wait(lambda seen: seen.rfind("› half") > seen.find("between") >= 0)
    tmux.run("send-keys", "-t", "a", " typed", "Enter")
    page = tmux.wait(lambda seen: "You said: half typed" in seen and "— 1 step" in seen)
    assert page.count("between") == page.count("You said: half typed") == 1
    assert page.count("› half") == 1 + (number == signal.SIGSTOP), "what a SIGSTOP leaves nobody can take away"


def test_five_megabytes_stream_in_order_below_a_prompt_that_takes_keys(
    tmux: Tmux, shell: Shell, serve: Callable[..., ScriptedServer]
) -> None:
    lines = [f"L{n:05} " + "word " * 13 for n in range(5_000_000 // 73 + 1)]
    blocks = ["\n".join(lines[at : at + 200]) for at in range(0, len(lines), 200)]
    text = "\n\n".join(f"```\n{block}\n```" if n % 2 else block for n, block in enumerate(blocks))
    assert len(text) >= 5_000_000
    serve(reply(text, chunk=4_000), reply("The next answer."))
    shell.introduced()
    env = " ".join(
        f"{k}={shlex.quote(v)}" for k, v in shell.env().items() if k.startswith(("OPENAI", "AGENTSH", "HOME"))
    )
    tmux.start(f"{env} PYTHONPATH={os.getcwd()} exec {sys.executable} -m agentsh new --empty go", shell.cwd)
    tmux.wait(lambda seen: "word word" in seen)
    for typed in ("typed while", "typed while it streams"):
        tmux.run("send-keys", "-t", "a", typed.removeprefix("typed while") or typed)
        tmux.wait(lambda seen, typed=typed: f"\n› {typed}\n" in seen and "— 1 step" not in seen)  # type: ignore[misc]
    tmux.run("send-keys", "-t", "a", "Enter")
    page = tmux.wait(lambda seen: "The next answer." in seen and "— 1 step" in seen, 120)
    assert re.findall(r"L\d{5}", page) == [line[:6] for line in lines]
    assert page.count("word ") + page.count("word\n") == 13 * len(lines)
    assert page.count("› typed while it streams") == page.count("The next answer.") == 1
