"""Where a prompt begins after the window has changed: some terminals wrap the rows above the cursor anew.

prompt-toolkit erases as many rows above the cursor as it drew. Where a terminal made two of one, the first would stay
behind at each change; where a terminal does not do that, erasing more would take finished lines. Which kind it is can
only be known by name; an unknown one is taken not to, since lines that are left behind are better than lines lost.
"""

from collections.abc import Mapping
from typing import Any

from prompt_toolkit.application import Application

_BY_VARIABLE = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "ALACRITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION")
_BY_PROGRAM = ("iTerm.app", "Apple_Terminal", "WezTerm", "vscode", "ghostty", "WarpTerminal")
_BY_TERM = ("tmux", "xterm-kitty", "xterm-ghostty", "alacritty", "wezterm")


def wraps_anew(environment: Mapping[str, str]) -> bool:
    """Whether this terminal is known to wrap old rows anew when it gets narrower."""
    return (
        any(environment.get(name) for name in _BY_VARIABLE)
        or environment.get("TERM_PROGRAM") in _BY_PROGRAM
        or environment.get("TERM", "").startswith(_BY_TERM)
    )


def erase_at_new_size(app: Application[Any], *, wraps: bool, at_rest: bool) -> bool:
    """Take away what was drawn where the window has changed since; return whether it has.

    Whoever notices first does this: the signal may come after the next drawing.
    at_rest: the window had kept its size before. Where it had not, what was drawn in between may stand anywhere, and
    no row above the cursor is taken for one of its own: it might be a finished line.
    """
    renderer = app.renderer
    if renderer.last_rendered_screen is None or renderer._last_size == app.output.get_size():
        return False
    extra = _extra_rows(app) if wraps and at_rest else 0
    if extra:
        app.output.cursor_up(extra)
    renderer.erase(leave_alternate_screen=False)
    return True


def _extra_rows(app: Application[Any]) -> int:
    """Return how many more rows than drawn lie between the first row and the cursor."""
    screen = app.renderer.last_rendered_screen
    if screen is None:
        return 0
    columns = max(app.output.get_size().columns, 1)
    cursor = app.renderer._cursor_pos
    extra = cursor.x // columns
    for y in range(cursor.y):
        row = screen.data_buffer[y]
        used = max((x + cell.width for x, cell in row.items() if cell.char.strip()), default=0)
        extra += max(-(-used // columns) - 1, 0)
    return extra
