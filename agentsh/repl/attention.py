"""Calls back who has looked away: a bell and a message when a long turn has ended or an answer is waited for.

The terminal is asked to say when its window loses the focus (xterm's mode 1004); where it never says anything, who
has not typed for a while has looked away. The message is OSC 777 for terminals that are known to show it
(rxvt-unicode, foot, those of VTE, Konsole), else OSC 9, which iTerm2, WezTerm, kitty, Ghostty, Windows Terminal and
others show; one that is not known is passed over. Sources: xterm's control sequences, "FocusIn/FocusOut"; iTerm2's
proprietary escape codes; foot's list of control sequences.
"""

import time
from collections.abc import Callable, Mapping

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import Keys
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
FOCUS_ON, FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
FOCUSED, UNFOCUSED = "\x1b[I", "\x1b[O"
# They are no keys, in however many pieces they come.
ANSI_SEQUENCES[FOCUSED] = ANSI_SEQUENCES[UNFOCUSED] = Keys.Ignore


class Attention:
    """Knows when somebody was seen last. rings, titles: whether to call, and to name the window.

    with_777: whether the terminal shows OSC 777.
    """

    def __init__(
        self,
        output: Callable[[], Output],
        *,
        rings: bool,
        titles: bool,
        with_777: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._output = output
        self._rings, self._titles = rings, titles
        self._now_s = now_s
        self._seen_s = now_s()
        self._title = ""
        self._with_777 = with_777
        self._focused: bool | None = None
        self._asked = False

    def listen(self, keyboard: Input) -> None:
        """Follow what the terminal says of its focus."""
        parser = getattr(keyboard, "vt100_parser", None)
        if parser is None or not self._rings:
            return
        feed = parser.feed
        tail = ""

        def hear(data: str) -> None:
            nonlocal tail
            tail = (tail + data)[-4096:]
            came, went = tail.rfind(FOCUSED), tail.rfind(UNFOCUSED)
            if max(came, went) >= 0:
                self._focused = came > went
                tail = ""
            tail = tail[-2:]
            feed(data)

        parser.feed = hear

    def watch(self) -> None:
        """Ask to be told of the focus, again after what may have ended that: an editor."""
        if self._rings:
            self._asked = True
            self._write(FOCUS_ON)

    def seen(self) -> None:
        """Somebody typed."""
        self._seen_s = self._now_s()

    def call(self, message: str, *, after_s: float = 0.0) -> None:
        """Ring, where nobody typed lately. after_s: how long was worked; a short while is no reason to ring."""
        quiet_s = self._now_s() - self._seen_s
        here = quiet_s < max(TYPING_S, after_s and LONG_S) if self._focused is None else self._focused
        if not self._rings or here:
            return
        text = one_line(message, MESSAGE_CHARS)
        shown = f"777;notify;agentsh;{text.replace(';', ',')}" if self._with_777 else f"9;agentsh: {text}"
        self._write(f"\x07\x1b]{shown}\x07")

    def title(self, text: str) -> None:
        """Name the window after the session; the name that it had is kept by the terminal. Idempotent."""
        if self._titles and text != self._title:
            self._write(("" if self._title else KEEP_TITLE) + f"\x1b]2;{one_line(text, TITLE_CHARS)}\x07")
            self._title = text

    def close(self) -> None:
        """Give the window its name back, and ask for nothing any more."""
        if self._asked:
            self._write(FOCUS_OFF)
        if self._title:
            self._write(GIVE_TITLE_BACK)

    def _write(self, sequence: str) -> None:
        output = self._output()
        output.write_raw(sequence)
        output.flush()


def shows_777(env: Mapping[str, str]) -> bool:
    """Tell by name whether a terminal shows OSC 777, and not OSC 9."""
    known = env.get("TERM", "").startswith(("rxvt", "foot")) or "VTE_VERSION" in env or "KONSOLE_VERSION" in env
    return known and "TMUX" not in env
