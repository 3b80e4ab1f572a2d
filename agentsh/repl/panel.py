"""The list of what the input can go on with: shown above it while there is something, chosen from with Tab."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import one_line
from agentsh.repl.backend import CustomCommand
from agentsh.repl.complete import MAX_SHOWN, Candidate, Files, command_candidates, file_word

FRESH_S = 10.0
"""A list of files is read anew when it is older than this."""


class Panel:
    """Follows the input. files: reads the paths of the workspace; it may take a while, and runs on a thread.

    custom: reads the commands that the user wrote; done when a command begins to be typed.
    """

    def __init__(
        self,
        files: Callable[[], Sequence[str]],
        changed: Callable[[], None],
        custom: Callable[[], Mapping[str, CustomCommand]] = dict,
    ) -> None:
        self.candidates: list[Candidate] = []
        self._at = 0
        self._read = files
        self._changed = changed
        self._files = Files()
        self._files_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._closed_for = ""
        self._custom = custom
        self._known: Mapping[str, CustomCommand] = {}

    def follow(self, buffer: Buffer) -> None:
        """Find the candidates for what is typed now."""
        before = buffer.document.text_before_cursor
        typed = file_word(before)
        if before == self._closed_for:
            found = []
        elif typed is not None:
            self._look(buffer)
            found = self._files.candidates(typed)
        else:
            if before == "/":
                with contextlib.suppress(Exception):  # likewise a comfort
                    self._known = self._custom()
            found = command_candidates(before, self._known)
        self._closed_for = self._closed_for if before == self._closed_for else ""
        if found != self.candidates:
            self.candidates, self._at = found, 0

    def move(self, by: int) -> None:
        """Choose another one."""
        self._at = (self._at + by) % max(len(self.candidates), 1)

    def take(self, buffer: Buffer) -> None:
        """Go on with the one that is chosen."""
        chosen = self.candidates[self._at]
        buffer.delete_before_cursor(chosen.length)
        buffer.insert_text(chosen.text)

    def close(self, buffer: Buffer) -> None:
        """Take the list away until something else is typed."""
        self._closed_for, self.candidates = buffer.document.text_before_cursor, []

    def rows(self, columns: int) -> list[StyleAndTextTuples]:
        """Return the list as it is shown."""
        first = max(min(self._at - MAX_SHOWN // 2, len(self.candidates) - MAX_SHOWN), 0)
        shown = self.candidates[first : first + MAX_SHOWN]
        width = min(max((get_cwidth(c.shown) for c in shown), default=0) + 2, columns * 2 // 3)
        rows: list[StyleAndTextTuples] = []
        for n, candidate in enumerate(shown, first):
            mark, style = ("▸ ", "class:name") if n == self._at else ("  ", "")
            name = _fitted(one_line(candidate.shown, 500), columns - 3)
            gap = " " * max(width - get_cwidth(name), 2)
            note = _fitted(candidate.note, columns - 3 - get_cwidth(name) - len(gap)) if candidate.note else ""
            rows.append([("class:mark", mark), (style, name), ("class:dim", gap + note if note else "")])
        return rows

    def _look(self, buffer: Buffer) -> None:
        if self._reading is None and time.monotonic() - self._files_s > FRESH_S:
            self._reading = asyncio.create_task(self._load(buffer))

    async def _load(self, buffer: Buffer) -> None:
        with contextlib.suppress(Exception):  # a list to choose from is a comfort: without it everything still works
            self._files = await asyncio.to_thread(lambda: Files(self._read()))
        self._files_s, self._reading = time.monotonic(), None
        self.follow(buffer)
        self._changed()


def _fitted(text: str, columns: int) -> str:
    """Return the end of a text that is too long: of a path, the name is what matters."""
    if get_cwidth(text) <= columns:
        return text
    while text and get_cwidth(text) >= columns:
        text = text[1:]
    return "…" + text if columns > 0 else ""
