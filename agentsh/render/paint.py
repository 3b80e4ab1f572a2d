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
from agentsh.render.runs import Line

MIN_WIDTH = 8
_NULL = Style.null()


class Painter:
    """Lays out at a width. colour=False: no SGR at all. palette: the colours; None for the terminal's own sixteen."""

    def __init__(self, *, colour: bool, palette: Palette | None = None) -> None:
        self._consoles: dict[int, Console] = {}
        self._around: dict[Style, tuple[str, str]] = {}
        self.use(colour=colour, palette=palette)

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        """Paint what comes from now on like this."""
        self.colour = colour
        self._palette = palette
        self._around.clear()

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

    def line(self, runs: Line) -> str:
        """Return one line, which fits already. No spaces at its end: copying stays clean, and they cost bytes."""
        if not self.colour:
            return _safe("".join([text for text, _ in runs])).rstrip(" ")
        kept = [(text, style) for text, style in runs if text]
        while kept:
            text, style = kept[-1]
            if bare := text.rstrip(" "):
                kept[-1] = (bare, style)
                break
            kept.pop()
        parts: list[str] = []
        n = 0
        while n < len(kept):
            text, style = kept[n]
            n += 1
            while n < len(kept) and kept[n][1] == style:
                text += kept[n][0]
                n += 1
            parts.append(self._styled(text, style))
        return "".join(parts)

    def _row(self, segments: Iterable[Segment]) -> str:
        return self.line([(text, style or _NULL) for text, style, control in segments if not control])

    def _styled(self, text: str, style: Style) -> str:
        safe = _safe(text)
        if not style or (not safe.strip() and not _marks_spaces(style)):
            return safe
        around = self._around.get(style)
        if around is None:
            palette = self._palette
            shown = style if palette is None else _mapped(style, palette)
            system = ColorSystem.STANDARD if palette is None else ColorSystem.EIGHT_BIT
            before, _, after = shown.render("x", color_system=system).partition("x")
            around = self._around[style] = before, after
        return around[0] + safe + around[1]


def _safe(text: str) -> str:
    # The last guard: whatever a parser made of its input (entities, for one), no control gets through.
    return text if text.isprintable() else clean(text).replace("\n", " ").replace("\t", " ")


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
