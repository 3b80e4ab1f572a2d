"""Rows that a command has to show, above the input until the next message; more than fit are paged through."""

from collections.abc import Sequence

from agentsh.base.text import clean, plural
from agentsh.repl.rows import Row, cut, wrapped


class Notice:
    """Keeps the rows, and which of them are shown."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Row]] = []
        self._top = 0
        self._page = 1
        self._laid_out: tuple[int, list[Row]] | None = None

    def __bool__(self) -> bool:
        return bool(self._rows)

    def say(self, style: str, rows: Sequence[str]) -> None:
        """Add lines of text; they are wrapped, and nothing in them steers the terminal."""
        self._add([(style, clean(row).replace("\n", " ").replace("\t", "    ")) for row in rows])

    def show(self, rows: Sequence[Row]) -> None:
        """Add rows that are laid out already."""
        self._add([("", row) for row in rows])

    def append(self, later: "Notice") -> None:
        """Add the rows of another one."""
        self._add(later._rows)

    def clear(self) -> None:
        """Take all away."""
        self._rows, self._top, self._laid_out = [], 0, None

    @property
    def long(self) -> bool:
        """Whether it was more than fits when it was drawn last."""
        return self._laid_out is not None and len(self._laid_out[1]) > self._page

    def turn(self, pages: int) -> None:
        """Show other rows of it: pages down, or up where negative."""
        self._top = max(self._top + pages * self._page, 0)  # its end is found when it is drawn

    def rows(self, columns: int, room: int) -> list[Row]:
        """Return what is shown, at most `room` rows; the last one then tells how much more there is."""
        laid_out = self._all(columns)
        if len(laid_out) <= room:
            self._page = room
            return laid_out
        self._page = max(room - 1, 1)
        self._top = max(min(self._top, len(laid_out) - self._page), 0)
        below = len(laid_out) - self._top - self._page
        parts = [f"{plural(self._top, 'line')} above"] if self._top else []
        parts += [f"{plural(below, 'line')} below"] if below else []
        hint = "  … PgUp, PgDn: " + ", ".join(parts)
        return [*laid_out[self._top : self._top + self._page], [("class:dim", cut(hint, columns - 1))]]

    def _all(self, columns: int) -> list[Row]:
        if self._laid_out is None or self._laid_out[0] != columns:
            found: list[Row] = []
            for style, row in self._rows:
                if style and isinstance(row, str):
                    found += [[(f"class:{style}", part)] for part in wrapped(row, columns - 1)]
                else:
                    found.append(row)
            self._laid_out = (columns, found)
        return self._laid_out[1]

    def _add(self, rows: Sequence[tuple[str, Row]]) -> None:
        self._rows += rows
        self._laid_out = None
