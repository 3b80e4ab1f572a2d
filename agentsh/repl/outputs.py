"""What tools and commands printed lately, whole: the scrollback shows it folded, and Ctrl-O opens it."""

import re
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from agentsh.base.text import clean, left_out, one_line
from agentsh.events.base import Text
from agentsh.events.event import Event
from agentsh.events.signals import Signal
from agentsh.events.tool import CodeEdit, ToolResult
from agentsh.events.user import UserCommand, UserCommandEnded

KEPT = 50
HEAD_CHARS = 300
_ENDING = re.compile(r"\Aexit -?\d+\n")
"""What stands in front of a command's output for the model: the head has it."""


class Printed(NamedTuple):
    """One output. head: what printed it, one line. text: all of it, clean."""

    head: str
    text: str


class Outputs:
    """Keeps where the newest outputs lie; implements `ports.renderer.Renderer`."""

    def __init__(self, text: Callable[[Text], str]) -> None:
        self._text = text
        self._facts: deque[tuple[str, ToolResult | UserCommandEnded | CodeEdit]] = deque(maxlen=KEPT)
        self._command = ""

    def on(self, event: Event) -> None:
        """Take a fact."""
        match event.fact:
            case UserCommand() as fact:
                self._command = f"{'!' if fact.joins else '!!'}{one_line(self._text(fact.command), HEAD_CHARS)}"
            case UserCommandEnded() as fact:
                self._facts.appendleft((self._command or "a command", fact))
            case ToolResult() | CodeEdit() as fact:
                self._facts.appendleft(("", fact))

    def signal(self, signal: Signal) -> None:
        """Previews are no outputs."""

    def close(self) -> None:
        """Nothing is held open."""

    def __len__(self) -> int:
        return len(self._facts)

    def printed(self, n: int) -> Printed:
        """Return the n-th newest, from 0. Blocks where it lies in a blob.

        Raises:
            IndexError: there is none.
        """
        head, fact = self._facts[n]
        match fact:
            case CodeEdit():
                return Printed(one_line(fact.path, HEAD_CHARS), self._clean(fact.diff))
            case UserCommandEnded():
                return Printed(head, self._clean(fact.output or fact.text))
            case ToolResult():
                first, _, detail = self._clean(fact.for_user).partition("\n")
                if fact.output:
                    detail = self._clean(fact.output)
                elif not detail.strip() or any(left_out(line) for line in detail.split("\n")):
                    # The model was told all of it: names, lines of a file, which the screen counts only.
                    detail = _ENDING.sub("", self._clean(fact.for_model), count=1)
                return Printed(one_line(first, HEAD_CHARS), detail)

    def _clean(self, text: Text) -> str:
        return clean(self._text(text)).strip("\n")
