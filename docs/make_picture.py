"""Draws docs/session.svg from a real run: `python docs/make_picture.py` (with the extra `test`).

Starts `agentsh new --model demo` in a home and a directory of its own, then replays the session in a pseudo terminal
and draws what it wrote.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pexpect
from rich.console import Console
from rich.text import Text

COLUMNS = 92
PROMPT = "Create a small project and run its tests."
TARGET = Path(__file__).with_name("session.svg")
FIRST, LAST = 14, 30
"""Lines of the beginning and of the end; what lies between is left out."""


def main() -> None:
    """Run, replay, draw."""
    agentsh = str(Path(sys.executable).parent / "agentsh")
    with tempfile.TemporaryDirectory() as place:
        cwd = Path(place) / "shop"
        cwd.mkdir()
        env = {**os.environ, "AGENTSH_HOME": str(Path(place) / "home"), "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)
        words = [agentsh, "new", PROMPT, "--model", "demo", "--empty", "-p", "--mode", "auto"]
        subprocess.run(words, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)
        shown = pexpect.run(
            f"{agentsh} replay --last", cwd=str(cwd), env=env, dimensions=(50, COLUMNS), timeout=30, encoding="utf-8"
        )
    lines = shown.replace("\r\n", "\n").rstrip().split("\n")
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115 - for the run
    some = [*lines[:FIRST], "", "  ⋮", "", *lines[-LAST:]]
    console.print(Text.from_ansi("\n".join(["$ agentsh new --model demo", "", *some])))
    svg = console.export_svg(title="agentsh")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture must not ask anybody for a font
    TARGET.write_text(svg, encoding="utf-8")
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes, {len(lines)} lines replayed")


if __name__ == "__main__":
    main()
