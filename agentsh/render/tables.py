"""Tables: columns as wide as what is in them where that fits, else narrower, else each row as a list of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentsh.render import theme
from agentsh.render.runs import Line, columns, styled, wrap

Align = Literal["left", "center", "right"]
Cell = list[Line]

GAP = 3
MIN_COLUMNS = 6
"""A column that would be narrower than this, and than what is in it, is not read but deciphered."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a table is laid out. widths: columns of each; none where its rows become lists."""

    widths: tuple[int, ...]


def sizes(head: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int) -> Sizes:
    """Return the layout for a table that may take `width` columns."""
    natural = [max([1, *map(columns, cell)]) for cell in head]
    for row in rows:
        for n, cell in enumerate(row[: len(natural)]):
            natural[n] = max([natural[n], *map(columns, cell)])
    room = width - GAP * (len(natural) - 1)
    if sum(natural) <= room:
        return Sizes(tuple(natural))
    most = max((cap for cap in range(1, max(room, 1)) if sum(min(size, cap) for size in natural) <= room), default=0)
    if most < MIN_COLUMNS:
        return Sizes(())
    narrow = [min(size, most) for size in natural]
    left = room - sum(narrow)
    for n, size in enumerate(natural):
        if left and size > most:
            narrow[n] += 1
            left -= 1
    return Sizes(tuple(narrow))


def grown(how: Sizes, cells: Sequence[Cell], width: int) -> Sizes:
    """Return the layout for a later row, with wider columns where there is room for what it holds."""
    needed = [max([size, *map(columns, cell)]) for size, cell in zip(how.widths, cells, strict=False)]
    fits = sum(needed) + GAP * (len(needed) - 1) <= width
    return Sizes(tuple(needed)) if fits and len(needed) == len(how.widths) else how


def head_lines(head: Sequence[Cell], aligns: Sequence[Align], how: Sizes) -> list[Line]:
    """Return the line of names and the rule below it; nothing for rows that become lists: each names its cells."""
    if not how.widths:
        return []
    bold = [[styled(line, theme.BOLD) for line in cell] for cell in head]
    return [
        *_row(bold, aligns, how.widths),
        [("─" * (sum(how.widths) + GAP * (len(how.widths) - 1)), theme.DIM)],
    ]


def row_lines(
    head: Sequence[Cell], cells: Sequence[Cell], aligns: Sequence[Align], how: Sizes, width: int
) -> list[Line]:
    """Return the lines of one row."""
    if how.widths:
        return _row(cells, aligns, how.widths)
    lines: list[Line] = []
    for name, cell in zip(head, cells, strict=False):
        label = [*styled(name[0] if name else [], theme.BOLD), (": ", theme.DIM)] if name and name[0] else []
        first, *more = cell or [[]]
        for n, line in enumerate([[*label, *first], *more]):
            inner = wrap(line, width if n == 0 else max(width - 2, 1))
            lines += [inner[0] if n == 0 else [("  ", theme.PLAIN), *inner[0]]]
            rest = [run for part in inner[1:] for run in part]
            if rest:
                lines += [[("  ", theme.PLAIN), *part] for part in wrap(rest, max(width - 2, 1))]
    return lines


def _row(cells: Sequence[Cell], aligns: Sequence[Align], widths: Sequence[int]) -> list[Line]:
    parts = [[part for line in cell for part in wrap(line, size)] for cell, size in zip(cells, widths, strict=False)]
    lines: list[Line] = []
    for n in range(max([1, *map(len, parts)])):
        line: Line = []
        blank = 0
        for part, size, align in zip(parts, widths, aligns, strict=False):
            own = part[n] if n < len(part) else []
            free = max(size - columns(own), 0)
            before = free if align == "right" else free // 2 if align == "center" else 0
            line.append((" " * (blank + before), theme.PLAIN))
            line += own
            blank = free - before + GAP
        lines.append(line)
    return lines
