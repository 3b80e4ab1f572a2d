"""How wide to write where there is no terminal to ask. Standard library only: `ls` reads it too."""

from collections.abc import Mapping

NARROWEST = 20
WIDEST = 10_000
"""What COLUMNS may say; anything else is taken for a mistake, and the default holds."""


def columns_from(env: Mapping[str, str], default: int) -> int:
    """Return COLUMNS, or `default` where it is missing or no sensible number."""
    text = env.get("COLUMNS", "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(WIDEST))):
        return default
    return int(text) if NARROWEST <= int(text) <= WIDEST else default
