"""Draws docs/screens/*.svg from real runs: `python docs/make_screens.py` (with the extra `test`).

Each scene starts `agentsh new --model demo` on a pseudo terminal, in a home and a directory of its own, types what a
person would, and draws what an emulator shows then: wide and narrow, on a dark and on a light background.
"""

import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TARGET = Path(__file__).with_name("screens")
PROMPT = "Create a small project and run its tests."
ANSI: list[tuple[int, int, int]] = [(0, 0, 0)] * 8  # the palettes use none of the sixteen
THEMES = {
    "dark": TerminalTheme((30, 30, 30), (220, 220, 220), ANSI, ANSI),
    "light": TerminalTheme((255, 255, 255), (30, 30, 30), ANSI, ANSI),
}
BACKGROUNDS = {"dark": "15;0", "light": "0;15"}
LIMIT_S = 30.0


@dataclass(frozen=True)
class Scene:
    """What is typed, and what is waited for before each: the first wait is for the prompt."""

    name: str
    columns: int
    rows: int
    words: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    known: bool = True
    """Whether the user has been here before."""


SCENES = (
    Scene("turn", 100, 34, ("--empty", PROMPT), ((r"— \d+ steps", "/re"), ("/rename", ""))),
    Scene("approval", 100, 22, ("--in-place", "--mode", "ask", PROMPT), (("no, and say why", ""),)),
    Scene("approval-narrow", 40, 26, ("--in-place", "--mode", "ask", PROMPT), (("no, and say why", ""),)),
    Scene("menu-narrow", 40, 20, ("--empty", PROMPT), ((r"— \d+ steps", "/mode\r"), ("never asks", ""))),
    Scene("output", 100, 30, ("--empty", PROMPT), ((r"— \d+ steps", "\x0f"), ("● shell .*", ""))),
    Scene("first-run", 80, 24, ("--empty",), ((r"Which\? ", "1\r"), ("(?m)^›", "")), known=False),
)


def main() -> None:
    """Run and draw each scene on both backgrounds."""
    TARGET.mkdir(exist_ok=True)
    for scene in SCENES:
        for background in THEMES:
            screen = run(scene, background)
            file = TARGET / f"{scene.name}-{background}.svg"
            file.write_text(drawn(screen, scene.columns, background), encoding="utf-8")
            print(f"{file}: {file.stat().st_size:,} bytes")


def run(scene: Scene, background: str) -> pyte.Screen:
    """Return the screen at the end of a scene."""
    with tempfile.TemporaryDirectory() as place:
        cwd = Path(place) / "shop"
        cwd.mkdir()
        if scene.known:
            remembered = Path(place) / ".agentsh" / "first-run.json"
            remembered.parent.mkdir()
            remembered.write_text('{"introduced": true}', encoding="utf-8")
        env = {**os.environ, "HOME": place, "TERM": "xterm-256color", "COLORFGBG": BACKGROUNDS[background]}
        env = {name: value for name, value in env.items() if not name.startswith(("AGENTSH_", "OPENAI_"))}
        for name in ("NO_COLOR", "COLORTERM", "TMUX", *(n for n in env if n.endswith("_API_KEY"))):
            env.pop(name, None)
        words = ["-m", "agentsh", "new", *(["--model", "demo"] if scene.known else []), *scene.words]
        size = (scene.rows, scene.columns)
        child = pexpect.spawn(sys.executable, words, cwd=str(cwd), env=env, dimensions=size, encoding="utf-8")
        screen = pyte.Screen(scene.columns, scene.rows)
        stream = pyte.Stream(screen)
        for wanted, typed in scene.steps:
            follow(child, stream, screen, wanted)
            child.send(typed)
        child.close(force=True)
        if place in "\n".join(screen.display):
            raise SystemExit(f"{scene.name}: a path of this machine is to be seen")
    return screen


def follow(child: "pexpect.spawn[str]", stream: pyte.Stream, screen: pyte.Screen, wanted: str) -> None:
    """Read until something is to be seen, and then until nothing has come for half a second."""
    end, quiet_s = time.monotonic() + LIMIT_S, 0.0
    while not (re.search(wanted, "\n".join(screen.display)) and quiet_s >= 0.5):
        if time.monotonic() > end:
            raise SystemExit("\n".join([*screen.display, f"{wanted} did not come"]))
        try:
            stream.feed(child.read_nonblocking(65536, 0.1))
            quiet_s = 0.0
        except pexpect.TIMEOUT:
            quiet_s += 0.1


def drawn(screen: pyte.Screen, columns: int, background: str) -> str:
    """Return the picture of a screen."""
    console = Console(record=True, width=columns, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115 - for the run
    rows = [row(screen, y) for y in range(screen.lines)]
    while rows and not rows[-1].plain.strip():
        rows.pop()
    for text in rows:
        console.print(text, no_wrap=True, overflow="crop")
    svg = console.export_svg(title="agentsh", theme=THEMES[background])
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture must not ask anybody for a font


def row(screen: pyte.Screen, y: int) -> Text:
    """Return a row in the styles that it has."""
    text = Text()
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    for style, some in groupby(cells, key=styled):
        text.append("".join(cell.data for cell in some), style)
    text.rstrip()
    return text


def styled(cell: pyte.screens.Char) -> Style:
    """Return the style of a cell."""
    return Style(
        color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse
    )


def colour(name: str) -> str | None:
    """Return a colour of the emulator as rich names it; it has the 256 in hexadecimal."""
    if name == "default":
        return None
    return f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else {"brown": "yellow"}.get(name, name)


if __name__ == "__main__":
    main()
