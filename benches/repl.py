"""What sitting in the terminal costs, as ratios in one run: `python benches/repl.py [--quick]` prints Markdown.

agentsh runs on a pseudo terminal against a scripted server, which is a process of its own. What is compared with is
measured in the same run, in turns. Milliseconds belong to one machine and one moment; the ratios travel.
"""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from table import Row, markdown
from terminal import Pty

BIN = Path(sys.executable).parent
READY = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
BARE = """
import os
from prompt_toolkit import PromptSession
PromptSession(message="\u203a ", multiline=True, bottom_toolbar="status").prompt()
"""
IMPORTS = "import prompt_toolkit, rich.console"
FIRST_KEY = "\N{CYRILLIC SMALL LETTER ZHE}"
TOKENS = 10_000
"""Of one answer."""
KEYS = 300
INTERRUPTS = 100
SEED = 20261130
ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\r\x07]")


@contextmanager
def served(place: Path, replies: list[object]) -> Iterator[str]:
    """Run a scripted server; give its URL."""
    script = place / f"script-{len(os.listdir(place))}.json"
    script.write_text(json.dumps(replies))
    argv = [sys.executable, "-m", "agentsh.testing.server", str(script)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def words(n: int, first: int = 0) -> str:
    """Return a text of `n` tokens, most of them prose, some of it a list and some code."""
    found = []
    for k in range(first, first + n):
        end = "\n\n" if k % 120 == 119 else "\n" if k % 40 == 39 else " "
        found.append(f"w{k:06}{end}")
    return "".join(found)


class Bench:
    """A directory to be in, and the sessions that run there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "cwd").mkdir()

    def agentsh(self, url: str) -> Pty:
        env = {**os.environ, "AGENTSH_HOME": str(self.place / "home"), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
        argv = [str(BIN / "agentsh"), "new", "--model", "m", "--mode", "yolo", "--empty"]
        return Pty(argv, env, str(self.place / "cwd"))

    def python(self, code: str) -> Pty:
        return Pty([sys.executable, "-c", code], os.environ, str(self.place / "cwd"))

    def ready(self, terminal: Pty) -> Pty:
        terminal.until(lambda: terminal.sees(READY))
        return terminal


def start(bench: Bench, rounds: int) -> Row:
    """From nothing to a prompt that has echoed a key. The first round makes the bytecode, and does not count."""
    ours, theirs = [], []
    with served(bench.place, []) as url:
        for _ in range(rounds + 1):
            began = time.perf_counter()
            terminal = bench.ready(bench.agentsh(url))
            terminal.type(FIRST_KEY)
            terminal.until(lambda terminal=terminal: terminal.sees(FIRST_KEY))
            ours.append(time.perf_counter() - began)
            terminal.close()
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", IMPORTS], check=True)
            theirs.append(time.perf_counter() - began)
    ratio = statistics.median(a / b for a, b in zip(ours[1:], theirs[1:], strict=True))
    note = f"{statistics.median(ours[1:]) * 1000:.0f} ms"
    return Row("start to a ready prompt", IMPORTS, ratio, 3.0, at_most=True, note=note)


def long_session(bench: Bench, turns: int) -> list[Row]:
    """One session that streams turn after turn: what a token costs at the end, and what is written for it."""
    replies = [{"text": words(TOKENS, n * TOKENS), "chunk": 8} for n in range(turns)]
    costs, written = [], []
    with served(bench.place, replies) as url:
        terminal = bench.ready(bench.agentsh(url))
        for n in range(turns):
            cpu_s, size = terminal.cpu_s(), len(terminal.output)
            terminal.type(f"go {n}\r")
            last = f"w{(n + 1) * TOKENS - 1:06}"
            terminal.until(lambda last=last: terminal.sees(last), 600)
            terminal.until(lambda: not terminal.read(1.0))
            costs.append(terminal.cpu_s() - cpu_s)
            visible = len(ESCAPES.sub(b"", words(TOKENS).encode()))
            written.append((len(terminal.output) - size) / visible)
        terminal.close()
    head, tail = statistics.median(costs[:2] if turns > 3 else costs[:1]), statistics.median(costs[-2:])
    per_thousand = f"{tail / TOKENS * 1e6:.0f} ms CPU per 1,000 tokens at the end, {head / TOKENS * 1e6:.0f} at first"
    return [
        Row(
            f"CPU of a token after {turns * TOKENS:,}",
            "of the first ones",
            tail / head,
            1.25,
            True,
            note=per_thousand,
        ),
        Row("bytes written for an answer", "its visible bytes", max(written), 3.0, at_most=True),
    ]


def echoes(terminal: Pty, keys: int, rng: random.Random) -> list[float]:
    """Type keys that occur nowhere else; return the seconds until each is on the screen."""
    found = []
    for n in range(keys):
        key = chr(0x4E00 + n)  # each a character of its own
        time.sleep(0.0)
        end = time.perf_counter() + rng.uniform(0.03, 0.06)
        while time.perf_counter() < end:
            terminal.read(0.005)
        size, began = len(terminal.output), time.perf_counter()
        terminal.type(key)
        while not terminal.sees(key, max(size - 8, 0)):
            terminal.read(0.05)
        found.append(time.perf_counter() - began)
        if n % 30 == 29:
            terminal.type("\x15")  # Ctrl-U: a line that stays short, as typed ones do
    return found


def keystrokes(bench: Bench, keys: int) -> Row:
    """How long a key takes to be seen while an answer streams at 200 tokens a second, against a bare prompt."""
    rng = random.Random(SEED)
    reply = {"text": words(200 * 60), "chunk": 8, "gap_s": 0.005}
    with served(bench.place, [reply]) as url:
        ours = bench.ready(bench.agentsh(url))
        ours.type("go\r")
        ours.until(lambda: ours.sees("w000100"))
        streaming = echoes(ours, keys, rng)
        still = not ours.sees("w011999")
        ours.close()
    bare = bench.ready(bench.python(BARE))
    alone = echoes(bare, keys, rng)
    bare.close()
    mine, theirs = (sorted(times)[int(len(times) * 0.95)] for times in (streaming, alone))
    note = f"{mine * 1000:.1f} ms against {theirs * 1000:.1f}" + ("" if still else "; the answer ended meanwhile")
    return Row("key to echo at 200 tokens/s, 95th percentile", "a bare prompt", mine / theirs, 3.0, True, note=note)


def interrupts(bench: Bench, times: int) -> Row:
    """The longest time from Ctrl-C to a prompt at rest, at random moments of answers and of commands."""
    rng = random.Random(SEED)
    answer = {"text": words(2_000), "chunk": 8, "gap_s": 0.005}
    command = {"text": "I run it.", "calls": [{"name": "shell", "arguments": {"command": "seq 50; sleep 60"}}]}
    took = []
    with served(bench.place, [answer if n % 2 else command for n in range(times)]) as url:
        terminal = bench.ready(bench.agentsh(url))
        for n in range(times):
            size = len(terminal.output)
            terminal.type(f"go {n}\r")
            terminal.until(lambda size=size, n=n: terminal.sees(f"go {n}", size))
            end = time.perf_counter() + rng.uniform(0.05, 1.0)
            while time.perf_counter() < end:
                terminal.read(0.01)
            size, began = len(terminal.output), time.perf_counter()
            terminal.type("\x03")
            terminal.until(lambda size=size: terminal.sees("nterrupted", size))
            terminal.until(lambda size=size: terminal.sees(" step", size))  # the turn is over: what is typed is sent
            took.append(time.perf_counter() - began)
        terminal.close()
    note = f"median {statistics.median(took) * 1000:.0f} ms, {times} times"
    return Row("interrupt to prompt, the longest", "absolute", max(took) * 1000, 500, True, unit=" ms", note=note)


def main(quick: bool) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as text:
        # Else, with PYTHONDONTWRITEBYTECODE, ours alone would be compiled each time: pip compiles what it installs.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(text) / "bytecode")
        bench = Bench(Path(text))
        rows = [
            start(bench, 5 if quick else 11),
            *long_session(bench, 3 if quick else 10),
            keystrokes(bench, KEYS // (5 if quick else 1)),
            interrupts(bench, 10 if quick else INTERRUPTS),
        ]
    print(markdown(rows))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
