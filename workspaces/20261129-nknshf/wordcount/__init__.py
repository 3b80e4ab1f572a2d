"""Counts words."""


def count(text: str) -> int:
    """Return the number of words in `text`."""
    return len(text.split())
