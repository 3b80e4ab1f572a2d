"""Calls back who has looked away: a bell and a message when a long turn has ended or an answer is waited for.

The message is OSC 9, which iTerm2, WezTerm, kitty, Ghostty, Windows Terminal and others show on the desktop; where a
terminal does not know it, it is passed over. Source: iTerm2's documentation of its proprietary escape codes.
"""

import time
from collections.abc import Callable

from prompt_toolkit.output import Output

from agentsh.base.text import one_line

LONG_S = 10.0
"""A turn that took this long may have lost its audience."""
TYPING_S = 5.0
"""Who typed as lately as this is here."""
TITLE_CHARS = 60
MESSAGE_CHARS = 100
KEEP_TITLE, GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"
"""xterm's window operations 22 and 23; tmux and others know them, the rest pass them over."""


class Attention:
    """Knows when somebody was seen last. rings, titles: whether to call, and to name the window."""

    def __init__(
        self, output: Callable[[], Output], *, rings: bool, titles: bool, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._output = output
        self._rings, self._titles = rings, titles
        self._now_s = now_s
        self._seen_s = now_s()
        self._title = ""

    def seen(self) -> None:
        """Somebody typed."""
        self._seen_s = self._now_s()

    def call(self, message: str, *, after_s: float = 0.0) -> None:
        """Ring, where nobody typed lately. after_s: how long was worked; a short while is no reason to ring."""
        if not self._rings or self._now_s() - self._seen_s < max(TYPING_S, after_s and LONG_S):
            return
        self._write(f"\x07\x1b]9;agentsh: {one_line(message, MESSAGE_CHARS)}\x07")

    def title(self, text: str) -> None:
        """Name the window after the session; the name that it had is kept by the terminal. Idempotent."""
        if self._titles and text != self._title:
            self._write(("" if self._title else KEEP_TITLE) + f"\x1b]2;{one_line(text, TITLE_CHARS)}\x07")
            self._title = text

    def close(self) -> None:
        """Give the window its name back."""
        if self._title:
            self._write(GIVE_TITLE_BACK)

    def _write(self, sequence: str) -> None:
        output = self._output()
        output.write_raw(sequence)
        output.flush()
