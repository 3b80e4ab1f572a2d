"""Applies the hunks of a patch to a text: lines that no hunk changes stay as the file has them, byte for byte."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line
from agentsh.tools.lines import Finder, Found, Lines, begins, folded, shift
from agentsh.tools.nearest import nearest
from agentsh.tools.patch_format import Hunk


class Spot(NamedTuple):
    """Where a hunk went. line: of the file as it was, from 1. found: how; None where it had nothing to find."""

    line: int
    found: Found | None


class Patched(NamedTuple):
    """The new text, and where each hunk went."""

    text: str
    spots: tuple[Spot, ...]


def apply_hunks(text: str, hunks: Sequence[Hunk], *, newline: str) -> Patched:
    """Return the text with the hunks applied, in order, each behind the one before.

    What is put in gets the line ends of the lines around it, else `newline`, and the indentation of what it replaces
    where the hunk was found in spite of another one. A last line that is put in ends with a line end; a last line
    that stays keeps what it has.

    Raises:
        ToolFailed: the lines of a hunk are not there, or are there but for white space and it is not clear which
            or how; the nearest ones are shown.
    """
    lines = Lines.of(text)
    finder = Finder(lines.texts)
    texts: list[str] = []
    ends: list[str] = []
    spots: list[Spot] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        which = f"hunk {number} of {len(hunks)} (line {hunk.line} of the patch)"
        spot = _spot(lines, finder, hunk, at, which)
        start = spot.line - 1
        texts += lines.texts[at:start]
        ends += lines.ends[at:start]
        at = _put(lines, hunk, start, texts, ends, newline)
        spots.append(spot)
    texts += lines.texts[at:]
    ends += lines.ends[at:]
    ends[:-1] = [end or newline for end in ends[:-1]]  # the last line without an end may not be the last any more
    return Patched(str(Lines(texts, ends)), tuple(spots))


def _spot(lines: Lines, finder: Finder, hunk: Hunk, at: int, which: str) -> Spot:
    start = at
    for header in hunk.headers:
        below = _header(finder, header, start, above=bool(hunk.old and start))
        if below is None:
            raise ToolFailed(
                f"{which}: there is no line `{one_line(header, 100)}`, nor one that begins so. "
                f"{nearest(lines.texts, [header])}"
            )
        start = max(start, below)
    if not hunk.old:
        return Spot((start if hunk.headers else len(lines.texts)) + 1, None)
    found = _around(finder, hunk, start) or finder.find(hunk.old, start, at_end=hunk.at_end)
    if found is None and len(hunk.lines) > 1 and hunk.lines[-1] == (" ", ""):
        hunk.lines.pop()  # an empty line that stands for the end of the file
        return _spot(lines, finder, hunk, at, which)
    if found is None:
        before = finder.find(hunk.old)
        if before is not None:
            raise ToolFailed(
                f"{which}: its lines are at line {before.at + 1}, above those of the hunk or header before it; "
                "hunks come in the order of the file"
            )
        raise ToolFailed(f"{which}: its lines are not there. {nearest(lines.texts, hunk.old)}")
    _check(lines, hunk, found, which)
    return Spot(found.at + 1, found)


def _check(lines: Lines, hunk: Hunk, found: Found, which: str) -> None:
    """Refuse what would be a guess: of several places that are only alike, or of an indentation.

    Raises:
        ToolFailed: it would be one.
    """
    if found.likeness == "exact":
        return
    there = lines.texts[found.at : found.at + len(hunk.old)]
    if found.others and not hunk.headers:
        raise ToolFailed(
            f"{which}: its lines are not there as they are, and {found.likeness} they are there {found.others + 1} "
            f"times, first at line {found.at + 1}; give their white space exactly, more lines around them, or an @@ "
            f"line with the class or function. {nearest(lines.texts, hunk.old)}"
        )
    if shift(hunk.old, there) is None and any(line.sign == "+" and line.text.strip() for line in hunk.lines):
        raise ToolFailed(
            f"{which}: its lines are at line {found.at + 1}, with indentation that follows no rule from theirs, so "
            f"that of the new lines is not known; give it exactly. {nearest(lines.texts, hunk.old)}"
        )


def _header(finder: Finder, header: str, start: int, *, above: bool) -> int | None:
    """Return the index of the line below a header: of the whole line, else of the first that begins with it.

    above: it may stand above `start` too, as the class or function that the hunk before was in already.
    """
    ways: tuple[Callable[[int], Found | None], ...] = (partial(finder.find, [header]), partial(finder.begun, header))
    for find in ways:
        found = find(start) or (find(0) if above else None)
        if found is not None:
            return found.at + 1
    return None


def _around(finder: Finder, hunk: Hunk, start: int) -> Found | None:
    """Return where a hunk stands that repeats its own header among its lines. start: behind the header."""
    if not hunk.headers or not any(begins(folded(line), folded(hunk.headers[-1])) for line in hunk.old):
        return None
    found = finder.find(hunk.old, max(start - len(hunk.old), 0))
    return found if found is not None and found.at < start else None


def _put(lines: Lines, hunk: Hunk, start: int, texts: list[str], ends: list[str], newline: str) -> int:
    """Add what a hunk makes of the lines from `start` on; return the index of the first line behind it."""
    there = lines.texts[start : start + len(hunk.old)]
    indent = shift(hunk.old, there)
    at = start
    for line in hunk.lines:
        if line.sign == "+":
            texts.append(indent(line.text) if indent else line.text)
            near = lines.ends[at] if at < len(lines.ends) and at < start + len(there) else ""
            ends.append(near or (lines.ends[at - 1] if 0 < at <= len(lines.ends) else "") or newline)
            continue
        if line.sign == " ":
            texts.append(lines.texts[at])
            ends.append(lines.ends[at])
        at += 1
    return at
