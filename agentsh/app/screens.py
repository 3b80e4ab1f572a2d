"""Which renderer watches, and with which colours: from the terminal and the environment to a renderer."""

import os
from typing import TYPE_CHECKING, BinaryIO, TextIO

from agentsh.app.width import columns_from
from agentsh.app.wiring import RENDERERS, load
from agentsh.base.palette import Palette
from agentsh.ports.renderer import LiveRenderer, Renderer
from agentsh.ports.texts import Texts

if TYPE_CHECKING:
    from agentsh.render.live import Region

PIPE_COLUMNS = 80


def colours(out: TextIO) -> bool:
    """Tell whether to use colours: on a terminal that is not dumb, unless NO_COLOR is set."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "")


def columns(out: TextIO) -> int | None:
    """Return the width to write for: None to follow the terminal, COLUMNS or 80 where there is none."""
    return None if out.isatty() else columns_from(os.environ, PIPE_COLUMNS)


def screen_renderer(
    out: TextIO,
    texts: Texts,
    *,
    live: bool,
    plain: bool = False,
    region: "Region | None" = None,
    palette: Palette | None = None,
    full: bool = False,
) -> LiveRenderer:
    """Return the renderer of the scrollback. live: with a region below it for what is not finished.

    plain: no colours, whatever the terminal. palette: the colours; None for those of the terminal.
    region: where what is not finished is drawn, if not by the renderer. full: nothing that is long is folded.
    """
    colour = colours(out) and not plain
    make = load(RENDERERS["screen"])
    screen: LiveRenderer = make(
        out, width=columns(out), colour=colour, live=live, texts=texts, region=region, palette=palette, full=full
    )
    return screen


def json_renderer(out: BinaryIO) -> Renderer:
    """Return the renderer that writes each event's line as it lies in the log."""
    renderer: Renderer = load(RENDERERS["json"])(out)
    return renderer


def document_renderer(form: str, out: BinaryIO, texts: Texts) -> Renderer:
    """Return the renderer that writes a session to a file. form: `md`, `html` or `jsonl`."""
    if form == "jsonl":
        return json_renderer(out)
    renderer: Renderer = load(RENDERERS[form])(out, texts)
    return renderer


def final_renderer(out: TextIO, err: TextIO, texts: Texts) -> Renderer:
    """Return the renderer that writes the final answer alone; what went wrong goes to `err`."""
    renderer: Renderer = load(RENDERERS["final"])(out, err, texts)
    return renderer
