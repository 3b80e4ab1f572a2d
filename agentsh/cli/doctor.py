"""`agentsh doctor`: look at everything around the sessions, and say what to do about what is wrong."""

import os
import sys
from pathlib import Path

from agentsh.app.checkup import checkup
from agentsh.app.paths import find_homes
from agentsh.base.text import clean
from agentsh.cli.guard import json_line
from agentsh.cli.progress import Bar

COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


def run(*, as_json: bool) -> int:
    """Print a line for each finding; return 0 where nothing failed."""
    failed = False
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    bar = Bar("reading the sessions:")
    for line in checkup(find_homes(Path.cwd(), os.environ), os.environ, bar):
        bar.wipe()
        failed = failed or line.state == "fail"
        if as_json:
            print(json_line(line._asdict()), flush=True)
            continue
        state = f"{line.state:<5}"
        if colour:
            state = f"\x1b[{COLOURS[line.state]}m{state}\x1b[0m"
        print(f"{state} {line.subject:<16} {clean(line.text)}", flush=True)
        if line.do:
            print(f"      → {clean(line.do)}", flush=True)
    return 1 if failed else 0
