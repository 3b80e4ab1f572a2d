"""Replaces text in text, byte for byte elsewhere, and says where a text that is not there might have been meant."""

import difflib
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from agentsh.base.errors import ToolFailed

MAX_LISTED = 20
MAX_NEAR_LINES = 30
MAX_NEAR_CHARS = 200
_MAX_COMPARED = 5_000
_SIMILAR = 0.6


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new text. lines: the number of the line in which each occurrence began."""

    text: str
    lines: tuple[int, ...]


def replace(text: str, old: str, new: str, *, newline: str, everywhere: bool) -> Replaced:
    """Replace `old`, which must be there once, or at least once if `everywhere`.

    Line ends are compared without regard to CR; what is put in gets the line ends of the place, else `newline`.

    Raises:
        ToolFailed: not there (the nearest block is shown), or more than once (the lines are listed).
    """
    old = old.removeprefix("\ufeff").replace("\r\n", "\n")
    if not old:
        raise ToolFailed("old is empty; to create or replace a whole file use the write tool")
    flat, carriages = _without_cr(text)
    found = _occurrences(flat, old, overlapping=not everywhere)
    if not found:
        raise ToolFailed(f"old was not found. {_near(flat, old)}")
    lines = tuple(flat.count("\n", 0, start) + 1 for start in found)
    if len(found) > 1 and not everywhere:
        listed = ", ".join(map(str, lines[:MAX_LISTED])) + (", …" if len(lines) > MAX_LISTED else "")
        raise ToolFailed(
            f"old was found {len(found)} times, in lines {listed}; give more of the text around the one that is "
            "meant, or set replace_all"
        )
    parts: list[str] = []
    end = 0
    for start in found:
        first, last = (at + bisect_left(carriages, at) for at in (start, start + len(old)))
        parts += [text[end:first], _with_line_ends(new, text[first:last], newline, bool(carriages))]
        end = last
    return Replaced("".join([*parts, text[end:]]), lines)


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


def _near(text: str, old: str) -> str:
    """Say which part of the text is most like `old`, with its white space made visible."""
    lines = text.split("\n")
    wanted = old.strip("\n").split("\n")
    start = _nearest(lines, wanted)
    if start is None:
        return "Nothing in the file is like it; read the file again."
    block = lines[start : start + len(wanted)]
    what = f"line {start + 1}" if len(block) == 1 else f"lines {start + 1}-{start + len(block)}"
    if block == wanted:
        why = "They differ only in the line ends before or after."
    elif [_words(line) for line in block] == [_words(line) for line in wanted]:
        why = "They differ only in white space."
    else:
        why = "Copy the text exactly."
    shown = "\n".join(_visible(line) for line in block[:MAX_NEAR_LINES])
    if len(block) > MAX_NEAR_LINES:
        shown += f"\n[… {len(block) - MAX_NEAR_LINES} more lines]"
    return f"Nearest: {what} (· is a space at the start or end of a line, → a tab). {why}\n{shown}"


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """Return the index of the line where `wanted` most likely was meant to begin: most lines alike but for spaces."""
    index: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        index.setdefault(_words(line), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted[:MAX_NEAR_LINES]):
        words = _words(line)
        if words:
            votes.update(number - offset for number in index.get(words, ())[:_MAX_COMPARED] if number >= offset)
    if votes:
        return votes.most_common(1)[0][0]
    offset, longest = max(enumerate(wanted), key=lambda pair: len(pair[1].strip()))
    unique = [words for words in index if words][:_MAX_COMPARED]
    target = _words(longest)[:MAX_NEAR_CHARS]
    close = difflib.get_close_matches(target, [w[:MAX_NEAR_CHARS] for w in unique], 1, _SIMILAR)
    if not close:
        return None
    whole = next(words for words in unique if words[:MAX_NEAR_CHARS] == close[0])
    return max(index[whole][0] - offset, 0)


def _words(line: str) -> str:
    return " ".join(line.split())


def _visible(line: str) -> str:
    body = line.strip(" \t")
    start = line[: len(line) - len(line.lstrip(" \t"))] if body else line
    end = line[len(start) + len(body) :]
    marked = start.replace(" ", "·") + body + end.replace(" ", "·")
    marked = marked.replace("\t", "→")
    return marked if len(marked) <= MAX_NEAR_CHARS else marked[:MAX_NEAR_CHARS] + "…"
