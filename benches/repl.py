"""What sitting in the terminal costs, as ratios in one run: `python benches/repl.py [--quick]` prints Markdown.

agentsh runs on a pseudo terminal against a scripted server, which is a process of its own. What is compared with is
measured in the same run, in turns. Milliseconds belong to one machine and one moment; the ratios travel.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from interrupting import interrupts
from sitting import Bench, served, words
from table import Row, markdown
from terminal import Pty

BARE = """
import os
from prompt_toolkit import PromptSession
PromptSession(message="\u203a ", multiline=True, bottom_toolbar="status").prompt()
"""
IMPORTS = "import prompt_toolkit, rich.console"
FIRST_KEY = "\N{CYRILLIC SMALL LETTER ZHE}"
TOKENS = 10_000
"""Of one answer."""
TURNS = 10
KEYS = 300
INTERRUPTS = 100
SEED = 20261130


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
        terminal = bench.ready(bench.agentsh(url, "--budget", "5000000"))
        for n in range(turns):
            cpu_s, size = terminal.cpu_s(), len(terminal.output)
            terminal.type(f"go {n}\r")
            last = f"w{(n + 1) * TOKENS - 1:06}"
            terminal.until(lambda last=last, size=size: terminal.sees(last, size), 600)
            terminal.until(lambda size=size: terminal.sees(" step", size))
            terminal.until(lambda: not terminal.read(1.0))
            costs.append(terminal.cpu_s() - cpu_s)
            written.append((len(terminal.output) - size) / len(words(TOKENS, n * TOKENS).encode()))
        terminal.close()
    head, tail = statistics.median(costs[:2] if turns > 3 else costs[:1]), statistics.median(costs[-2:])
    each = " ".join(f"{cost / TOKENS * 1e6:.0f}" for cost in costs)
    return [
        Row(
            f"CPU of a token after {turns * TOKENS:,}",
            "of the first ones",
            tail / head,
            1.25,
            True,
            note=f"ms of CPU per 1,000 tokens, by 10,000: {each}",
        ),
        Row("bytes written for an answer", "its bytes", max(written), 3.0, at_most=True),
    ]


def echoes(terminal: Pty, keys: int, rng: random.Random, first: int) -> list[float]:
    """Type keys that occur nowhere else; return the seconds until each is on the screen."""
    found = []
    for n in range(first, first + keys):
        key = chr(0x4E00 + n)  # each a character of its own
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
    """How long a key takes to be seen while an answer streams at 200 tokens a second, against a bare prompt.

    In turns of thirty keys, so that what else the machine does meets both alike; the bare prompt is alone meanwhile.
    """
    rng = random.Random(SEED)
    rounds = keys // 30
    reply = {"text": words(200 * 30), "chunk": 8, "gap_s": 0.005}
    streaming: list[float] = []
    alone: list[float] = []
    with served(bench.place, [reply] * rounds) as url:
        ours, bare = bench.ready(bench.agentsh(url)), bench.ready(bench.python(BARE))
        for n in range(rounds):
            size = len(ours.output)
            ours.type(f"go {n}\r")
            ours.until(lambda size=size: ours.sees("w000100", size))
            streaming += echoes(ours, 30, rng, n * 30)
            if ours.sees("w005999", size):
                raise SystemExit("the answer ended before the keys did")
            ours.type("\x03")
            ours.until(lambda size=size: ours.sees(" step", size))
            alone += echoes(bare, 30, rng, n * 30)
        ours.close()
        bare.close()
    mine, theirs = (sorted(times)[int(len(times) * 0.95)] for times in (streaming, alone))
    note = f"{mine * 1000:.1f} ms against {theirs * 1000:.1f}, {len(streaming)} keys each"
    return Row("key to echo at 200 tokens/s, 95th percentile", "a bare prompt", mine / theirs, 3.0, True, note=note)


def main(quick: bool) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as text:
        # Else, with PYTHONDONTWRITEBYTECODE, ours alone would be compiled each time: pip compiles what it installs.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(text) / "bytecode")
        bench = Bench(Path(text))
        rows = [
            start(bench, 5 if quick else 11),
            *long_session(bench, 3 if quick else TURNS),
            keystrokes(bench, KEYS // (5 if quick else 1)),
            *interrupts(bench, 14 if quick else INTERRUPTS),
        ]
    print(markdown(rows))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
