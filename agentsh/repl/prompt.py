"""The prompt: one message from the keyboard, with everything that editing it needs."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from agentsh.repl.history import TypedHistory
from agentsh.repl.reflow import follow_resize
from agentsh.repl.terminal import ReplIO, typed_text

TWICE_S = 2.0
"""Within this, a second Ctrl-C means leave."""
PASTE_QUIET_S = 1.4
"""A paste whose end mark does not come is taken as ended after this much silence."""
PASTE_LOOK_S = 0.2
TYPING_CHARS = 16
"""No more than this between two looks is somebody typing, not a paste that goes on."""

STYLE = Style.from_dict(
    {
        "mark": "ansicyan bold",
        "notice": "",
        "alarm": "ansired bold",
        "bottom-toolbar": "noreverse",
        "bottom-toolbar.text": "noreverse ansibrightblack",
    }
)


class Prompt:
    """Asks for messages, again and again. status: the text of the line below the input."""

    def __init__(self, io: ReplIO, status: Callable[[], str], now_s: Callable[[], float] = time.monotonic) -> None:
        self._io = io
        self._status = status
        self._now_s = now_s
        self._ctrl_c_s = float("-inf")
        self._hint = ""
        self._notice: StyleAndTextTuples = []
        history = TypedHistory(io.history_file) if io.history_file else InMemoryHistory()
        self._session: PromptSession[str | None] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._toolbar,
            history=history,
            key_bindings=self._keys(),
            style=STYLE,
            color_depth=None if io.colour else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            erase_when_done=True,
            reserve_space_for_menu=0,
            enable_open_in_editor=True,
            input=io.keyboard(),
            output=io.display(),
        )
        follow_resize(self._session.app)

    async def ask(self, notice: Sequence[tuple[str, str]] = (), default: str = "") -> str | None:
        """Return what was typed, or None for leaving. notice: (style, line), shown above the input."""
        room = max(self._io.display().get_size().rows - 7, 1)
        self._notice = [(f"class:{style}", f"{line}\n") for style, line in list(notice)[:room]]
        self._hint = ""
        watch = asyncio.create_task(self._watch_paste())
        try:
            text = await self._session.prompt_async(default=default, handle_sigint=False)
        except EOFError:
            return None
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
        return None if text is None else typed_text(text)

    def leave(self) -> None:
        """End a prompt that is being asked, as if the user had left."""
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(result=None)

    def after_ctrl_c(self, at_s: float) -> None:
        """Count a Ctrl-C that stopped a turn: one more at the prompt soon after it leaves."""
        self._ctrl_c_s = at_s

    def ctrl_c(self) -> bool:
        """Do what Ctrl-C does at the prompt; return whether a prompt is being asked."""
        app = self._session.app
        if not app.is_running or app.is_done:
            return False
        app.key_processor.feed(KeyPress(Keys.ControlC))
        app.key_processor.process_keys()
        return True

    def _message(self) -> StyleAndTextTuples:
        return [("", "\n"), *self._notice, ("class:mark", "› ")]

    def _toolbar(self) -> StyleAndTextTuples:
        return [("", self._hint or self._status())]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        buffer = Condition(lambda: self._session.app.layout.has_focus(self._session.default_buffer))
        plain = buffer & ~is_searching

        @keys.add("enter", filter=plain)
        def _send(event: KeyPressEvent) -> None:
            if event.current_buffer.text.strip():
                event.current_buffer.validate_and_handle()

        @keys.add("escape", "enter", filter=plain)
        @keys.add("c-j", filter=plain)
        def _newline(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c", filter=plain)
        def _clear_or_leave(event: KeyPressEvent) -> None:
            now = self._now_s()
            if event.current_buffer.text:
                event.current_buffer.append_to_history()  # Up brings it back
                event.current_buffer.reset()
            elif now - self._ctrl_c_s < TWICE_S:
                event.app.exit(result=None)
            self._hint = "Ctrl-C again to leave"
            self._ctrl_c_s = now

        @keys.add("c-d", filter=plain & Condition(lambda: not self._session.default_buffer.text))
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add("<any>", filter=plain)
        def _type(event: KeyPressEvent) -> None:
            self._hint = ""
            event.current_buffer.insert_text(event.data * event.arg)

        return keys

    async def _watch_paste(self) -> None:
        """End a paste whose end mark was lost. Until it comes the parser takes every key as a part of the paste."""
        size, quiet_s = 0, 0.0
        while True:
            await asyncio.sleep(PASTE_LOOK_S)
            now = _open_paste(self._session.input)
            if now is None:
                size, quiet_s = 0, 0.0
                continue
            quiet_s = 0.0 if now - size > TYPING_CHARS else quiet_s + PASTE_LOOK_S
            size = now
            if quiet_s >= PASTE_QUIET_S:
                self._end_paste()

    def _end_paste(self) -> None:
        self._session.input.vt100_parser.feed("\x1b[201~")  # type: ignore[attr-defined]
        app = self._session.app
        app.key_processor.feed_multiple(self._session.input.flush_keys())
        app.key_processor.process_keys()


def _open_paste(source: Input) -> int | None:
    """Return how much a parser holds of a paste that has not ended, or None."""
    parser = getattr(source, "vt100_parser", None)
    if parser is None or not getattr(parser, "_in_bracketed_paste", False):
        return None
    return len(getattr(parser, "_paste_buffer", ""))
