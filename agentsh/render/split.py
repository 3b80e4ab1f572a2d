"""Where a streaming Markdown text has come to the end of a top-level block.

The splitter sees whole lines only, so any chunking of a text gives the same blocks as the text at once, and the
work grows with the text. The items of a list are blocks of their own, long code comes in pieces: what is finished
can be printed at once. Each block is then laid out alone; references between blocks do not exist.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentsh.base.text import clean

Kind = Literal["text", "heading", "rule", "item", "code"]

PIECE_LINES = 200
"""Code longer than this is printed in pieces."""
PIECE_CHARS = 16_000
"""Any other block longer than this is closed at the end of a line: no layout of one block takes long."""
LINE_CHARS = 32_000
"""A line longer than this is broken."""

_FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`]*$)|~{3,})\s*(.*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_MARKER = re.compile(r"^( {0,3})([-+*]|(\d{1,9})([.)]))( {1,4}(?=\S)| |$)")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that is finished.

    gap: an empty line stands before it. number: of an ordered item. info: the language of code.
    more: it goes on a block of code that was cut for its length.
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
        self._inner_fence: tuple[str, int] | None = None
        self._number: int | None = None
        self._style = ""
        self._last: Kind | None = None

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
        if self._kind is None:  # only the start of a line: it may become anything
            return Block("text", text, self._blanks > 0 and not self._first)
        kind: Kind = "item" if self._kind == "item" and whole else "text"
        return Block(kind, text, self._gap, self._number if whole else None)

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
            self._add(line)
        elif self._kind == "text" and not self._interrupts(line):
            self._add(line)
            if self._chars > PIECE_CHARS:
                yield from self._close()
        else:
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
        if len(self._lines) >= PIECE_LINES or self._chars > PIECE_CHARS:
            fence, info = self._fence, self._info
            yield from self._close()
            self._kind, self._fence, self._info, self._more, self._gap = "code", fence, info, True, False

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
        if indent >= self._offset:
            if self._chars > PIECE_CHARS:
                return False
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
                self._inner_fence = (found[2][0], len(found[2]))
            return
        mark, length = self._inner_fence
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
            self._info = fence[3].split()[0] if fence[3].split() else ""
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
            self._kind = "text"
            self._add(line)

    def _start_item(self, line: str, marker: re.Match[str]) -> None:
        style = marker[4] or marker[2]
        goes_on = self._last == "item" and style == self._style and self._number is not None
        self._number = None if marker[3] is None else (self._number or 0) + 1 if goes_on else int(marker[3])
        self._style = style
        self._kind, self._inner_fence = "item", None
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
        text = "\n".join(self._lines)
        self._lines, self._chars = [], 0
        if kind == "code":
            if text or not self._more:
                yield Block("code", text, self._gap, None, self._info, self._more)
            self._more = False
        else:
            yield Block(kind, text, self._gap, self._number if kind == "item" else None)


def split(text: str) -> list[Block]:
    """Return all blocks of a whole text."""
    splitter = BlockSplitter()
    return [*splitter.feed(text), *splitter.finish()]
