"""The line mode: a line is read, and what happens is printed below, once, without one control sequence.

For terminals that only print (`TERM=dumb`), for pipes where it is asked for, and for screen readers, which read aloud
what is written and lose the place where anything is drawn over. Lines are edited by the terminal itself.
"""

import asyncio
import codecs
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence

from agentsh.base.text import clean, one_line
from agentsh.events.turn import Attachment
from agentsh.ports.approver import Answer, Question
from agentsh.repl.actions import Actions
from agentsh.repl.attention import Attention
from agentsh.repl.images import Images
from agentsh.repl.notice import Notice
from agentsh.repl.picker import Menu
from agentsh.repl.plain_asked import AskedInWords, asked_in_words
from agentsh.repl.plain_stage import MARK, PlainStage
from agentsh.repl.rows import Row
from agentsh.repl.terminal import ReplIO, typed_text

TWICE_S = 2.0
"""Within this, a second Ctrl-C means leave."""
ARM_S = 0.25
"""A line that comes sooner than this after a question was typed before it, and is no answer."""
READ_BYTES = 65_536
ASKS = "? "
WELCOME = "line mode: Enter sends a line, Ctrl-C interrupts, /help tells more, Ctrl-D leaves"
HELP = (
    ("Enter", "send the line; while a turn runs: queue it"),
    ("\\ at the end", "the message goes on in the next line"),
    ("/steer TEXT", "send into the running turn"),
    ("Enter alone", "send what came back after an interruption"),
    ("@FILE", "the file is sent along"),
    ("!cmd, !!cmd", "run it in the workspace; with !! the model is not told"),
    ("Ctrl-C", "interrupt; twice: leave"),
    ("Ctrl-D", "leave"),
)
"""As /help keys shows them."""


class PlainPrompt:
    """Reads lines, in the place of `Prompt`. actions: see there."""

    def __init__(
        self, io: ReplIO, stage: PlainStage, actions: Actions, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.left_by_ctrl_c = False
        self.attention = Attention(io.display, rings=False, titles=False)
        self._io = io
        self._stage = stage
        self._actions = actions
        self._now_s = now_s
        self._began, self._left = asyncio.Event(), asyncio.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._line = ""
        self._lines: list[str] = []
        self._draft = ""
        self._images = Images()
        self._ended = False
        self._asked: AskedInWords | None = None
        self._ctrl_c_s = float("-inf")

    async def run(self, draft: str = "") -> None:
        """Take lines until `leave`, or until there are no more and nothing works."""
        fd, loop = sys.stdin.fileno(), asyncio.get_running_loop()
        self._say([WELCOME])
        if draft:
            self.give_back(draft)
        self._began.set()
        self.refresh()
        try:
            loop.add_reader(fd, self._read, fd)
        except PermissionError:  # a plain file, which is always ready
            while not self._ended:
                self._read(fd)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(fd)
            self._stage.break_off()

    async def ready(self) -> None:
        """Return once it takes lines."""
        await self._began.wait()

    def leave(self, *, by_ctrl_c: bool = False) -> None:
        """End it."""
        self.left_by_ctrl_c = self.left_by_ctrl_c or by_ctrl_c
        self._left.set()

    def say(self, style: str, rows: Sequence[str]) -> None:
        """Print rows."""
        self._say(rows)
        self.refresh()

    def show(self, rows: Sequence[Row]) -> None:
        """Print rows that are laid out already."""
        self._say([row if isinstance(row, str) else "".join(piece[1] for piece in row) for row in rows])
        self.refresh()

    def give_back(self, text: str, along: Sequence[Attachment] = ()) -> None:
        """Tell of a text that was not sent; Enter alone sends it, with what it came back with."""
        self._draft = text
        self._images.adopt(text, along)
        self._say([*(f"  {line}" for line in clean(text).split("\n")), "  was not sent: Enter alone sends it"])
        self.refresh()

    def refresh(self) -> None:
        """Invite to type, where nothing works; leave, where no more lines can come."""
        if self._actions.working() or self._asked is not None or not self._began.is_set():
            return
        if self._ended:
            self.leave()
        elif not self._left.is_set():
            self._stage.invite(MARK)

    def restyle(self) -> None:
        """There are no colours."""

    def ask_background(self) -> None:
        """Nothing is asked of the terminal."""

    def press_ctrl_c(self) -> None:
        """Interrupt what runs; a second one soon after leaves. The terminal has dropped what was typed of a line."""
        again = self._now_s() - self._ctrl_c_s < TWICE_S
        self._ctrl_c_s = self._now_s()
        self._lines.clear()
        self._stage.break_off()
        if again:
            self.leave(by_ctrl_c=True)
        elif self._actions.working():
            self._actions.interrupt()
        else:
            self.say("notice", ["Ctrl-C again to leave"])

    async def ask(self, question: Question) -> Answer:
        """Return the answer, a line that begins with one of the words. Without more lines it is no."""
        if self._ended:
            return Answer("no")
        asked = self._asked = asked_in_words(question, self._now_s())
        self._say(asked.head())
        self._stage.invite(ASKS)
        try:
            return await asked.answer
        finally:
            self._asked = None
            self._stage.break_off()

    async def pick(self, menu: Menu) -> str | None:
        """Menus are lists with numbers here: nothing is chosen."""
        return None

    def cancel_pick(self) -> None:
        """There is none."""

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, READ_BYTES)
        except OSError:  # the terminal is gone
            data = b""
        *lines, self._line = (self._line + self._decoder.decode(data, not data)).split("\n")
        if not data:
            lines += [self._line] if self._line else []
            self._line = ""
        for line in lines:
            self._take(line.removesuffix("\r"))
        if not data:
            self._end(fd)

    def _end(self, fd: int) -> None:
        """No more lines: from a terminal that is Ctrl-D, from a pipe only the end of what is to be done."""
        self._ended = True
        with contextlib.suppress(ValueError):
            asyncio.get_running_loop().remove_reader(fd)
        if self._asked is not None and not self._asked.answer.done():
            self._asked.answer.set_result(Answer("no"))
        if os.isatty(fd):
            self.leave()
        else:
            asyncio.get_running_loop().call_soon(self.refresh)

    def _take(self, line: str) -> None:
        asked = self._asked
        if asked is not None and not asked.answer.done() and self._now_s() - asked.since_s >= ARM_S:
            self._stage.typed()
            self._answer(asked, line)
            return
        if line.endswith("\\"):
            self._lines.append(line[:-1])
            self._stage.typed()
            return
        text = typed_text("\n".join([*self._lines, line]))
        whole = not self._lines
        self._lines.clear()
        self._send(text, whole=whole)
        if asked is not None:
            self._stage.invite(ASKS)

    def _send(self, text: str, *, whole: bool) -> None:
        """Send a message; whole: it stands in one line on the terminal."""
        self._ctrl_c_s = float("-inf")  # who sends something did not mean to leave
        working = self._actions.working()
        self._stage.typed(text if whole and not working and sys.stdin.isatty() else "")
        if not text.strip():
            text, self._draft = self._draft, ""
            self._actions.enter(text, self._images.of(text))
        elif text.partition(" ")[0] == "/steer":
            self._steer(text[7:].strip(), working=working)
        else:
            if working and not text.startswith("/"):
                self._say([f"  queued: {one_line(text, 300)}"])
            self._draft = ""
            self._actions.enter(text, ())
        asyncio.get_running_loop().call_soon(self.refresh)

    def _steer(self, text: str, *, working: bool) -> None:
        if not text:
            self._say(["  /steer TEXT: the text joins the running turn"])
        elif working:
            self._say([f"  steers: {one_line(text, 300)}"])
            self._actions.steer(text, ())
        else:
            self._say(["  no turn is running that it could join"])
            self.give_back(text)

    def _answer(self, asked: AskedInWords, line: str) -> None:
        answer = asked.answered(line)
        if answer is not None:
            asked.answer.set_result(answer)
            return
        self._say(asked.more() if line.strip().lower() in ("more", "m") and asked.left else [asked.words()])
        self._stage.invite(ASKS)

    def _say(self, rows: Sequence[str]) -> None:
        if not rows:
            return
        notice = Notice()
        notice.say("notice", [clean(row) for row in rows])
        columns = max(self._io.display().get_size().columns, 20)
        laid_out = notice.rows(columns, sys.maxsize)
        text = "".join(
            "".join(piece[1] for piece in row).rstrip() + "\n" for row in laid_out if not isinstance(row, str)
        )
        self._stage.write(text)
        self._stage.flush()
