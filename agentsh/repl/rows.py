"""Rows that are laid out already, as a part of a prompt's layout."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout.controls import GetLinePrefixCallable, UIContent, UIControl

Row = str | StyleAndTextTuples
"""A row with SGR sequences, as the renderer makes them, or one in fragments."""


class Rows(UIControl):
    """Shows rows one below the other, none wrapped. rows: asked at each drawing. room: how many may be shown.

    drawn: what was shown at the last drawing.
    """

    def __init__(self, rows: Callable[[], Sequence[Row]], room: Callable[[], int]) -> None:
        self.drawn: list[Row] = []
        self._rows = rows
        self._room = room

    def create_content(self, width: int, height: int) -> UIContent:
        """Return the newest rows that there is room for."""
        rows = self.drawn = self.shown()
        return UIContent(get_line=lambda n: _fragments(rows[n]), line_count=len(rows), show_cursor=False)

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: GetLinePrefixCallable | None
    ) -> int | None:
        """One line each."""
        return len(self.shown())

    def is_focusable(self) -> bool:
        """Never."""
        return False

    def shown(self) -> list[Row]:
        """Return the rows as they would be drawn now."""
        return list(self._rows())[-max(self._room(), 1) :]


def _fragments(row: Row) -> StyleAndTextTuples:
    return _parsed(row) if isinstance(row, str) else row


@lru_cache(maxsize=64)
def _parsed(row: str) -> StyleAndTextTuples:
    return to_formatted_text(ANSI(row))
