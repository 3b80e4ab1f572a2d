"""The live region: a few lines below the scrollback that are drawn over and taken away, never left behind.

The cursor rests, hidden, at the start of the region's first line. A terminal keeps it on that line when its window
changes, whether it wraps old lines anew or not, so that erasing from there down never takes or leaves a line.
"""

import re
from collections.abc import Sequence
from typing import Protocol
from unicodedata import east_asian_width

from rich.cells import cell_len

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
ERASE_DOWN, ERASE_LINE = "\x1b[J", "\x1b[K"
ERASE_ALL = "\r\x1b[C\x1b[J\x1b[1K\r"
"""Erase from this line down, in two parts: at the top left corner tmux would first copy the screen to its history."""
_SGR = re.compile("\x1b\\[[0-9;]*m")


class Region(Protocol):
    """Where live rows are drawn. What a method returns is for the caller to write.

    margin: columns at the right that rows must leave free.
    """

    margin: int

    def erase(self) -> str:
        """Take the rows away, since finished lines follow."""
        ...

    def leave(self) -> str:
        """Take the rows away for good, or for as long as somebody else has the terminal."""
        ...

    def draw(self, rows: Sequence[str], width: int) -> str:
        """Show `rows`, each within the margin."""
        ...


class LiveRegion:
    """Keeps what is drawn; each method returns what to write."""

    margin = 1
    """The cursor comes to stand behind a row, and must not be on the next one by that."""

    def __init__(self) -> None:
        self._drawn: list[str] = []
        self._width = 0
        self._hidden = False

    def erase(self) -> str:
        """Take the region away; the cursor is then where the next line of the scrollback belongs."""
        if not self._drawn:
            return ""
        self._drawn = []
        return ERASE_ALL

    def leave(self) -> str:
        """Take the region away and show the cursor again."""
        show, self._hidden = SHOW if self._hidden else "", False
        return self.erase() + show

    def draw(self, rows: Sequence[str], width: int) -> str:
        """Show `rows`, each shorter than the terminal is wide; write only what has changed."""
        rows = list(rows)
        if rows == self._drawn and width == self._width:
            return ""
        if not rows:
            return self.erase()
        again = self.erase() if width != self._width else ""
        old, self._drawn, self._width = self._drawn, rows, width
        hide, self._hidden = "" if self._hidden else HIDE, True
        return again + hide + (_change(old, rows) if old and not again else _all(rows))


def _all(rows: Sequence[str]) -> str:
    return "\n".join(rows) + _home(len(rows) - 1)


def _home(up: int) -> str:
    return "\r" + (f"\x1b[{up}A" if up else "")


def _down(rows: int) -> str:
    return f"\x1b[{rows}B" if rows else ""


def _change(old: Sequence[str], new: Sequence[str]) -> str:
    """Return what turns the old rows into the new, the cursor on the first before and after."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if same == len(new):  # only fewer rows than before
        return _down(same) + ERASE_DOWN + _home(same)
    if same == len(old):  # only more rows: a line feed makes room where moving down would not
        return _down(same - 1) + "".join("\n" + row for row in new[same:]) + _home(len(new) - 1)
    parts = [_down(same), _rewrite(old[same], new[same])]
    parts += ["\n" + new[n] + (ERASE_LINE if n < len(old) else "") for n in range(same + 1, len(new))]
    if len(new) < len(old):
        parts.append(ERASE_DOWN)
    return "".join(parts) + _home(len(new) - 1)


def _rewrite(old: str, new: str) -> str:
    """Return what turns one row into another: only its end where the row has grown.

    Every styled span of a row is closed within it, so the end can be written alone. It must not start with a
    character that could join the one before it.
    """
    end = new[len(old) :]
    if old and end and new.startswith(old) and (end[0].isascii() or east_asian_width(end[0]) == "W"):
        return f"\x1b[{cell_len(_SGR.sub('', old))}C{end}"
    return new + ERASE_LINE
