"""Where a prompt begins after the window has changed: some terminals wrap the rows above the cursor anew.

prompt-toolkit erases as many rows above the cursor as it drew. Where a terminal made two of one, the first would stay
behind at each change; where a terminal does not do that, erasing more would take finished lines. Which kind it is can
only be known by name; an unknown one is taken not to, since lines that are left behind are better than lines lost.
"""

import os
from collections.abc import Callable, Mapping
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


def follow_resize(
    app: Application[Any], drew_lately: Callable[[], bool], environment: Mapping[str, str] = os.environ
) -> None:
    """Make `app` find its first row again whenever the window changes.

    drew_lately: whether it was drawn while the change may have been on its way already; where its rows are then is
    anybody's guess, and none is taken for one of its own that may be a finished line.
    """
    if not wraps_anew(environment):
        return
    on_resize = app._on_resize

    def moved_first() -> None:
        extra = _extra_rows(app)
        if extra and not drew_lately():
            app.output.cursor_up(extra)
        on_resize()

    # There is no public hook between the change and the erasing.
    app._on_resize = moved_first  # type: ignore[method-assign]


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
