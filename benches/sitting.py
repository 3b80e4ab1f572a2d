"""What the benches of the REPL share: a scripted server, what it says, and sessions on a pseudo terminal."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from terminal import Pty

BIN = Path(sys.executable).parent
READY = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"


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
    """Return a text of `n` tokens as models write: most of it prose, some lists, tables and code."""
    found: list[str] = []
    for start in range(first, first + n, 40):
        some = [f"w{k:06}" for k in range(start, min(start + 40, first + n))]
        kind = start // 40 % 8
        if kind == 5:
            found.append("\n".join(f"- {' '.join(some[k : k + 8])}" for k in range(0, len(some), 8)))
        elif kind == 6:
            rows = (f"| {' | '.join(some[k : k + 4])} |" for k in range(0, len(some), 4))
            found.append("| one | two | three | four |\n|---|---|--:|---|\n" + "\n".join(rows))
        elif kind == 7:
            lines = (f"    {some[k]} = call({', '.join(some[k + 1 : k + 4])})" for k in range(0, len(some), 4))
            found.append("```python\ndef run():\n" + "\n".join(lines) + "\n```")
        else:
            found.append(" ".join(some))
    return "\n\n".join(found)


class Bench:
    """A directory to be in, and the sessions that run there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "cwd").mkdir()

    def agentsh(self, url: str, *more: str) -> Pty:
        env = {**os.environ, "AGENTSH_HOME": str(self.place / "home"), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
        argv = [str(BIN / "agentsh"), "new", "--model", "m", "--mode", "yolo", "--empty", *more]
        return Pty(argv, env, str(self.place / "cwd"))

    def python(self, code: str) -> Pty:
        return Pty([sys.executable, "-c", code], os.environ, str(self.place / "cwd"))

    def ready(self, terminal: Pty) -> Pty:
        terminal.until(lambda: terminal.sees(READY))
        return terminal
