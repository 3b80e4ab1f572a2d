"""Tool calls on the screen: what is running, and the lines that a result and its edits leave."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from agentsh.base.text import left_out, one_line, plural
from agentsh.context.items import ending
from agentsh.events.event import Event
from agentsh.events.tool import CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.user import UserCommand, UserCommandEnded
from agentsh.ports.texts import Texts
from agentsh.render import theme
from agentsh.render.paint import Painter, fit, shown

DETAIL_HEAD = 3
DETAIL_ROWS = 8
DIFF_ROWS = 40
OWN_ROWS = 60
"""Of what a command of the user's own printed: they asked to see it."""
NARROW = 60
WHOLE = " · Ctrl-O"
PROGRESS_CHARS = 4_000

SUBJECTS = ("command", "pattern", "query", "question", "url", "path", "name", "id", "patch")
"""Arguments that say by themselves what a call is about; the first that is there. A test holds them against what our
tools say of themselves, which no fact tells. Of any other tool the first short argument is shown, with its name."""
MAX_OTHER_CHARS = 80
_PATCHED = re.compile(r"^\s*\*\*\* (?:(?:Add|Update|Delete) File|Move to): *(.+?)\s*$", re.MULTILINE)

_STATUS: dict[str, tuple[str, Style]] = {
    "ok": ("", theme.GOOD),
    "error": ("failed", theme.BAD),
    "denied": ("denied", theme.WARN),
    "interrupted": ("interrupted", theme.WARN),
    "timed_out": ("timed out", theme.WARN),
    "unknown": ("unknown: it may have run", theme.WARN),
}


@dataclass(slots=True)
class OpenCall:
    """A call without a result. began_s: when it started, on the screen's own clock."""

    name: str
    subject: str
    began_s: float | None = None
    output: str = ""
    edits: list[CodeEdit] = field(default_factory=list)

    def add_output(self, text: str) -> None:
        """Keep the newest output, for the preview."""
        self.output = (self.output + text)[-PROGRESS_CHARS:]


class Calls:
    """The calls that are open, by the seq of their tool_call, and of their tool_started.

    full: long outputs and edits are not folded, and the terminal wraps their lines.
    """

    def __init__(self, painter: Painter, texts: Texts, *, full: bool = False) -> None:
        self._full = full
        self._painter = painter
        self._texts = texts
        self._open: dict[int, OpenCall] = {}
        self._started: dict[int, int] = {}

    def asked(self, event: Event, fact: ToolCall) -> None:
        """A model asked for a call."""
        self._open[event.seq] = OpenCall(one_line(fact.name, 40), subject_of(self._texts.text(fact.arguments)))

    def started(self, event: Event, fact: ToolStarted, now_s: float) -> None:
        """A call is running."""
        call = self._open.get(event.cause or 0)
        if call is not None and event.cause is not None:
            call.began_s = now_s
            self._started[event.seq] = event.cause

    def find(self, seq: int | None) -> OpenCall | None:
        """Return the open call that a fact with this cause is about."""
        return self._open.get(self._started.get(seq or 0, seq or 0))

    def running(self) -> Iterable[OpenCall]:
        """Return the calls that run now."""
        return [call for call in self._open.values() if call.began_s is not None]

    def clear(self) -> None:
        """Forget all: the turn is over."""
        self._open.clear()
        self._started.clear()

    def command(self, event: Event, fact: UserCommand, now_s: float) -> None:
        """The user runs a command."""
        name = "!" if fact.joins else "!!"
        self._open[event.seq] = OpenCall(name, one_line(self._texts.text(fact.command), 1_000), now_s)

    def command_ended(self, event: Event, fact: UserCommandEnded, width: int) -> list[str]:
        """Return the lines of a command of the user's: itself, how it ended, what it printed."""
        call = self._open.pop(event.cause or 0, None) or OpenCall("!", "a command")
        parts = [ending(fact)]
        if fact.duration_ms:
            parts.append(theme.duration(fact.duration_ms))
        end = fit(" · ".join(parts), max(width - 6, 8))
        subject = fit(call.subject, max(width - len(call.name) - len(end) - 3, 8))
        good = fact.status == "ok" and not fact.exit
        line = Text.assemble(
            (call.name, theme.USER_MARK), " " + subject, ("  " + end, theme.DIM if good else theme.BAD)
        )
        lines = [row.rstrip() for row in shown(self._texts.text(fact.text)).rstrip("\n").split("\n")]
        rows = [self._painter.row(line, width)]
        if self._full:
            return rows + _indented(lines)
        for row in fold(lines, OWN_ROWS, OWN_ROWS // 2, WHOLE) if any(lines) else []:
            rows += [
                f"  {part}" for part in self._painter.rows(Text(row, overflow="fold"), max(width - 2, 8)) or [""]
            ]
        return [row.rstrip() for row in rows]

    def edited(self, event: Event, fact: CodeEdit, width: int) -> list[str]:
        """Return the lines of an edit, or keep it until the result of its call is there."""
        call = self.find(event.cause)
        if call is None:
            return self._diff(fact, width)
        call.edits.append(fact)
        return []

    def finished(self, event: Event, fact: ToolResult, width: int) -> list[str]:
        """Return the lines of a result, its edits below it."""
        call = self.find(event.cause) or OpenCall("tool", "")
        seq = self._started.pop(event.cause or 0, event.cause or 0)
        self._open.pop(seq, None)
        summary, _, detail = shown(self._texts.text(fact.for_user)).strip("\n").partition("\n")
        rows = [self._head(call, fact, summary, width)]
        for edit in call.edits:
            rows.extend(self._diff(edit, width, named=len(call.edits) > 1))
        return rows if call.edits else rows + self._detail(detail, width)

    def _head(self, call: OpenCall, fact: ToolResult, summary: str, width: int) -> str:
        word, style = _STATUS[fact.status]
        parts = [word] if word else []
        if fact.exit is not None:
            parts.append(f"exit {fact.exit}")
            style = theme.BAD if fact.exit and fact.status == "ok" else style
        note = _news(summary, call, fact)
        if note:
            parts = [note] if fact.status == "denied" else [*parts, note]
        if fact.duration_ms:
            parts.append(theme.duration(fact.duration_ms))
            needed = cell_len(f"{call.name} {call.subject} {' · '.join(parts)}") + 6
            if width < NARROW and needed > width:
                parts.pop()  # there, what it was about says more than how long it took
        room = width - len(call.name) - 6
        if style is theme.GOOD:
            room -= min(cell_len(call.subject), width // 2)
        elif fact.status == "denied":  # what was denied is told too, not only why
            room -= min(cell_len(call.subject), width // 4)
        end = fit(" · ".join(parts), max(room, 8))
        subject = fit(call.subject, max(width - len(call.name) - len(end) - 7, 0))
        line = Text.assemble(("● ", style), (call.name, theme.BOLD))
        if subject:
            line.append(" " + subject)
        if end:
            line.append("  " + end, theme.DIM if style is theme.GOOD else style)
        return self._painter.row(line, width)

    def _detail(self, detail: str, width: int) -> list[str]:
        lines = [line.rstrip() for line in detail.split("\n")] if detail.strip() else []
        if self._full:
            return _indented(lines)
        return [
            self._painter.row(Text("  " + line, theme.DIM), width)
            for line in fold(lines, DETAIL_ROWS, DETAIL_HEAD, WHOLE)
        ]

    def _diff(self, edit: CodeEdit, width: int, *, named: bool = True) -> list[str]:
        lines = shown(self._texts.text(edit.diff)).rstrip("\n").split("\n")
        rows = (
            [self._painter.row(Text.assemble("  ", (one_line(edit.path, 200), theme.BOLD)), width)] if named else []
        )
        if self._full:
            return rows + _indented(lines)
        kept = fold(lines, DIFF_ROWS, DIFF_ROWS) if any(lines) else []
        return rows + [self._painter.row(Text("  " + line, _diff_style(line)), width) for line in kept]


def _indented(lines: list[str]) -> list[str]:
    """Return lines as they are: millions of them are laid out by nobody."""
    return [f"  {line}".rstrip() for line in lines] if any(lines) else []


def subject_of(arguments: str) -> str:
    """Return what a call is about, on one line, from the text of its arguments; empty where nothing says it."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return one_line(arguments, 200)
    if not isinstance(values, dict):
        return one_line(arguments, 200)
    texts = {name: value for name, value in values.items() if isinstance(value, str) and value.strip()}
    for name in SUBJECTS:
        if name in texts:
            files = _PATCHED.findall(texts[name]) if name == "patch" else ()
            return one_line(", ".join(dict.fromkeys(files)) or texts[name], 200)
    short = (f"{n}: {v}" for n, v in texts.items() if "\n" not in v and len(n) + len(v) <= MAX_OTHER_CHARS)
    return one_line(next(short, ""), 200)


def fold(lines: list[str], most: int, head: int, hint: str = "") -> list[str]:
    """Return at most `most` + 1 lines: the first `head`, how many are left out, and the last ones.

    hint: what shows them, where something does.
    """
    if len(lines) <= most + 1:
        return lines
    tail = most - head
    between = lines[head : len(lines) - tail]
    more = sum(left_out(line) or 1 for line in between)
    return [*lines[:head], f"… {plural(more, 'more line')}{hint}", *lines[len(lines) - tail :]]


def _news(summary: str, call: OpenCall, fact: ToolResult) -> str:
    """Return what a result's first line says beyond name, subject, exit and status."""
    text = " ".join(summary.split())
    for known in (call.name, call.subject.rstrip("…")):
        if known and text.startswith(known):
            text = text[len(known) :].lstrip(" ·:…")
    text = text.removesuffix(f"exit {fact.exit}").rstrip(" ·")
    return "" if text in (fact.status, _STATUS[fact.status][0], "it may have run") else text


def _diff_style(line: str) -> Style:
    if line.startswith("+"):
        return theme.ADDED
    if line.startswith("-"):
        return theme.REMOVED
    return theme.HUNK if line.startswith("@@") else theme.DIM
