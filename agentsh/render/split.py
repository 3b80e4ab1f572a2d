"""Where a streaming Markdown text has come to the end of a top-level block.

The splitter sees whole lines only, so any chunking of a text gives the same blocks as the text at once, and the
work grows with the text. The items of a list are blocks of their own, code comes by lines, and so do the rows of a
table once its columns are known: what is finished can be printed at once, and what is open stays small. Blocks are
laid out in order; references between them do not exist.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentsh.base.text import clean
from agentsh.render.constructs import Whole

Kind = Literal["text", "heading", "rule", "item", "code", "table"]

PIECE_LINES = 200
CODE_CHARS = 8_000
"""A comment or a string in code that is longer than this is not waited for."""
PIECE_CHARS = 2_000
"""Any other block longer than this is closed at the end of a line: no layout of one block takes long."""
TABLE_ROWS = 40
"""So many rows, or those in `PIECE_CHARS`, decide how wide the columns of a table are; the rest come one by one."""
LINE_CHARS = 32_000
"""A line longer than this is broken."""

_FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`]*$)|~{3,})\s*(.*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_DELIMITERS = re.compile(r"^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_PIPE = re.compile(r"(?<!\\)\|")
_LANGUAGE = re.compile(r"[\w+#.-]+")
_MARKER = re.compile(r"^( {0,3})([-+*]|(\d{1,9})([.)]))( {1,4}(?=\S)| |$)")
_ENDS_TABLE = re.compile(
    "|".join([_FENCE.pattern, _HEADING.pattern, _RULE.pattern, _MARKER.pattern, r"^ {0,3}>|^ *(\t| {4})"])
)
"""What the parser takes for no row of a table, whatever stands in it."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that is finished.

    gap: an empty line stands before it. number: of an ordered item. info: what stands behind the fence of code, the
    first part of a table. more: it goes on with the block before it.
    """

    kind: Kind
    text: str
    gap: bool
    number: int | None = None
    info: str = ""
    more: bool = False


class BlockSplitter:
    """Feed text, take blocks; `finish` gives the rest. One for each text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._piece_chars = 0
        self._kind: Kind | None = None
        self._lines: list[str] = []
        self._chars = 0
        self._blanks = 0
        self._gap = False
        self._first = True
        self._fence = ("", 0, 0)
        self._info = ""
        self._more = False
        self._offset = 0
        self._inner_fence: tuple[str, int, str] | None = None
        self._fence_before: tuple[str, int, str] | None = None
        self._number: int | None = None
        self._style = ""
        self._last: Kind | None = None
        self._whole = Whole("")
        self._table = ""
        self._quote = False

    def feed(self, text: str) -> list[Block]:
        """Take more text; return the blocks that are now finished."""
        found: list[Block] = []
        start = 0
        while (end := text.find("\n", start)) >= 0:
            self._hold(text[start:end], found)
            found.extend(self._whole_line())
            start = end + 1
        self._hold(text[start:], found)
        return found

    def finish(self) -> list[Block]:
        """Return what is left."""
        found = list(self._whole_line()) if self._pieces else []
        found.extend(self._close())
        return found

    def open_block(self, max_chars: int) -> Block | None:
        """Return the block that is not finished yet, for a preview: at most about its last `max_chars` characters."""
        lines = ["".join(self._pieces)[-max_chars:]] if self._pieces else []
        chars = sum(map(len, lines))
        whole = True
        for line in reversed(self._lines):
            chars += len(line) + 1
            if chars > max_chars:
                whole = False
                break
            lines.append(line)
        if not any(line.strip() for line in lines):
            return None
        text = clean("\n".join(reversed(lines)))
        if self._kind == "code":
            return Block("code", text, self._gap, None, self._info, self._more or not whole)
        if self._kind == "table" and whole:
            return Block("table", text, self._gap, None, self._table, bool(self._table))
        if self._kind is None:  # only the start of a line: it may become anything
            return Block("text", text, self._blanks > 0 and not self._first)
        kind: Kind = "item" if self._kind == "item" and whole else "text"
        return Block(kind, text, self._gap, self._number if whole else None, "", self._more)

    def _hold(self, text: str, found: list[Block]) -> None:
        """Keep a part of a line; break the line where it is too long, at a place that no chunking moves."""
        while self._piece_chars + len(text) > LINE_CHARS:
            room = LINE_CHARS - self._piece_chars
            self._pieces.append(text[:room])
            text = text[room:]
            found.extend(self._whole_line())
        if text:
            self._pieces.append(text)
            self._piece_chars += len(text)

    def _whole_line(self) -> Iterator[Block]:
        raw = "".join(self._pieces)
        self._pieces.clear()
        self._piece_chars = 0
        for line in clean(raw.removesuffix("\r")).split("\n"):  # a lone CR inside a line has become a line end
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[Block]:
        if self._kind == "code":
            yield from self._code_line(line)
        elif not line.strip():
            yield from self._blank()
        elif self._kind == "item" and self._in_item(line):
            yield from self._item_line(line)
        elif self._kind == "text" and not self._interrupts(line):
            yield from self._text_line(line)
        elif self._kind == "table" and not _ENDS_TABLE.match(line):
            self._add(line)
            if self._table or len(self._lines) >= TABLE_ROWS + 2 or self._chars > PIECE_CHARS:
                yield self._some_rows()
        else:
            self._blanks = max(self._blanks, int(self._kind == "table"))
            yield from self._close()
            yield from self._start(line)

    def _code_line(self, line: str) -> Iterator[Block]:
        mark, length, indent = self._fence
        bare = line.strip()
        if len(bare) >= length and not bare.strip(mark) and len(line) - len(line.lstrip(" ")) <= 3:
            yield from self._close()
            return
        strip = min(indent, len(line) - len(line.lstrip(" ")))
        self._add(line[strip:])
        if self._whole.ends(line) or len(self._lines) >= PIECE_LINES or self._chars > CODE_CHARS:
            yield self._piece("code", self._info)

    def _piece(self, kind: Kind, info: str = "", number: int | None = None) -> Block:
        """Return what there is of the open block, which goes on."""
        piece = Block(kind, "\n".join(self._lines), self._gap, number, info, self._more)
        self._lines, self._chars = [], 0
        self._more, self._gap = True, False
        return piece

    def _text_line(self, line: str) -> Iterator[Block]:
        if self._begins_table(line):
            yield from self._start_table()
        if self._more:  # a piece that would begin with what it did not mean while it stood in the middle
            line = line.lstrip()
            line = f"> {line}" if self._quote and not line.startswith(">") else line
        self._add(line)
        if self._kind == "text" and self._chars > PIECE_CHARS:
            yield self._piece("text")

    def _begins_table(self, line: str) -> bool:
        """Whether a line makes the one before it the head of a table."""
        if not self._lines or self._quote:
            return False
        head = self._lines[-1]
        return "|" in line and "|" in head and bool(_DELIMITERS.match(line)) and _cells(head) == _cells(line)

    def _start_table(self) -> Iterator[Block]:
        head = self._lines.pop()
        if self._lines:
            yield from self._close()
            self._gap = True
        self._kind, self._table, self._more = "table", "", False
        self._lines, self._chars = [head], len(head) + 1

    def _some_rows(self) -> Block:
        piece = self._piece("table", self._table)
        self._table = self._table or piece.text
        return piece

    def _item_line(self, line: str) -> Iterator[Block]:
        """Take a line of an item; let go what is there of one that is long, where that can be seen to be whole."""
        indent = len(line) - len(line.lstrip(" "))
        fence, now = self._fence_before, self._inner_fence
        closes = fence is not None and now is None
        apart = indent <= self._offset or fence is not None or self._chars > 2 * PIECE_CHARS
        if self._chars > PIECE_CHARS and apart and not closes:
            gap, self._blanks = self._blanks > 0, 0
            yield self._piece("item", number=self._number)
            self._gap = gap
            if fence is not None:
                self._add(fence[0] * fence[1] + language(fence[2]))
        self._add(line[min(indent, self._offset) :] if self._more else line)

    def _blank(self) -> Iterator[Block]:
        if self._kind == "item":
            self._blanks += 1  # whether the item goes on is seen at the next line with text
            return
        yield from self._close()
        self._blanks += 1

    def _in_item(self, line: str) -> bool:
        """Whether the line belongs to the open item."""
        indent = len(line) - len(line.lstrip(" \t"))
        if "\t" in line[:indent]:
            indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))
        self._fence_before = self._inner_fence
        if indent >= self._offset:
            self._watch_fence(line.lstrip())
            return True
        self._inner_fence = None
        if self._blanks or _MARKER.match(line) or _RULE.match(line):
            return False
        return not self._interrupts(line)

    def _watch_fence(self, bare: str) -> None:
        found = _FENCE.match(bare)
        if self._inner_fence is None:
            if found:
                self._inner_fence = (found[2][0], len(found[2]), found[3])
            return
        mark, length, _ = self._inner_fence
        if len(bare.rstrip()) >= length and not bare.strip().strip(mark):
            self._inner_fence = None

    def _interrupts(self, line: str) -> bool:
        """Whether a line ends the paragraph before it. `---` does not: it makes the paragraph a heading."""
        if _FENCE.match(line) or _HEADING.match(line):
            return True
        if _RULE.match(line):
            return "-" not in line or " " in line.strip()
        marker = _MARKER.match(line)
        return bool(marker and marker[5] and marker[3] in (None, "1"))

    def _start(self, line: str) -> Iterator[Block]:
        self._gap = self._blanks > 0 and not self._first
        self._blanks, self._first = 0, False
        fence, marker = _FENCE.match(line), _MARKER.match(line)
        if fence:
            self._kind, self._more = "code", False
            self._fence = (fence[2][0], len(fence[2]), len(fence[1]))
            self._info = fence[3].strip()
            self._whole = Whole(language(self._info))
        elif _HEADING.match(line):
            self._kind = "heading"
            self._add(line)
            yield from self._close()
        elif _RULE.match(line):
            self._kind = "rule"
            self._add(line)
            yield from self._close()
        elif marker:
            self._start_item(line, marker)
        else:
            self._kind, self._more, self._quote = "text", False, line.lstrip().startswith(">")
            self._add(line)

    def _start_item(self, line: str, marker: re.Match[str]) -> None:
        style = marker[4] or marker[2]
        goes_on = self._last == "item" and style == self._style and self._number is not None
        self._number = None if marker[3] is None else (self._number or 0) + 1 if goes_on else int(marker[3])
        self._style = style
        self._kind, self._inner_fence, self._more = "item", None, False
        self._offset = marker.end() if marker[5] else marker.end() + 1
        self._add(line)
        self._watch_fence(line[marker.end() :])

    def _add(self, line: str) -> None:
        self._lines.extend([""] * self._blanks)
        self._blanks = 0
        self._lines.append(line)
        self._chars += len(line) + 1

    def _close(self) -> Iterator[Block]:
        kind, self._kind = self._kind, None
        if kind is None:
            return
        self._last = kind
        if self._lines or (kind == "code" and not self._more):
            info = self._info if kind == "code" else self._table if kind == "table" else ""
            number = self._number if kind == "item" else None
            yield Block(kind, "\n".join(self._lines), self._gap, number, info, self._more)
        self._lines, self._chars, self._more, self._table = [], 0, False, ""


def language(info: str) -> str:
    """Return the language that the words behind a fence begin with."""
    found = _LANGUAGE.match(info)
    return found[0] if found else ""


def _cells(line: str) -> int:
    """Return how many cells a line of a table has."""
    return len(_PIPE.findall(line.strip().removeprefix("|").removesuffix("|"))) + 1


def split(text: str) -> list[Block]:
    """Return all blocks of a whole text."""
    splitter = BlockSplitter()
    return [*splitter.feed(text), *splitter.finish()]
