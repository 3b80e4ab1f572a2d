"""The screen: finished lines go to the scrollback once, what still moves is in the live region below it."""

import os
import time
from collections.abc import Callable
from typing import TextIO

from rich.text import Text

from agentsh.base.palette import Palette
from agentsh.base.text import one_line
from agentsh.events.event import Event, Opaque
from agentsh.events.signals import (
    DiskNearlyFull,
    ReasoningDelta,
    ReasoningEnded,
    Retrying,
    SavingStopped,
    Signal,
    TextDelta,
    ToolProgress,
)
from agentsh.events.tool import ApprovalAsked, CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, ContextBuilt, Thought, TurnFinished, UserMessage
from agentsh.events.user import SideAnswer, SideQuestion, UserCommand, UserCommandEnded
from agentsh.ports.texts import Texts
from agentsh.render import theme
from agentsh.render.asides import Asides
from agentsh.render.calls import Calls, OpenCall
from agentsh.render.lines import LINES, Page, opaque
from agentsh.render.live import LiveRegion, Region
from agentsh.render.paint import Painter, fit, shown
from agentsh.render.reply import Reply

REDRAW_S = 1 / 10
"""Between two drawings of the live region: quick enough for the eye, and few enough bytes for a slow line."""
TRICKLE_S = 1 / 4
TRICKLE_CHARS = 80
"""A reply that comes by a few characters is drawn less often: each drawing costs some bytes of its own."""
DRAWING_SHARE = 1 / 10
"""Of the time, at most, for drawing the live region: what takes long to lay out is drawn less often."""
SPIN_S = 1 / 4
RUNNING_ROWS = 4
DEFAULT_SIZE = (80, 24)
KINDS = {
    "user_message": "user",
    "approval_answered": "tool",
    "todo_changed": "tool",
    "opened": "opening",
    "recovered": "opening",
}
"""What a fact's lines stand together with, where it is not with other remarks."""
UNRECORDED = "! the reply above is not in the record: it broke off before it was saved"


class ScreenRenderer:
    """Shows a session in a terminal's own scrollback, or as plain lines.

    width: columns, or None for those of the terminal, taken anew for each block. live: whether previews are drawn;
    without it nothing but finished lines is written. region: where they are drawn, if not by this renderer itself.
    palette: the colours; None for those of the terminal. now_s: the clock of spinner and redraws.
    """

    def __init__(
        self,
        out: TextIO,
        *,
        width: int | None = None,
        colour: bool,
        live: bool,
        texts: Texts,
        region: Region | None = None,
        palette: Palette | None = None,
        now_s: Callable[[], float] = time.monotonic,
        full: bool = False,
    ) -> None:
        self._out = out
        self._fixed_width = width
        self._live = live
        self._texts = texts
        self._now_s = now_s
        self._painter = Painter(colour=colour, palette=palette)
        self._region = region or LiveRegion()
        self._calls = Calls(self._painter, texts, full=full)
        self._asides = Asides(texts)
        self._reply = Reply()
        self._last = ""
        self._suspended = False
        self._held: list[str] = []
        self._pending: list[str] = []
        self._busy_s: float | None = None
        self._compacting_s: float | None = None
        self._drawn_s = float("-inf")
        self._drawing_s = 0.0
        self._fresh = 0
        self._retry = ""
        self._alarm = ""
        self._asking = False

    def on(self, event: Event) -> None:
        """Show a fact."""
        fact = event.fact
        page = self._page()
        self._retry = ""
        match fact:
            case Opaque():
                self._put("note", opaque(page, fact))
            case AgentMessage():
                self._end_reply(page, fact)
            case ToolCall():
                self._calls.asked(event, fact)
            case ToolStarted():
                self._calls.started(event, fact, self._now_s())
            case CodeEdit():
                self._put("tool", self._calls.edited(event, fact, page.width))
            case ToolResult():
                self._put("tool", self._calls.finished(event, fact, page.width))
            case UserCommand():
                self._busy_s = self._now_s()
                self._calls.command(event, fact, self._busy_s)
            case UserCommandEnded():
                self._busy_s = None
                self._put("command", self._calls.command_ended(event, fact, page.width))
            case SideQuestion():
                self._asides.asked(event, fact, self._now_s())
            case SideAnswer():
                self._put("aside", self._asides.answered(page, event, fact))
            case _:
                self._asking = isinstance(fact, ApprovalAsked)
                self._turn_state(page, fact)
                kind = KINDS.get(fact.type, "note")
                self._put(kind, LINES[fact.type](page, event, fact))
        self._draw(force=True)
        self._flush()

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        """Show what comes from now on in other colours; what stands in the scrollback stays as it is."""
        self._painter.use(colour=colour, palette=palette)
        self._draw(force=True)
        self._flush()

    def remark(self, text: str) -> None:
        """Write a line that is no fact: what is not shown here."""
        self._put("note", self._page().line(text))
        self._flush()

    def signal(self, signal: Signal) -> None:
        """Preview. Finished blocks of a streaming reply are printed for good."""
        printed = False
        match signal:
            case TextDelta(text):
                self._retry = ""
                self._fresh += len(text)
                goes_on = self._reply.printed
                rows = self._reply.say(self._page(), text)
                self._put("answer", rows, goes_on=goes_on)
                printed = bool(rows)
            case ReasoningDelta(text):
                self._retry = ""
                self._reply.think(text)
            case ReasoningEnded(ms, words):
                self._reply.thought(Thought(ms=ms, words=words))
            case ToolProgress(call_seq, text):
                call = self._calls.find(call_seq)
                if call is not None:
                    call.add_output(text)
            case Retrying():
                wait = f"in {signal.delay_s:.0f} s" if signal.delay_s >= 1 else "now"
                self._retry = (
                    f"retry {signal.attempt} of {signal.max_attempts} {wait}: {one_line(signal.reason, 300)}"
                )
            case SavingStopped(reason):
                self._alarm = f"NOTHING IS BEING SAVED: {one_line(reason, 300)}"
            case DiskNearlyFull(reason):
                self._alarm = self._alarm or f"{one_line(reason, 300)}: nothing that has effects is started"
        if not self._live and isinstance(signal, (Retrying, SavingStopped, DiskNearlyFull)):
            self._put(
                "note", self._page().line(f"↻ {self._retry}" if self._retry else f"✗ {self._alarm}", theme.WARN)
            )
        self._draw(force=printed or isinstance(signal, (Retrying, SavingStopped, DiskNearlyFull)))
        self._flush()

    def tick(self) -> None:
        """Let spinner and elapsed time move on, and draw what came since the last drawing. Call it often."""
        self._draw(force=False)
        self._flush()

    def suspend(self) -> None:
        """Give the bottom of the terminal to somebody else: no live region, and facts wait until `resume`."""
        self._write(self._region.leave())
        self._flush()
        self._suspended = True

    def resume(self) -> None:
        """Take it back. Idempotent, as `suspend` is."""
        self._suspended = False
        held, self._held = self._held, []
        self._write("".join(held))
        self._flush()

    def close(self) -> None:
        """Take the live region away, show the cursor, and write what was held back."""
        self.resume()
        self._write(self._region.leave())
        self._flush()
        self._live = False

    def _turn_state(self, page: Page, fact: object) -> None:
        self._compacting_s = self._now_s() if isinstance(fact, ContextBuilt) and fact.summary else None
        if isinstance(fact, UserMessage) and self._busy_s is None:
            self._busy_s = self._now_s()
        elif isinstance(fact, TurnFinished):
            if self._reply.printed:
                self._put("note", page.line(UNRECORDED, theme.WARN))
            self._busy_s = None
            self._reply = Reply()
            self._calls.clear()
            self._alarm = ""

    def _end_reply(self, page: Page, fact: AgentMessage) -> None:
        goes_on = self._reply.printed
        self._put("answer", self._reply.end(page, fact, self._texts), goes_on=goes_on)
        self._reply = Reply()

    def _put(self, kind: str, rows: list[str], *, goes_on: bool = False) -> None:
        """Write finished lines. Blocks of different kinds, and replies, stand apart by an empty line."""
        if not rows:
            return
        apart = self._last and not goes_on and (kind != self._last or kind == "answer")
        text = "".join(row + "\n" for row in (["", *rows] if apart else rows))
        self._last = kind
        if self._suspended:
            self._held.append(text)
        else:
            self._write(self._region.erase() + text)

    def _page(self) -> Page:
        return Page(self._painter, self._texts, self._fixed_width or self._size()[0])

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError, AttributeError):
            return self._fixed_width or DEFAULT_SIZE[0], DEFAULT_SIZE[1]
        return size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1]

    def _draw(self, *, force: bool) -> None:
        if not self._live or self._suspended:
            return
        now = self._now_s()
        wait_s = max(TRICKLE_S if 0 < self._fresh < TRICKLE_CHARS else REDRAW_S, self._drawing_s / DRAWING_SHARE)
        if not force and now - self._drawn_s < wait_s:
            return
        self._drawn_s, self._fresh = now, 0
        columns, lines = self._size()
        width = min(self._fixed_width or columns, columns)
        page = Page(self._painter, self._texts, width - self._region.margin)
        self._write(self._region.draw(self._live_rows(page, lines), width))
        self._drawing_s = self._now_s() - now

    def _live_rows(self, page: Page, lines: int) -> list[str]:
        rows = self._reply.preview(page)
        if not rows and (thought := self._reply.thinking):
            flat = " ".join(shown(thought).split())
            rows = page.under("∴", theme.DIM, flat, theme.DIM + theme.ITALIC)[-2:]
        running = list(self._calls.running())
        for call in running:
            rows.extend(self._running(page, call))
        rows.extend(self._asides.waiting(page, self._now_s()))
        if self._retry:
            rows.extend(page.line("↻ " + self._retry, theme.WARN))
        elif self._compacting_s is not None or (self._busy_s is not None and not self._reply.text_came):
            rows.append(self._painter.row(Text(self._status(), theme.DIM), page.width))
        if self._alarm:
            rows.extend(page.line("✗ " + self._alarm, theme.LOUD))
        # Set apart as the finished lines will be, so that nothing jumps when they come.
        if rows and self._last and not self._reply.printed and not (running and self._last == "tool"):
            rows.insert(0, "")
        return rows[-max(lines - 2, 1) :]

    def _status(self) -> str:
        now = self._now_s()
        since = self._busy_s if self._compacting_s is None else self._compacting_s
        elapsed = int(now - (now if since is None else since))
        mark = theme.SPINNER[int(now / SPIN_S) % len(theme.SPINNER)]
        if self._asking:
            return "? waits for your answer"
        doing = "running" if any(self._calls.running()) else "thinking"
        if self._compacting_s is not None:
            doing = "compacting the context"
        return f"{mark} {doing} · {elapsed} s · Esc interrupts"

    def _running(self, page: Page, call: OpenCall) -> list[str]:
        head = Text.assemble(("○ ", theme.DIM), (call.name, theme.BOLD), " " + fit(call.subject, page.width))
        newest = [line for line in shown(call.output).split("\n") if line.strip()][-RUNNING_ROWS:]
        return [
            self._painter.row(head, page.width),
            *(self._painter.row(Text("  " + line, theme.DIM), page.width) for line in newest),
        ]

    def _write(self, text: str) -> None:
        if text:
            self._pending.append(text)

    def _flush(self) -> None:
        """Write all that an event came to at once."""
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        try:
            self._out.write(text)
        except UnicodeEncodeError:  # a terminal of another encoding, or half a character: shown as `?`
            encoding = self._out.encoding or "ascii"
            self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()
