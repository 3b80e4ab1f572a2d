"""Takes changes over into a file that somebody else may have changed too: hunk by hunk, or not at all. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MAX_LINES = 20_000
"""Of a file that is merged line by line; a longer one that both have changed is a conflict as a whole."""

Lines = Sequence[bytes]


class Hunk(NamedTuple):
    """Lines `start` to `end` of the old text, from 0, that became `new`."""

    start: int
    end: int
    new: tuple[bytes, ...]

    def __str__(self) -> str:
        """Return the place as a unified diff names it."""
        length, count = self.end - self.start, len(self.new)
        first = self.start + 1 if length else self.start
        return f"@@ -{first},{length} +{count} lines @@"


class Merge(NamedTuple):
    """What came of it. lines: None where there are conflicts. conflicts: hunks of ours that meet theirs."""

    lines: list[bytes] | None
    conflicts: tuple[Hunk, ...]


def hunks(before: Lines, after: Lines) -> list[Hunk]:
    """Return how one text became another."""
    head = 0
    most = min(len(before), len(after))
    while head < most and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < most - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) > MAX_LINES or len(new) > MAX_LINES:
        return [Hunk(head, len(before) - tail, tuple(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        Hunk(head + i1, head + i2, tuple(new[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def merge(before: Lines, ours: Lines, theirs: Lines) -> Merge:
    """Return `theirs` with our changes of `before`, or which of them meet changes of theirs.

    Two changes meet where they touch the same lines, or lines that follow one another; the same change on both sides
    is one.
    """
    mine, other = hunks(before, ours), hunks(before, theirs)
    shared = set(mine) & set(other)
    conflicts = [hunk for hunk in mine if hunk not in shared and any(_meet(hunk, o) for o in other)]
    if conflicts:
        return Merge(None, tuple(conflicts))
    merged: list[bytes] = []
    at = 0
    for hunk in sorted({*mine, *other}):
        merged += before[at : hunk.start]
        merged += hunk.new
        at = hunk.end
    return Merge([*merged, *before[at:]], ())


def _meet(a: Hunk, b: Hunk) -> bool:
    return a.start <= b.end and b.start <= a.end
