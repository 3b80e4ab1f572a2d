"""Rows that are laid out already, as a part of a prompt's layout."""

import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout.controls import GetLinePrefixCallable, UIContent, UIControl
from prompt_toolkit.utils import get_cwidth

Row = str | StyleAndTextTuples
"""A row with SGR sequences, as the renderer makes them, or one in fragments."""


class Rows(UIControl):
    """Shows rows one below the other, none wrapped. rows: asked at each drawing. room: how many may be shown.

    drawn: what was shown at the last drawing. since_s: since when each of these rows has stood as it is.
    """

    def __init__(self, rows: Callable[[], Sequence[Row]], room: Callable[[], int]) -> None:
        self.drawn: list[Row] = []
        self.since_s: list[float] = []
        self._rows = rows
        self._room = room

    def create_content(self, width: int, height: int) -> UIContent:
        """Return the newest rows that there is room for."""
        rows, now_s = self.shown(), time.monotonic()
        same = 0
        while same < min(len(rows), len(self.drawn)) and rows[same] == self.drawn[same]:
            same += 1
        self.drawn, self.since_s = rows, self.since_s[:same] + [now_s] * (len(rows) - same)
        return UIContent(get_line=lambda n: _fragments(rows[n]), line_count=len(rows), show_cursor=False)

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: GetLinePrefixCallable | None
    ) -> int | None:
        """One line each."""
        return len(self.shown())

    def is_focusable(self) -> bool:
        """Never."""
        return False

    def forget(self, count: int | None = None) -> None:
        """Forget the first rows that were drawn, or all."""
        del self.drawn[:count], self.since_s[:count]

    def settled(self, age_s: float) -> int:
        """Return how many rows, from the first, have stood as they are for this long."""
        now_s = time.monotonic()
        return next((n for n, since_s in enumerate(self.since_s) if now_s - since_s < age_s), len(self.since_s))

    def shown(self) -> list[Row]:
        """Return the rows as they would be drawn now."""
        return list(self._rows())[-max(self._room(), 1) :]


def wrapped(text: str, columns: int) -> list[str]:
    """Return a line of text in rows, broken at spaces where it can be; what goes on is set in as the line is."""
    lead = text[: len(text) - len(text.lstrip(" "))][: columns // 2]
    rows, row = [], ""
    for word in re.findall(r" *[^ ]+", text):
        if row and get_cwidth(row + word) > columns:
            rows.append(row)
            row, word = "", lead + word.lstrip(" ")
        while get_cwidth(row + word) > columns:
            cut = next(n for n in range(1, len(word) + 1) if get_cwidth(row + word[:n]) > columns) - 1
            rows.append(row + word[: max(cut, 1)])
            row, word = "", lead + word[max(cut, 1) :]
        row += word
    return [*rows, row] if row or not rows else rows


def edged(text: str, columns: int) -> list[str]:
    """Return a line of text in rows, broken at the edge: spaces of code and of commands mean something."""
    rows, row, used = [], "", 0
    for char in text:
        size = get_cwidth(char)
        if used + size > columns:
            rows.append(row)
            row, used = "", 0
        row += char
        used += size
    return [*rows, row]


def cut(row: str, columns: int) -> str:
    """Return a row that fits, with `…` at its end where it was longer."""
    if get_cwidth(row) <= columns:
        return row
    kept, used = [], 1
    for char in row:
        used += get_cwidth(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…" if columns > 0 else ""


def _fragments(row: Row) -> StyleAndTextTuples:
    return _parsed(row) if isinstance(row, str) else row


@lru_cache(maxsize=64)
def _parsed(row: str) -> StyleAndTextTuples:
    return to_formatted_text(ANSI(row))
