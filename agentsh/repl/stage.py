"""The terminal as two regions: finished lines above, and a prompt below them that stays while they come.

To the renderer this is its output and the place of its live rows; to the prompt it is where those rows are found. A
finished line is slid in above the prompt without drawing the prompt again: what costs bytes is the line alone.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.utils import get_cwidth

from agentsh.repl.reflow import erase_at_new_size, wraps_anew
from agentsh.repl.rows import Rows

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
_SGR = re.compile("\x1b\\[[0-9;]*m")
PAUSE_S = 0.03
"""Between two writings of finished lines: what comes meanwhile goes out together, and no eye sees the difference."""
LATELY_S = 0.35
"""Rows that have stood for so long are taken for what the terminal shows."""
REST_S = 0.75
"""tmux tells of a second change up to a quarter of a second after it has changed what it shows, and somewhat later
where a machine has much to do. What was drawn in between may stand anywhere."""
PIECE_ROWS = 8
"""As many lines are slid in at once: few enough for a window that has become smaller without our knowing yet."""


class Stage:
    """Takes text and live rows; shows them now, or in a moment. Without a prompt, text goes straight to `out`.

    rows: what is on the move, drawn by the prompt above its input.
    """

    margin = 0

    def __init__(self, out: TextIO) -> None:
        self.rows: list[str] = []
        self._out = out
        self._app: Application[Any] | None = None
        self._above: Rows | None = None
        self._pending: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._wrote_s = self._resized_s = float("-inf")
        self._wraps = wraps_anew(os.environ)

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
        """Show what was taken: at once without a prompt, else within `PAUSE_S`."""
        if not self._pending or self._leaving():
            return
        if not self._on_stage():
            self._straight()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            wait_s = max(self._wrote_s + PAUSE_S - loop.time(), 0.0)
            self._timer = loop.call_later(wait_s, self._emit)

    def erase(self) -> str:
        """Take the live rows away."""
        self.rows = []
        return ""

    def leave(self) -> str:
        """Take them away for good."""
        return self.erase()

    def draw(self, rows: Sequence[str], width: int) -> str:
        """Show these live rows from now on; nothing is left to write for the caller."""
        if list(rows) != self.rows:
            self.rows = list(rows)
            if self._on_stage() and self._timer is None and self._app is not None:
                self._app.invalidate()
        return ""

    def at_rest(self) -> bool:
        """Whether the window has kept its size for a while. Until then no live rows are drawn: they might stay."""
        return asyncio.get_running_loop().time() - self._resized_s > REST_S

    def enter(self, app: Application[Any], above: Rows) -> None:
        """A prompt is about to run. above: its first rows, those of the stage among them."""
        app._on_resize = lambda: self._resized(app)  # type: ignore[method-assign]
        app.before_render += self._measure
        app.before_render += lambda app: _fit(app, above)
        self._app, self._above = app, above

    def exit(self) -> None:
        """The prompt is gone; what is left is written below where it was."""
        self._app = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._straight()

    def _resized(self, app: Application[Any]) -> None:
        """In place of prompt-toolkit's own, which has no hook: erases, where that is not done yet, and draws."""
        self._measure(app)
        app._redraw()

    def _measure(self, app: Application[Any]) -> None:
        if erase_at_new_size(app, wraps=self._wraps, at_rest=self.at_rest()):
            loop = asyncio.get_running_loop()
            self._resized_s = loop.time()
            loop.call_later(REST_S + 0.01, app.invalidate)

    def _on_stage(self) -> bool:
        return self._app is not None and self._app.is_running and not self._app.is_done

    def _leaving(self) -> bool:
        """Whether the prompt is about to go and is still drawn: what comes now is written when it is gone."""
        return self._app is not None and self._app.is_running and self._app.is_done

    def _emit(self) -> None:
        self._timer = None
        app = self._app
        if self._leaving():
            return
        if app is None or not self._on_stage():
            self._straight()
            return
        loop = asyncio.get_running_loop()
        if app._running_in_terminal:  # an editor has the terminal
            self._timer = loop.call_later(PAUSE_S, self._emit)
            return
        self._measure(app)
        text = self._taken()
        if text:
            self._wrote_s = loop.time()
        if text and self._above is not None:
            text = _adopted(app, self._above, text)
        if text and not _slide_in(app, text):
            app.renderer.erase(leave_alternate_screen=False)
            app.output.write_raw(text)
            app.output.flush()
        app._redraw()

    def _straight(self) -> None:
        text = self._taken()
        if text:
            self._out.write(text.encode(self.encoding, "replace").decode(self.encoding))
            self._out.flush()

    def _taken(self) -> str:
        text = "".join(self._pending)
        self._pending.clear()
        return text


def _adopted(app: Application[Any], above: Rows, text: str) -> str:
    """Leave to the scrollback what stands there already: live rows that are finished lines now. Return the rest.

    Only rows that have stood for a while: what was drawn into a window that was smaller than we knew is cut off.
    """
    renderer = app.renderer
    screen = renderer.last_rendered_screen
    if screen is None or renderer._last_size != app.output.get_size():
        return text
    lines, count = text.split("\n"), 0
    while count < min(len(lines) - 1, above.settled(LATELY_S)) and lines[count] == above.drawn[count]:
        count += 1
    if count:
        for y in range(count):
            screen.data_buffer.pop(y, None)
        _renumber(screen, count, -count)
        renderer._cursor_pos = Point(x=renderer._cursor_pos.x, y=renderer._cursor_pos.y - count)
        above.forget(count)
    return "\n".join(lines[count:])


def _slide_in(app: Application[Any], text: str) -> bool:
    """Write whole lines above what `app` has drawn, and leave the cursor where it was; False where that is no way.

    Line feeds at the last row make room below (the terminal scrolls, or has rows to spare), the same number of rows
    is inserted at the first row, and the lines are written there. Only relative moves are used: where on the screen
    the prompt stands need not be known. Down it goes by line feeds: a window that has just become smaller, which we
    are told up to a quarter of a second later, may have taken the last rows, and a plain move would stop there.
    """
    renderer, output = app.renderer, app.output
    screen, size = renderer.last_rendered_screen, output.get_size()
    if screen is None or renderer._last_size != size or not text.endswith("\n"):
        return False
    lines, height, at = text[:-1].split("\n"), screen.height, renderer._cursor_pos
    room = size.rows - height
    if room < 1 or height < 1 or any(get_cwidth(_SGR.sub("", line)) > size.columns for line in lines):
        return False
    parts = [HIDE]
    below, piece = height - 1 - at.y, min(room, PIECE_ROWS)
    for start in range(0, len(lines), piece):
        some = lines[start : start + piece]
        n = len(some)
        parts.append("\r" + "\n" * (below + n) + _up(n + height - 1) + f"\x1b[{n}L")
        parts.append("".join(line + "\r\n" for line in some))
        below = height - 1  # the cursor is on the first row of the prompt now
    parts.append("\n" * at.y + (f"\x1b[{at.x}C" if at.x else "") + (SHOW if screen.show_cursor else ""))
    output.write_raw("".join(parts))
    output.flush()
    return True


def _fit(app: Application[Any], above: Rows) -> None:
    """Make rows for what is drawn next, or take rows away, so that those which stay need not be drawn again.

    By itself a prompt only grows, and draws all below a new row anew.
    """
    renderer, size = app.renderer, app.output.get_size()
    screen = renderer.last_rendered_screen
    if screen is None or renderer._last_size != size:
        above.forget()
        return
    wanted = max(min(app.layout.container.preferred_height(size.columns, size.rows).preferred, size.rows), 1)
    old, new = above.drawn, above.shown()
    more = len(new) - len(old)
    same = 0
    while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
        same += 1
    if more > 0 and screen.height + more <= size.rows:
        _insert(app, screen, len(old) - same, more)
    elif more < 0:
        _delete(app, screen, len(new) - same, -more)
    if wanted < screen.height:
        _delete(app, screen, wanted, screen.height - wanted)


def _insert(app: Application[Any], screen: Screen, row: int, count: int) -> None:
    at, last = app.renderer._cursor_pos.y, screen.height - 1
    app.output.hide_cursor()
    app.output.write_raw("\r" + "\n" * (last - at + count) + _up(last + count - row) + f"\x1b[{count}L")
    _moved(app, screen, row, count)


def _delete(app: Application[Any], screen: Screen, row: int, count: int) -> None:
    at = app.renderer._cursor_pos.y
    app.output.hide_cursor()
    app.output.write_raw("\r" + "\n" * (row - at) + _up(at - row) + f"\x1b[{count}M")
    for y in range(row, row + count):
        screen.data_buffer.pop(y, None)
    _moved(app, screen, row, -count)


def _moved(app: Application[Any], screen: Screen, row: int, by: int) -> None:
    """Tell the renderer that what it drew from `row` down stands elsewhere now, the cursor at the start of `row`."""
    _renumber(screen, row, by)
    app.renderer._cursor_pos = Point(x=0, y=row)


def _renumber(screen: Screen, row: int, by: int) -> None:
    below = {y: screen.data_buffer.pop(y) for y in [*screen.data_buffer] if y >= row}
    screen.data_buffer.update({y + by: cells for y, cells in below.items()})
    screen.height += by


def _up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows > 0 else ""
