"""Lines of a file with their ends, and where lines that a model gives stand among them, near misses included."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

from agentsh.base.light import dataclass

Likeness = Literal["exact", "but for blanks at the ends", "but for indentation", "but for Unicode punctuation"]

_PUNCTUATION = str.maketrans(
    dict.fromkeys(map(chr, (*range(0x2010, 0x2016), 0x2212)), "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys(map(chr, (0xA0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000)), " ")
)
"""What models write in ASCII: dashes, quotes, blanks."""


def folded(line: str) -> str:
    """Return a line without blanks at its ends, typographic punctuation as ASCII."""
    return (line if line.isascii() else line.translate(_PUNCTUATION)).strip()


def begins(line: str, head: str) -> bool:
    """Tell whether a line begins with `head`, and goes on with another word where `head` ends with one."""
    rest = line[len(head) :]
    return line.startswith(head) and not (rest and _is_word(head[-1:]) and _is_word(rest[0]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


LEVELS: tuple[tuple[Likeness, Callable[[str], str] | None], ...] = (
    ("exact", None),
    ("but for blanks at the ends", str.rstrip),
    ("but for indentation", str.strip),
    ("but for Unicode punctuation", folded),
)
"""How lines are compared, the strictest way first."""


MAX_OTHERS = 20
"""Further places that are counted."""


class Found(NamedTuple):
    """Where lines stand. at: index of the first. others: how often they stand elsewhere, as far as looked for."""

    at: int
    likeness: Likeness
    others: int


@dataclass(slots=True)
class Lines:
    """The lines of a text. texts: without line ends. ends: of each, LF or CR LF; "" after a last line without."""

    texts: list[str]
    ends: list[str]

    @classmethod
    def of(cls, text: str) -> "Lines":
        """Split at LF and CR LF only."""
        texts, ends = [], []
        for line in text.split("\n"):
            cr = line.endswith("\r")
            texts.append(line[:-1] if cr else line)
            ends.append("\r\n" if cr else "\n")
        if cr:  # a lone CR at the very end is a character
            texts[-1] += "\r"
        ends[-1] = ""
        if texts[-1] == "":
            texts.pop()
            ends.pop()
        return cls(texts, ends)

    def __str__(self) -> str:
        return "".join(text + end for text, end in zip(self.texts, self.ends, strict=True))


class Finder:
    """Looks for runs of lines among those of a file; keeps what it has made of them for the next search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._ways: dict[Likeness, Sequence[str]] = {"exact": texts}
        self._indexes: dict[Likeness, dict[str, list[int]]] = {}

    def find(
        self, wanted: Sequence[str], start: int = 0, *, at_end: bool = False, most: Likeness = LEVELS[-1][0]
    ) -> Found | None:
        """Return the first place from `start` on, by the strictest comparison that finds one.

        at_end: rather where it ends the file. most: the loosest comparison. wanted: at least one line.
        """
        levels = LEVELS[: 1 + [likeness for likeness, _ in LEVELS].index(most)]
        if at_end:
            for likeness, form in levels:
                lines = self._lines(likeness, form)
                last = len(lines) - len(wanted)
                if last >= start and list(lines[last:]) == [form(line) if form else line for line in wanted]:
                    return Found(last, likeness, 0)
        for likeness, form in levels:
            given = [form(line) if form else line for line in wanted]
            places = self._places(self._lines(likeness, form), self._index(likeness), given, start)
            first = next(places, None)
            if first is not None:
                return Found(first, likeness, sum(1 for _ in islice(places, MAX_OTHERS)))
        return None

    def begun(self, head: str, start: int = 0) -> Found | None:
        """Return the first line from `start` on that begins with `head`, both folded. head: not blank."""
        likeness, form = LEVELS[-1]
        lines, head = self._lines(likeness, form), folded(head)
        at = next((at for at in range(start, len(lines)) if begins(lines[at], head)), None)
        return None if at is None else Found(at, likeness, 0)

    def _lines(self, likeness: Likeness, form: Callable[[str], str] | None) -> Sequence[str]:
        if likeness not in self._ways and form is not None:
            self._ways[likeness] = list(map(form, self._ways["exact"]))
        return self._ways[likeness]

    def _index(self, likeness: Likeness) -> dict[str, list[int]]:
        """Return where each line is."""
        if likeness not in self._indexes:
            index: dict[str, list[int]] = {}
            for number, line in enumerate(self._ways[likeness]):
                index.setdefault(line, []).append(number)
            self._indexes[likeness] = index
        return self._indexes[likeness]

    @staticmethod
    def _places(lines: Sequence[str], index: Mapping[str, list[int]], wanted: list[str], start: int) -> Iterator[int]:
        """Yield where `wanted` stands from `start` on: only where its rarest line does can it be."""
        offset, key = min(enumerate(wanted), key=lambda pair: len(index.get(pair[1], ())))
        positions = index.get(key, [])
        for at in islice(positions, bisect_left(positions, start + offset), None):
            first = at - offset
            if list(lines[first : first + len(wanted)]) == wanted:
                yield first


def shift(given: Sequence[str], there: Sequence[str]) -> Callable[[str], str] | None:
    """Return what turns the indentation of `given` lines into that of the lines that are `there`.

    Blanks added or taken at every line, tabs for a number of spaces or the reverse; None where no such rule holds.
    """
    pairs = [(_indent(g), _indent(t)) for g, t in zip(given, there, strict=True) if g.strip() and t.strip()]
    if all(g == t for g, t in pairs):
        return _same
    if (more := _extra(pairs)) is not None:
        return partial(_more, more)
    reverse = [(t, g) for g, t in pairs]
    if (less := _extra(reverse)) is not None:
        return partial(_less, less)
    if (width := _width(pairs)) is not None:
        return partial(_tabbed, width)
    if (width := _width(reverse)) is not None:
        return partial(_spaced, width)
    return None


def _same(line: str) -> str:
    return line


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _extra(pairs: Sequence[tuple[str, str]]) -> str | None:
    """Return what each second indent has before the first one, the same for all."""
    found = {long[: len(long) - len(short)] if long.endswith(short) else None for short, long in pairs}
    extra = found.pop()
    return extra if not found and extra else None


def _width(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return how many spaces of each first indent are one tab of the second; None where they are not so."""
    widths = set()
    for spaces, tabs in pairs:
        if spaces.strip(" ") or tabs.strip("\t") or bool(spaces) != bool(tabs):
            return None
        if tabs:
            if len(spaces) % len(tabs):
                return None
            widths.add(len(spaces) // len(tabs))
    return widths.pop() if len(widths) == 1 else None


def _more(extra: str, line: str) -> str:
    return extra + line if line.strip() else line


def _less(extra: str, line: str) -> str:
    return line.removeprefix(extra)


def _tabbed(width: int, line: str) -> str:
    tabs, spaces = divmod(len(_indent(line).expandtabs(width)), width)
    return "\t" * tabs + " " * spaces + line.lstrip(" \t")


def _spaced(width: int, line: str) -> str:
    return _indent(line).replace("\t", " " * width) + line.lstrip(" \t")
