"""How wide to write without a terminal to ask, and whether to draw. Standard library only: `ls` reads it too."""

from collections.abc import Mapping
from typing import TextIO

NARROWEST = 20
WIDEST = 10_000
"""What COLUMNS may say; anything else is taken for a mistake, and the default holds."""


def columns_from(env: Mapping[str, str], default: int) -> int:
    """Return COLUMNS, or `default` where it is missing or no sensible number."""
    text = env.get("COLUMNS", "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(WIDEST))):
        return default
    return int(text) if NARROWEST <= int(text) <= WIDEST else default


def draws(out: TextIO, env: Mapping[str, str]) -> bool:
    """Tell whether something may be drawn over: on a terminal that can, and not for a screen reader."""
    return out.isatty() and not read_aloud(env) and env.get("TERM", "") not in ("dumb", "")


def read_aloud(env: Mapping[str, str]) -> bool:
    """Tell whether AGENTSH_SCREEN_READER says that a screen reader is listening."""
    return env.get("AGENTSH_SCREEN_READER", "").lower() not in ("", "0", "false", "no", "off")
