"""Replaces text in text, byte for byte elsewhere, and says where a text that is not there might have been meant."""

import difflib
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from agentsh.base.errors import ToolFailed
from agentsh.base.light import dataclass
from agentsh.tools.lines import Finder, Likeness, shift
from agentsh.tools.nearest import nearest

MAX_LISTED = 20
_MAX_COMPARED = 5_000


class Span(NamedTuple):
    """A part of the text, and what comes in its place."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new text. lines: the number of the line in which each occurrence began. likeness: how `old` was found."""

    text: str
    lines: tuple[int, ...]
    likeness: Likeness = "exact"


def replace(text: str, old: str, new: str, *, newline: str, everywhere: bool) -> Replaced:
    """Replace `old`, which must be there once, or at least once if `everywhere`.

    Line ends are compared without regard to CR; what is put in gets the line ends of the place, else `newline`.
    Where it is not there, whole lines that differ in white space only are taken, if they are there once: lines that
    `new` leaves as they are in `old` stay as they are in the text, the others get its indentation.

    Raises:
        ToolFailed: not there (the nearest block is shown), or more than once (the lines are listed).
    """
    old = old.removeprefix("\ufeff").replace("\r\n", "\n")
    if not old:
        raise ToolFailed("old is empty; to create or replace a whole file use the write tool")
    flat, carriages = _without_cr(text)
    likeness: Likeness = "exact"
    found = [Span(start, start + len(old), new) for start in _occurrences(flat, old, overlapping=not everywhere)]
    if not found:
        found, likeness = _alike(flat, old, new.replace("\r\n", "\n"))
    lines = tuple(flat.count("\n", 0, span.start) + 1 for span in found)
    if len(found) > 1 and not everywhere:
        listed = ", ".join(map(str, lines[:MAX_LISTED])) + (", …" if len(lines) > MAX_LISTED else "")
        raise ToolFailed(
            f"old was found {len(found)} times, in lines {listed}; give more of the text around the one that is "
            "meant, or set replace_all"
        )
    parts: list[str] = []
    end = 0
    for span in found:
        first, last = (at + bisect_left(carriages, at) for at in (span.start, span.end))
        parts += [text[end:first], _with_line_ends(span.new, text[first:last], newline, bool(carriages))]
        end = last
    return Replaced("".join([*parts, text[end:]]), lines, likeness)


def _alike(flat: str, old: str, new: str) -> tuple[list[Span], Likeness]:
    """Return the one place where whole lines are like `old` but for white space, and what to put there.

    Raises:
        ToolFailed: there is none, or more than one.
    """
    texts = flat.split("\n")
    wanted = old.removesuffix("\n").split("\n")
    found = Finder(texts).find(wanted, most="but for indentation") if old.strip() else None
    there = texts[found.at : found.at + len(wanted)] if found else []
    indent = shift(wanted, there) if found else None
    if found is None or indent is None:
        raise ToolFailed(f"old was not found. {nearest(texts, old.strip(chr(10)).split(chr(10)))}")
    if found.others:
        raise ToolFailed(
            f"old was not found as it is, and {found.likeness} it is there {found.others + 1} times, first in line "
            f"{found.at + 1}; give its white space exactly, or more text around it. {nearest(texts, wanted)}"
        )
    start = sum(len(text) + 1 for text in texts[: found.at])
    end = start + sum(len(text) + 1 for text in there) - 1
    ended = new.endswith("\n")
    put = "\n".join(_merged(there, wanted, new.removesuffix("\n").split("\n"), indent)) if new else ""
    if old.endswith("\n") and end == len(flat):
        ended = False  # the file has no line end there, and gets none
    elif old.endswith("\n"):
        end += 1
    return [Span(start, end, put + "\n" if ended else put)], found.likeness


def _merged(there: list[str], old: list[str], new: list[str], indent: Callable[[str], str]) -> list[str]:
    """Return the new lines: those of `old` as they are there, the others with the indentation of what is there."""
    if len(old) + len(new) > _MAX_COMPARED:
        return [indent(line) for line in new]
    merged: list[str] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        merged += there[i1:i2] if tag == "equal" else [indent(line) for line in new[j1:j2]]
    return merged


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added and removed, as a diff would count them."""
    old, new = before.split("\n"), after.split("\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(new) > _MAX_COMPARED:  # above this the figure is only an upper bound
        return len(new), len(old)
    same = sum(block.size for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return len(new) - same, len(old) - same


def _without_cr(text: str) -> tuple[str, list[int]]:
    """Return the text with LF for CR LF, and where in it each of those LFs is."""
    positions: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        positions.append(at - len(positions))
        at = text.find("\r\n", at + 2)
    return text.replace("\r\n", "\n"), positions


def _occurrences(text: str, old: str, *, overlapping: bool) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + (1 if overlapping else len(old)))
    return found


def _with_line_ends(new: str, replaced: str, newline: str, any_cr: bool) -> str:
    """Return `new` with the line ends of what it replaces, or of the file. A file without CR takes it as it is."""
    if not any_cr:
        return new
    crlf, lf = replaced.count("\r\n"), replaced.count("\n")
    if lf and crlf in (0, lf):
        newline = "\r\n" if crlf else "\n"
    return new.replace("\r\n", "\n").replace("\n", newline)
