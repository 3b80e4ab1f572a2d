"""Text in columns of a terminal: how wide a string is there, and how to make it fit. Standard library only."""

from unicodedata import category, east_asian_width


def width(text: str) -> int:
    """Return the columns that `text` takes: 2 for wide characters, 0 for combining and invisible ones."""
    if text.isascii():
        return len(text)
    return sum(_width(c) for c in text)


def _width(c: str) -> int:
    if category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(c) in "WF" else 1


def fit(text: str, columns: int, *, right: bool = False) -> str:
    """Return `text` cut (`…`) or padded to exactly `columns`."""
    size = width(text)
    if size > columns:
        kept, size = [], 1
        for c in text:
            if size + _width(c) > columns:
                break
            size += _width(c)
            kept.append(c)
        text = "".join(kept) + "…"
    padding = " " * (columns - size)
    return padding + text if right else text + padding
