"""Where the line mode prints; see `plain`."""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import DummyOutput

MARK = "› "


class PlainOutput(DummyOutput):
    """Shows nothing; knows how wide the lines are."""

    def get_size(self) -> Size:
        """Return the size of the terminal; 80 columns where there is none."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            return Size(rows=24, columns=80)
        return Size(rows=size.lines or 24, columns=size.columns or 80)


class PlainStage:
    """Where lines go; a mark stands at the start of the line that is typed into.

    To the renderer it is its output, and the place of live rows, of which there are none.
    """

    margin = 0

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._pending: list[str] = []
        self._mark = ""
        self._echoed = ""

    @property
    def encoding(self) -> str:
        """Of the terminal."""
        return self._out.encoding or "utf-8"

    def fileno(self) -> int:
        """Return the descriptor of the terminal, which knows its size."""
        return self._out.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._out.isatty()

    def write(self, text: str) -> int:
        """Take finished lines; `flush` shows them."""
        self._pending.append(text)
        return len(text)

    def flush(self) -> None:
        """Show what was taken, below the line that is typed into, which then begins anew."""
        text = "".join(self._pending)
        self._pending.clear()
        if text and self._said_already(text):
            return
        if text:
            mark, self._mark = self._mark, ""
            self._straight(("\n" if mark else "") + text + mark)
            self._mark = mark

    def erase(self) -> str:
        """Nothing is drawn."""
        return ""

    def leave(self) -> str:
        """Nothing is drawn."""
        return ""

    def draw(self, rows: Sequence[str], width: int) -> str:
        """Nothing is drawn."""
        return ""

    def invite(self, mark: str) -> None:
        """Put a mark where the next line is typed. Idempotent."""
        if self._mark != mark:
            self._straight(("\n" if self._mark else "") + mark)
            self._mark = mark

    def typed(self, echo: str = "") -> None:
        """A line came, and its end moved the cursor to the next. echo: what it says of a message stands there."""
        self._mark, self._echoed = "", echo

    def break_off(self) -> None:
        """The line that is typed into is given up."""
        if self._mark:
            self._mark = ""
            self._straight("\n")

    def _said_already(self, text: str) -> bool:
        """Whether this is the message that was just typed: its line stands there, and nobody hears it twice."""
        echoed, self._echoed = self._echoed, ""
        return bool(echoed) and "".join(text.split()) == "".join((MARK + echoed).split())

    def _straight(self, text: str) -> None:
        self._out.write(text.encode(self.encoding, "replace").decode(self.encoding))
        self._out.flush()
