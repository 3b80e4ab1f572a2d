"""From rich renderables to finished lines of a terminal: the one place where text becomes bytes to show."""

import io
from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.color import Color, ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from agentsh.base.palette import BASE, Palette
from agentsh.base.text import clean

MIN_WIDTH = 8


class Painter:
    """Lays out at a width. colour=False: no SGR at all. palette: the colours; None for the terminal's own sixteen."""

    def __init__(self, *, colour: bool, palette: Palette | None = None) -> None:
        self._consoles: dict[int, Console] = {}
        self._styles: dict[Style, Style] = {}
        self.use(colour=colour, palette=palette)

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        """Paint what comes from now on like this."""
        self.colour = colour
        self._palette = palette
        self._styles.clear()

    def rows(self, what: RenderableType, width: int) -> list[str]:
        """Return the lines of a renderable, wrapped to `width` columns."""
        console = self.console(max(width, MIN_WIDTH))
        lines = console.render_lines(what, console.options, pad=False)
        return [self._row(line) for line in lines]

    def row(self, text: Text, width: int) -> str:
        """Return a text as exactly one line, cut with `…` where it is too long."""
        text = text.copy()
        text.truncate(max(width, MIN_WIDTH), overflow="ellipsis")
        text.no_wrap, text.overflow = True, "ignore"
        return (self.rows(text, max(width, MIN_WIDTH)) or [""])[0]

    def console(self, width: int) -> Console:
        """Return the laying-out console of a width."""
        console = self._consoles.get(width)
        if console is None:
            if len(self._consoles) > 16:  # a window that is being dragged asks for every width once
                self._consoles.clear()
            console = self._consoles[width] = Console(
                file=io.StringIO(),
                width=width,
                height=100,
                force_terminal=True,
                color_system="standard",  # what is laid out has all styles; `_styled` decides
                legacy_windows=False,
                markup=False,
                emoji=False,
                highlight=False,
            )
        return console

    def _row(self, segments: Iterable[Segment]) -> str:
        kept = [(text, style) for text, style, control in Segment.simplify(segments) if text and not control]
        while kept:  # no spaces at the end of a line: copying stays clean, and they cost bytes
            text, style = kept[-1]
            if bare := text.rstrip(" "):
                kept[-1] = (bare, style)
                break
            kept.pop()
        return "".join(self._styled(text, style) for text, style in kept)

    def _styled(self, text: str, style: Style | None) -> str:
        # The last guard: whatever a parser made of its input (entities, for one), no control gets through.
        safe = text if text.isprintable() else clean(text).replace("\n", " ").replace("\t", " ")
        if not self.colour or not style or (not safe.strip() and not _marks_spaces(style)):
            return safe
        if self._palette is None:
            return style.render(safe, color_system=ColorSystem.STANDARD)
        mapped = self._styles.get(style)
        if mapped is None:
            mapped = self._styles[style] = _mapped(style, self._palette)
        return mapped.render(safe, color_system=ColorSystem.EIGHT_BIT)


def _mapped(style: Style, palette: Palette) -> Style:
    """Return a style in the colours of a palette: faintness becomes a grey, or goes where there is a colour."""
    colour, ground = _of(style.color, palette), _of(style.bgcolor, palette)
    if style.dim and colour is None:
        colour = Color.from_ansi(palette.dim)
    return style + Style(color=colour, bgcolor=ground, dim=False if style.dim else None)


def _of(colour: Color | None, palette: Palette) -> Color | None:
    number = None if colour is None else colour.number
    return colour if number is None or number >= BASE else Color.from_ansi(palette.number(number))


def _marks_spaces(style: Style) -> bool:
    return bool(style.bgcolor or style.underline or style.reverse or style.strike)


def fit(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, `…` where cut; a wide character is never halved."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


def shown(text: str) -> str:
    """Return text of a fact ready for laying out: no controls, tabs as spaces."""
    return clean(text).expandtabs(8)
