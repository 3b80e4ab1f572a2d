"""The looks of a session: the theme that is wished for, what is known of the terminal, and what comes of both.

The background is asked for by OSC 11, once the prompt is there; nothing waits for the answer, which terminals that do
not know the question never give. Sources: xterm's control sequences, "OSC Ps ; Pt ST"; rxvt's COLORFGBG.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from prompt_toolkit.input import Input

from agentsh.base.palette import DARK, LIGHT, RGB, Palette, for_background

ThemeName = Literal["auto", "light", "dark", "plain"]
THEMES: tuple[ThemeName, ...] = get_args(ThemeName)
ASK = "\x1b]11;?\x1b\\"
_ANSWER = r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]*(?:\x07|\x1b\\)"
_BEGUN = r"\x1b\](?:1(?:1(?:;[^\x07\x1b]{0,40}\x1b?)?)?)?$"
"""Compiled when they are first needed, which is after the start."""
ANSWER_S = 5.0
"""Later than this after the question, what looks like the beginning of an answer is a key again."""
_PALETTES = {"light": LIGHT, "dark": DARK}


class Looks:
    """What things look like now.

    theme: as wished. possible: whether the terminal takes colours, and the user does. deep: whether it takes 256.
    background: `light` or `dark` where it is known. asks: it may be asked for.
    """

    def __init__(
        self,
        theme: ThemeName = "auto",
        *,
        possible: bool = True,
        deep: bool = False,
        background: str = "",
        asks: bool = False,
    ) -> None:
        self.theme = theme
        self.possible = possible
        self.changed: Callable[[], None] = lambda: None
        self._deep = deep
        self._background = background
        self._asks = asks and possible and deep and not background
        self._until_s = float("-inf")
        self._held = ""

    @property
    def colour(self) -> bool:
        """Whether there are colours."""
        return self.possible and self.theme != "plain"

    @property
    def palette(self) -> Palette | None:
        """The colours; None for the terminal's own, or where there are none."""
        if not self.colour or not self._deep:
            return None
        return _PALETTES.get(self._background if self.theme == "auto" else self.theme)

    @property
    def own_colours(self) -> bool:
        """Whether a theme was named that the terminal has too few colours for."""
        return not self._deep and self.theme in _PALETTES

    def choose(self, theme: ThemeName) -> None:
        """Wish for another theme."""
        self.theme = theme
        self.changed()

    def question(self) -> str:
        """Return what asks the terminal for its background; empty where nobody needs to know, or it cannot say."""
        if not self._asks or self.theme != "auto":
            return ""
        self._asks = False
        self._until_s = time.monotonic() + ANSWER_S
        return ASK

    def listen(self, keyboard: Input) -> None:
        """Take the answer out of what is typed, so that it never gets into the input."""
        parser = getattr(keyboard, "vt100_parser", None)
        if parser is not None and self._asks and self.theme == "auto":
            feed = parser.feed
            parser.feed = lambda data: feed(self.take(data))

    def take(self, data: str) -> str:
        """Return what was typed without an answer. One that has only begun is held back for the rest of it."""
        if not self._held and time.monotonic() > self._until_s:
            return data
        data, self._held = self._held + data, ""
        found = re.search(_ANSWER, data)
        if found is not None:
            self._until_s = float("-inf")
            self._heard(_colour(found.groups()))
            return data[: found.start()] + data[found.end() :]
        begun = re.search(_BEGUN, data)
        if begun is not None and time.monotonic() <= self._until_s:
            self._held = begun[0]
            return data[: begun.start()]
        return data

    def _heard(self, colour: RGB) -> None:
        self._background = for_background(colour).name
        self.changed()


def _colour(parts: tuple[str, ...]) -> RGB:
    """Return a colour from one to four hexadecimal digits for each part. Source: X11, "RGB Device String"."""
    red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in parts)
    return red, green, blue


def looks_of(theme: ThemeName, env: Mapping[str, str], *, possible: bool) -> Looks:
    """Return the looks of a terminal. possible: it takes colours, and NO_COLOR is not set."""
    term = env.get("TERM", "")
    # The console of Linux and GNU screen do not pass the question over: it would be seen.
    asks = not term.startswith(("linux", "screen")) or "TMUX" in env
    return Looks(theme, possible=possible, deep=deep(env), background=told_background(env), asks=asks)


def told_background(env: Mapping[str, str]) -> str:
    """Return what COLORFGBG says (`15;0`, `0;default;15`): `light`, `dark`, or nothing."""
    last = env.get("COLORFGBG", "").rpartition(";")[2]
    if not (last.isascii() and last.isdigit()):
        return ""
    return "light" if int(last) in (7, 15) else "dark" if int(last) < 16 else ""


def deep(env: Mapping[str, str]) -> bool:
    """Tell whether a terminal says that it has 256 colours or more."""
    term = env.get("TERM", "")
    return (
        "256" in term
        or env.get("COLORTERM", "") in ("truecolor", "24bit")
        or term.startswith(("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"))
    )
