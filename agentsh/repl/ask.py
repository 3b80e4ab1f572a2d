"""Asking the user for a yes: what is to be done, and one key for the answer."""

import asyncio
from typing import Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import clean, one_line, plural
from agentsh.ports.approver import Answer, Question
from agentsh.repl.reflow import follow_resize
from agentsh.repl.terminal import ReplIO, keep_typed, typed_text

PREVIEW_ROWS = 15
Key = Literal["y", "s", "n", "e", "interrupt"]

STYLE = Style.from_dict(
    {"mark": "ansiyellow bold", "name": "bold", "dim": "ansibrightblack", "add": "ansigreen", "del": "ansired"}
)


class TerminalApprover:
    """Asks below the scrollback; the question goes when it is answered, and the fact tells what was said."""

    def __init__(self, io: ReplIO) -> None:
        self._io = io

    async def ask(self, question: Question) -> Answer:
        """Return the answer of one key. Ctrl-C interrupts the turn, which withdraws the question."""
        self._io.screen.suspend()
        try:
            keep_typed(self._io)
            key = await self._key(question)
            if key == "interrupt":
                return await self._interrupted()
            if key == "e":
                return Answer("no", await self._reason() or None)
        finally:
            self._io.screen.resume()
        verdicts: dict[str, Literal["yes", "session", "no"]] = {"y": "yes", "s": "session", "n": "no"}
        return Answer(verdicts[key])

    async def _interrupted(self) -> Answer:
        if self._io.interrupt is None:
            return Answer("no")
        self._io.interrupt()
        await asyncio.Event().wait()  # the interruption cancels this
        raise AssertionError("unreachable")

    async def _key(self, question: Question) -> Key:
        keys = KeyBindings()

        def answers(name: str, key: Key) -> None:
            @keys.add(name)
            def _answer(event: KeyPressEvent) -> None:
                event.app.exit(result=key)

        for name in ("y", "s", "n", "e"):
            answers(name, name)
        answers("c-c", "interrupt")
        size = self._io.display().get_size()
        text = question_text(question, size.columns, max(size.rows - 6, 1))
        app: Application[Key] = Application(
            layout=Layout(Window(FormattedTextControl(text, show_cursor=False), wrap_lines=True)),
            key_bindings=keys,
            style=STYLE,
            color_depth=None if self._io.colour else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            erase_when_done=True,
            input=self._io.keyboard(),
            output=self._io.display(),
        )
        follow_resize(app)
        return await app.run_async(handle_sigint=False)

    async def _reason(self) -> str:
        session: PromptSession[str] = PromptSession(
            message="no, because: ", erase_when_done=True, input=self._io.keyboard(), output=self._io.display()
        )
        try:
            return one_line(typed_text(await session.prompt_async(handle_sigint=False)), 1_000)
        except (EOFError, KeyboardInterrupt):
            return ""


def question_text(question: Question, columns: int, rows: int) -> StyleAndTextTuples:
    """Return the question as it is shown: nothing in it can steer the terminal, each line fits."""
    lines = clean(question.preview).expandtabs(4).rstrip("\n").split("\n")
    room = min(PREVIEW_ROWS, rows)
    left_out = len(lines) - room
    text: StyleAndTextTuples = [
        ("class:mark", "\n? "),
        ("class:name", one_line(question.tool, 40)),
        ("", _cut(f" {one_line(question.subject, 400)}", columns - len(question.tool) - 3) + "\n"),
    ]
    for line in lines[:room]:
        style = {"+": "class:add", "-": "class:del"}.get(line[:1], "class:dim")
        text.append((style, _cut("  " + line, columns - 1) + "\n"))
    if left_out > 0:
        text.append(("class:dim", f"  … {plural(left_out, 'more line')}\n"))
    for key, meaning in (("y", "yes"), ("s", "yes, for this session"), ("n", "no"), ("e", "no, and say why")):
        text.extend([("class:mark", f" {key} "), ("", f"{meaning} ")])
    return text


def _cut(line: str, columns: int) -> str:
    if get_cwidth(line) <= columns:
        return line
    kept, used = [], 1
    for char in line:
        used += get_cwidth(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"
