"""Lines of styled text: breaking them at words or at the edge, and how wide they are.

They are broken where rich breaks them (a test holds both against each other), at a tenth of the time: most of what a
model writes is plain ASCII, where a column is a character.
"""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells
from rich.style import Style

Run = tuple[str, Style]
Line = list[Run]

_WORD = re.compile(r"\s*\S+\s*")
_TAB = 8


def plain(line: Iterable[Run]) -> str:
    """Return the text alone."""
    return "".join([text for text, _ in line])


def columns(line: Sequence[Run]) -> int:
    """Return how many columns a line takes."""
    text = plain(line)
    return cell_len(text) if "\t" not in text else cell_len(plain(_without_tabs([*line])))


def styled(line: Sequence[Run], style: Style) -> Line:
    """Return a line with a style over what it has."""
    return [(text, own + style) for text, own in line]


def wrap(line: Line, width: int) -> list[Line]:
    """Break a line at words so that each part fits `width` columns; a word that is wider is broken at the edge."""
    text = plain(line)
    if "\t" in text:
        line = _without_tabs(line)
        text = plain(line)
    if len(text) <= width and text.isascii():
        return [line]
    return [_stripped(part) for part in cut(line, _breaks(text, width))]


def fold(line: Line, width: int) -> list[Line]:
    """Break a line at the edge, not at words: spaces of code mean something."""
    text = plain(line)
    if text.isascii():
        return [line] if len(text) <= width else cut(line, range(width, len(text), width))
    if cell_len(text) <= width:
        return [line]
    cuts, at = [], 0
    for part in chop_cells(text, width)[:-1]:
        at += len(part)
        cuts.append(at)
    return cut(line, cuts)


def cut(line: Line, places: Iterable[int]) -> list[Line]:
    """Divide a line at offsets of its text, which ascend."""
    parts: list[Line] = []
    part: Line = []
    runs = iter(line)
    text, style = next(runs, ("", Style.null()))
    at = 0
    for place in places:
        while place - at > len(text):
            part.append((text, style))
            at += len(text)
            text, style = next(runs)
        part.append((text[: place - at], style))
        text, at = text[place - at :], place
        parts.append(part)
        part = []
    return [*parts, [*part, (text, style), *runs]]


def _stripped(line: Line) -> Line:
    """Return a line without the spaces at its end."""
    while line and not (line[-1][0] and not line[-1][0][-1].isspace()):
        text, style = line.pop()
        if bare := text.rstrip():
            line.append((bare, style))
    return line


def _breaks(text: str, width: int) -> list[int]:
    if text.isascii() and text[0] != " ":
        quick = _ascii_breaks(text, width)
        if quick is not None:
            return quick
    found: list[int] = []
    used = 0
    for match in _WORD.finditer(text):
        start, word = match.start(), match[0]
        size = cell_len(word.rstrip())
        if used + size <= width:
            used += cell_len(word)
        elif size > width:
            parts = chop_cells(word, width)
            for part in parts:
                if start:
                    found.append(start)
                start += len(part)
            used = cell_len(parts[-1])
        elif used and start:
            found.append(start)
            used = cell_len(word)
    return found


def _ascii_breaks(text: str, width: int) -> list[int] | None:
    """Return where to break; None where a word is wider than the line."""
    found: list[int] = []
    start, end = 0, len(text)
    while end - start > width:
        edge = start + width
        if text[edge] == " ":
            while edge < end and text[edge] == " ":
                edge += 1
            if edge == end:
                break
            start = edge
        else:
            start = text.rfind(" ", start, edge) + 1
            if not start or (found and start == found[-1]):
                return None
        found.append(start)
    return found


def _without_tabs(line: Line) -> Line:
    done: Line = []
    at = 0
    for text, style in line:
        for n, piece in enumerate(text.split("\t")):
            if n:
                gap = _TAB - at % _TAB
                done.append((" " * gap, style))
                at += gap
            done.append((piece, style))
            at += cell_len(piece)
    return done
