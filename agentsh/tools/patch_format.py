"""Reads patches in the `*** Begin Patch` form, which the codex project made common.

Source of the grammar: `apply_patch_tool_instructions.md` and the scenarios beside it, in github.com/openai/codex.
What models get wrong and cannot be misunderstood is taken: blanks around marker lines, code fences or a heredoc
around the patch, a missing `@@` before the first hunk, empty lines for empty context, CRLF.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentsh.base.errors import ToolFailed
from agentsh.base.light import dataclass, field
from agentsh.base.text import one_line

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
FORM = (
    "A patch begins with `*** Begin Patch`, ends with `*** End Patch`, and has in between sections that begin with "
    "`*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`"
)
_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: *(.*)")
_MOVE = re.compile(r"\*\*\* Move to: *(.*)")
_FENCE = re.compile(r"```\w*|(?:apply_patch )?<<-? *(['\"]?)(\w+)\1")

_RANGES = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")

Sign = Literal[" ", "-", "+"]
_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


class Line(NamedTuple):
    """One line of a hunk. text: without its sign."""

    sign: Sign
    text: str


@dataclass(slots=True)
class Hunk:
    """One place of a file. headers: texts after `@@`, each to be looked for first. line: in the patch, from 1."""

    line: int
    headers: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [line.text for line in self.lines if line.sign != "+"]


@dataclass(slots=True)
class Section:
    """What becomes of one file. added: the lines of a new one."""

    kind: Literal["add", "update", "delete"]
    path: str
    move_to: str | None = None
    added: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)


def parse_patch(text: str) -> list[Section]:
    """Return the sections of a patch, in order; at least one.

    Raises:
        ToolFailed: it is no patch; the message names the line of the patch and what may stand there.
    """
    lines = text.replace("\r\n", "\n").strip().split("\n")
    lines, first = _unwrapped(lines)
    if lines[0].strip() != BEGIN:
        raise ToolFailed(f"the first line is {one_line(lines[0], 80)!r}. {FORM}")
    if lines[-1].strip() != END:
        raise ToolFailed(f"the last line is {one_line(lines[-1], 80)!r}: the patch seems to be cut off. {FORM}")
    reader = _Reader(lines[1:-1], first + 1)
    sections = list(reader.sections())
    if not sections:
        raise ToolFailed(f"the patch changes no file. {FORM}")
    return sections


def touched(text: str) -> tuple[str, ...]:
    """Return the paths that a patch names, those of moves too; nothing where it is no patch and changes nothing."""
    try:
        sections = parse_patch(text)
    except ToolFailed:
        return ()
    found = (path for section in sections for path in (section.path, section.move_to) if path is not None)
    return tuple(dict.fromkeys(found))


def _unwrapped(lines: list[str]) -> tuple[list[str], int]:
    """Return the lines without a fence or heredoc around them, and the number of the first."""
    fence = _FENCE.fullmatch(lines[0].strip())
    if fence is not None and len(lines) > 2 and lines[-1].strip() in ("```", fence[2]):
        return lines[1:-1], 2
    return lines, 1


class _Reader:
    """Reads sections. first: the number of the first line."""

    def __init__(self, lines: list[str], first: int) -> None:
        self._lines = lines
        self._first = first
        self._at = 0

    def sections(self) -> Iterator[Section]:
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            if not line:
                self._at += 1
                continue
            found = _SECTION.fullmatch(line)
            if found is None:
                raise self._wrong(f"{one_line(line, 80)!r} begins no section. {FORM}")
            self._at += 1
            yield self._section(found[1], found[2].strip())

    def _section(self, kind: str, path: str) -> Section:
        if not path:
            raise self._wrong(f"*** {kind} File: names no file", -1)
        if kind == "Delete":
            return Section("delete", path)
        if kind == "Add":
            return Section("add", path, added=list(self._added(path)))
        section = Section("update", path)
        moved = _MOVE.fullmatch(self._lines[self._at].strip()) if self._at < len(self._lines) else None
        if moved is not None:
            self._at += 1
            section.move_to = moved[1].strip()
        while (hunk := self._hunk(path, first=not section.hunks)) is not None:
            section.hunks.append(hunk)
        if not section.hunks and not section.move_to:
            raise self._wrong(f"*** Update File: {one_line(path, 80)} has no hunk", -1)
        return section

    def _added(self, path: str) -> Iterator[str]:
        """Yield the lines of a new file. An empty line is one of it where more lines follow."""
        blank = 0
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("+"):
                yield from [""] * blank
                blank = 0
                yield line[1:]
            elif not line.strip():
                blank += 1
            elif line.lstrip().startswith("*** "):
                return
            else:
                raise self._wrong(f"each line of the new file {one_line(path, 80)} begins with +")
            self._at += 1

    def _hunk(self, path: str, *, first: bool) -> Hunk | None:
        self._skip_blank()
        hunk = Hunk(self._first + self._at)
        while self._at < len(self._lines) and (header := _header(self._lines[self._at])) is not None:
            self._at += 1
            if header:
                hunk.headers.append(header)
        begun = hunk.line < self._first + self._at
        if not begun and (self._at == len(self._lines) or _marker(self._lines[self._at].lstrip())):
            return None
        if begun or first:
            self._body(hunk)
        if not hunk.lines:
            raise self._wrong("a line of a hunk begins with a space, - or +; a new hunk begins with @@")
        return hunk

    def _body(self, hunk: Hunk) -> None:
        bare = 0  # empty lines at the end: of context, or between this hunk and what follows
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.rstrip() == END_OF_FILE:
                hunk.at_end = True
                self._at += 1
                return
            if line[:1] in _SIGNS:
                hunk.lines.append(Line(_SIGNS[line[:1]], line[1:]))
                bare = 0
            elif not line:
                hunk.lines.append(Line(" ", ""))
                bare += 1
            elif _header(line) is not None or _marker(line):
                break
            else:
                raise self._wrong(f"{one_line(line, 80)!r}: a line of a hunk begins with a space, - or +")
            self._at += 1
        del hunk.lines[len(hunk.lines) - bare :]

    def _skip_blank(self) -> None:
        while self._at < len(self._lines) and not self._lines[self._at].strip():
            self._at += 1

    def _wrong(self, what: str, offset: int = 0) -> ToolFailed:
        return ToolFailed(f"line {self._first + self._at + offset} of the patch: {what}")


def _header(line: str) -> str | None:
    """Return what stands after `@@`; None for a line that is no header. The ranges of a unified diff say nothing."""
    if not line.startswith("@@"):
        return None
    text = _RANGES.sub("", line.rstrip())
    return text.removeprefix("@@").removesuffix("@@").strip()


def _marker(line: str) -> bool:
    """Tell whether a line begins a section or moves a file."""
    return _SECTION.match(line) is not None or _MOVE.match(line) is not None
