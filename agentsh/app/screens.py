"""Which renderer watches, and with which colours: from the terminal and the environment to a renderer."""

import os
from typing import TextIO, cast

from agentsh.app.wiring import RENDERERS, load
from agentsh.ports.renderer import Renderer
from agentsh.ports.texts import Texts

PIPE_COLUMNS = 80


def colours(out: TextIO) -> bool:
    """Tell whether to use colours: on a terminal that is not dumb, unless NO_COLOR is set."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "")


def columns(out: TextIO) -> int | None:
    """Return the width to write for: None to follow the terminal, COLUMNS or 80 where there is none."""
    if out.isatty():
        return None
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) >= 20 else PIPE_COLUMNS


def screen_renderer(out: TextIO, texts: Texts, *, live: bool, plain: bool = False) -> Renderer:
    """Return the renderer of the scrollback. live: with a region below it for what is not finished.

    plain: no colours, whatever the terminal.
    """
    colour = colours(out) and not plain
    return cast(Renderer, load(RENDERERS["screen"])(out, width=columns(out), colour=colour, live=live, texts=texts))
