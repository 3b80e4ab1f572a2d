"""Shows where in a file lines that are not there were most likely meant, as a diff with line numbers."""

import difflib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from agentsh.tools.lines import folded

MAX_NEAR_LINES = 30
MAX_NEAR_CHARS = 200
_MAX_COMPARED = 5_000
_MAX_LIKELY = 500
_SIMILAR = 0.6


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Say which lines of a file are most like the wanted ones, and how they differ; at most some 30 lines.

    Both without line ends. Blanks at the ends of a line and tabs are made visible.
    """
    start = _start(lines, wanted)
    if start is None:
        return "Nothing in the file is like it; read the file again."
    block = list(lines[start : start + len(wanted)])
    what = f"line {start + 1}" if len(block) == 1 else f"lines {start + 1}-{start + len(block)}"
    if block == list(wanted):
        return f"Nearest: {what}. They differ only in the line ends before or after."
    why = "Copy the text exactly."
    if [line.split() for line in block] == [line.split() for line in wanted]:
        why = "They differ only in white space."
    elif [_words(line) for line in block] == [_words(line) for line in wanted]:
        why = "They differ only in typographic quotes, dashes or blanks."
    key = "- is what you gave, + what is there; · is a space at the start or end of a line, → a tab"
    rows = list(_diff(block, list(wanted), start))
    if len(rows) > MAX_NEAR_LINES:
        rows[MAX_NEAR_LINES:] = [f"[… {len(rows) - MAX_NEAR_LINES} more lines]"]
    return "\n".join([f"Nearest: {what}. {why} ({key})", *rows])


def _diff(block: list[str], wanted: list[str], start: int) -> Iterator[str]:
    if len(block) + len(wanted) > _MAX_COMPARED:
        block, wanted = block[:MAX_NEAR_LINES], wanted[:MAX_NEAR_LINES]
    matcher = difflib.SequenceMatcher(None, block, wanted, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"{start + i + 1:>5}   {_visible(block[i])}" for i in range(i1, i2))
            continue
        yield from (f"      - {_visible(line)}" for line in wanted[j1:j2])
        yield from (f"{start + i + 1:>5} + {_visible(block[i])}" for i in range(i1, i2))


def _start(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
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
    target = _words(longest)
    unique = _likely(target, [words for words in index if words])
    cut = [words[:MAX_NEAR_CHARS] for words in unique]
    close = difflib.get_close_matches(target[:MAX_NEAR_CHARS], cut, 1, _SIMILAR)
    if not close:
        return None
    return max(index[unique[cut.index(close[0])]][0] - offset, 0)


def _likely(target: str, lines: list[str]) -> list[str]:
    """Return at most 500 lines, those that share the most words with `target`: to compare them takes a while."""
    if len(lines) <= _MAX_LIKELY:
        return lines
    words = set(target.split())
    return heapq.nlargest(_MAX_LIKELY, lines, key=lambda line: len(words.intersection(line.split())))


def _words(line: str) -> str:
    return " ".join(folded(line).split())


def _visible(line: str) -> str:
    body = line.strip(" \t")
    start = line[: len(line) - len(line.lstrip(" \t"))] if body else line
    end = line[len(start) + len(body) :]
    marked = start.replace(" ", "·") + body + end.replace(" ", "·")
    marked = marked.replace("\t", "→")
    return marked if len(marked) <= MAX_NEAR_CHARS else marked[:MAX_NEAR_CHARS] + "…"
