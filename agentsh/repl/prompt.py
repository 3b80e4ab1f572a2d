"""The prompt: it stays below the scrollback from the first message to the last, whatever runs meanwhile."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import vi_navigation_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.search import stop_search

from agentsh.base.text import one_line
from agentsh.events.turn import Attachment
from agentsh.ports.approver import Answer, Question
from agentsh.repl.actions import Actions
from agentsh.repl.ask_user import asked_of
from agentsh.repl.asked import Asked
from agentsh.repl.attention import Attention, shows_777
from agentsh.repl.editor import edit
from agentsh.repl.history import TypedHistory
from agentsh.repl.images import Along, Images
from agentsh.repl.keys import bindings
from agentsh.repl.notice import Notice
from agentsh.repl.panel import Panel
from agentsh.repl.pastes import Pastes, watch_paste
from agentsh.repl.picker import KEYS, Menu, Picker
from agentsh.repl.rows import Row, Rows, cut
from agentsh.repl.style import style_of
from agentsh.repl.terminal import ReplIO, be_stopped, typed_text

TWICE_S = 2.0
"""Within this, a second Ctrl-C means leave."""
KEY_S = 0.1
"""How long an Esc waits for what might make another key of it: a slow line sends a key in pieces."""
SEQUENCE_S = 2.0
"""How long a key that begins a sequence, Ctrl-X for one, waits for the next: people type it."""


class Prompt:
    """One long-lived input line. status: the line below it. queue: rows for what waits, shown above it."""

    def __init__(
        self,
        io: ReplIO,
        status: Callable[[], str],
        queue: Callable[[], Sequence[str]],
        actions: Actions,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.actions = actions
        self.hinting = False
        self.asked: Asked | None = None
        self.picking: Picker | None = None
        self.notice = Notice()
        self.pastes, self.images = Pastes(), Images()
        self.panel = Panel(io.files, self.refresh, io.custom)
        self.left_by_ctrl_c = False
        self.attention = Attention(
            io.display, rings=io.notify, titles=io.title, with_777=shows_777(os.environ), now_s=now_s
        )
        self._io = io
        self._status = status
        self._queue = queue
        self._now_s = now_s
        self._ctrl_c_s = float("-inf")
        self._stopping: asyncio.Future[None] | None = None
        self._goes_on = False
        self._menus = asyncio.Lock()
        self._began = asyncio.Event()
        self._editing: asyncio.Task[None] | None = None
        kept = io.history_file and TypedHistory(io.history_file, io.clean, lambda: io.private)
        history = kept or InMemoryHistory()
        self._session: PromptSession[None] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._toolbar,
            history=history,
            key_bindings=bindings(self),
            style=style_of(io.looks.palette),
            color_depth=self._depth(),
            include_default_pygments_style=False,
            erase_when_done=True,
            reserve_space_for_menu=0,
            editing_mode=EditingMode.VI if io.vi else EditingMode.EMACS,
            input=io.keyboard(),
            output=io.display(),
        )
        io.looks.listen(io.keyboard())
        self.attention.listen(io.keyboard())
        self.buffer.accept_handler = self._accepted
        self.buffer.on_text_changed += self._typed
        self.buffer.on_cursor_position_changed += self._typed
        app = self._session.app
        app.ttimeoutlen = app.timeoutlen = KEY_S
        app.key_processor.after_key_press += self._wait_for_more
        self._rows = Rows(self._above, self._room)
        above = Window(self._rows, dont_extend_height=True, wrap_lines=False)
        app.layout = Layout(HSplit([above, app.layout.container]), focused_element=self.buffer)

    @property
    def buffer(self) -> Buffer:
        """The input line."""
        return self._session.default_buffer

    async def run(self, draft: str = "") -> None:
        """Be there until `leave`, or until the keyboard is gone. draft: what is typed already."""
        self._io.stage.enter(self._session.app, self._rows)
        watch = asyncio.create_task(watch_paste(self._session))
        try:
            await self._session.prompt_async(default=draft, handle_sigint=False, pre_run=self._began.set)
        except EOFError:
            return
        finally:
            self._io.stage.exit()
            self.attention.close()
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def ready(self) -> None:
        """Return once it takes keys."""
        await self._began.wait()

    def leave(self, *, by_ctrl_c: bool = False) -> None:
        """End it."""
        self.left_by_ctrl_c = self.left_by_ctrl_c or by_ctrl_c
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(result=None)

    def say(self, style: str, rows: Sequence[str]) -> None:
        """Show rows above the input until the next key that sends. style: `notice` or `alarm`."""
        self.notice.say(style, rows)
        self._session.app.invalidate()

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows that are laid out already, likewise."""
        self.notice.show(rows)
        self._session.app.invalidate()

    def restyle(self) -> None:
        """Draw it anew in the looks that hold now."""
        self._session.color_depth = self._depth()
        self._session.style = style_of(self._io.looks.palette)
        self._session.app.invalidate()

    def ask_background(self) -> None:
        """Ask the terminal what it writes on, where that decides the colours."""
        if question := self._io.looks.question():
            self._io.display().write_raw(question)
            self._io.display().flush()

    def _depth(self) -> ColorDepth | None:
        return None if self._io.looks.colour else ColorDepth.DEPTH_1_BIT

    def hush(self) -> None:
        """Take them away."""
        self.hinting = False
        self.notice.clear()

    def give_back(self, text: str, along: Sequence[Attachment] = ()) -> None:
        """Put a text in front of what is typed. along: attachments that it came back with."""
        typed = self.buffer.text
        self.images.adopt(text, along)
        self.buffer.save_to_undo_stack()
        self.buffer.document = Document(text + ("\n" + typed if typed else ""))

    def take(self) -> tuple[str, Along]:
        """Return what is typed, as it is sent, with its images, and empty the line."""
        text = self.pastes.whole(self.buffer.text)
        self.buffer.text = text
        self.buffer.append_to_history()
        self.buffer.reset()
        self._session.app.vi_state.input_mode = InputMode.INSERT
        self.panel.follow(self.buffer)  # an input that is emptied does not say so
        self._ctrl_c_s = float("-inf")  # who sends something did not mean to leave
        self.hush()
        return typed_text(text), self.images.of(text)

    def write_elsewhere(self) -> None:
        """Open what is typed in the user's editor."""
        if self._editing is None or self._editing.done():
            self._editing = asyncio.create_task(self._edit())

    async def _edit(self) -> None:
        edited = await edit(self.buffer.text)
        while self.asked is not None or self.picking is not None:  # noqa: ASYNC110 - rare: they have the input now
            await asyncio.sleep(KEY_S)
        if edited.text is not None:
            self.buffer.document = Document(edited.text)
        if edited.wrong:
            self.say("alarm", [f"✗ {one_line(edited.wrong, 300)}"])

    def after_ctrl_c(self) -> None:
        """Count a Ctrl-C: one more soon after it leaves."""
        self._ctrl_c_s = self._now_s()
        asyncio.get_running_loop().call_later(TWICE_S, self._no_longer_twice)

    def _no_longer_twice(self) -> None:
        if self.hinting and not self.ctrl_c_again:
            self.hinting = False
            self.refresh()

    @property
    def ctrl_c_again(self) -> bool:
        """Whether the last Ctrl-C was so recent that another one leaves."""
        return self._now_s() - self._ctrl_c_s < TWICE_S

    def press_ctrl_c(self) -> None:
        """Do what the key does: a signal means the same."""
        if self._has_terminal():  # an editor's is its own
            app = self._session.app
            app.key_processor.feed(KeyPress(Keys.ControlC))
            app.key_processor.process_keys()

    def stop(self) -> None:
        """Be stopped (SIGTSTP), the terminal as the shell wants it; be there again when the process goes on."""
        self._goes_on = True
        if self._has_terminal():
            self._stopping = asyncio.ensure_future(run_in_terminal(be_stopped))
        else:
            be_stopped()

    def went_on(self) -> None:
        """Draw anew below what was written while the process was stopped: SIGSTOP tells nobody before."""
        known, self._goes_on = self._goes_on, False
        if not known and self._has_terminal():
            app = self._session.app
            app.renderer.reset()
            app.input.raw_mode().__enter__()  # the shell has put its own in place; the end of the first one restores
            app._redraw()

    def _has_terminal(self) -> bool:
        app = self._session.app
        return app.is_running and not app.is_done and not app._running_in_terminal

    def refresh(self) -> None:
        """Draw again what is not typed."""
        self._session.app.invalidate()

    async def ask(self, question: Question) -> Answer:
        """Return the answer of one key. What was typed is kept, and is there again afterwards."""
        self._end_search()
        typed, notice = self.buffer.document, self.notice
        self.notice = Notice()
        asked = self.asked = asked_of(question, self._now_s)
        self._session.app.vi_state.input_mode = InputMode.INSERT  # or keys would be commands of vi
        self.buffer.reset()
        self._session.app.invalidate()
        self.attention.call(f"asks: {question.tool} {question.subject}")
        try:
            return await asked.answer
        finally:
            self.asked = None
            notice.append(self.notice)
            self.notice = notice
            more = "".join(asked.typed)
            self.buffer.document = Document(typed.text + more, typed.cursor_position + len(more))
            self._session.app.invalidate()

    async def pick(self, menu: Menu) -> str | None:
        """Return the key of what is chosen, or None. What was typed is kept, as with `ask`."""
        async with self._menus:
            self._end_search()
            typed = self.buffer.document
            self.buffer.reset()
            picking = self.picking = Picker(menu, self.refresh)
            self._session.app.vi_state.input_mode = InputMode.INSERT
            self.refresh()
            try:
                return await picking.chosen
            finally:
                picking.close()
                self.picking = None
                self.buffer.document = typed
                self.refresh()

    def _end_search(self) -> None:
        """Give the keys back to the input: what is asked is not answered into a search of the history."""
        app = self._session.app
        if app.layout.is_searching:
            with set_app(app):
                stop_search()

    def cancel_pick(self) -> None:
        """Close the menu that is open, if one is."""
        if self.picking is not None:
            self.picking.cancel()

    def _wait_for_more(self, _: object) -> None:
        pending = self._session.app.key_processor.key_buffer
        escape = not pending or pending[0].key == Keys.Escape
        self._session.app.timeoutlen = KEY_S if escape else SEQUENCE_S

    def _accepted(self, buffer: Buffer) -> bool:
        """Send what is typed: some keys of prompt-toolkit's own do (Alt-#), and must not end the prompt."""
        if self.asked is None and self.picking is None and buffer.text.strip():
            self.actions.enter(*self.take())
        return True

    def _typed(self, buffer: Buffer) -> None:
        self.attention.seen()
        if self.picking is None:
            self.panel.follow(buffer)
        elif self.asked is None:
            self.picking.filter(buffer.text)

    def _room(self) -> int:
        """Rows above the input: the input has a third of the window, and the status line stays."""
        return max(self._io.display().get_size().rows * 2 // 3 - 2, 1)

    def _above(self) -> list[Row]:
        rows: list[Row] = [*self._io.stage.rows] if self._io.stage.at_rest() else []
        if self.asked is not None:
            size = self._io.display().get_size()
            return [*rows, [], *self.asked.rows(size.columns, max(self._room() - 2, 1))]
        columns, room = self._io.display().get_size().columns, self._room()
        if self.picking is not None:
            return [*rows, [], *self.picking.rows(columns, max(room - 2, 1))]
        waiting: list[Row] = [[("class:queued", row)] for row in self._queue()]
        rows += [[], *waiting] if waiting else []
        offered = self.panel.rows(columns)
        notice = self.notice.rows(columns, max(room - 1 - len(offered), 1)) if self.notice else []
        return [*rows, [], *notice, *offered]

    def _toolbar(self) -> StyleAndTextTuples:
        hint = "Ctrl-C again to " + ("interrupt" if self.actions.working() else "leave")
        if self.picking is not None and self.asked is None:
            return [("", cut(KEYS, self._io.display().get_size().columns - 1))]
        return [("", hint if self.hinting else self._status())]

    def _message(self) -> StyleAndTextTuples:
        if self.asked is None:
            mark = ": " if vi_navigation_mode() else "› "
            return [("class:mark", mark if self.picking is None else "/ ")]
        return [("class:ask", self.asked.label)] if self.asked.reasoning else []
