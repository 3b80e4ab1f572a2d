"""The port to a screen or a stream."""

from typing import Protocol

from agentsh.base.palette import Palette
from agentsh.events.event import Event
from agentsh.events.signals import Signal


class Renderer(Protocol):
    """Shows events. What it leaves behind is a function of the facts alone; signals are previews."""

    def on(self, event: Event) -> None:
        """Show a fact. Called once for each, in order of seq."""
        ...

    def signal(self, signal: Signal) -> None:
        """Preview. May be called never, or many times."""
        ...

    def close(self) -> None:
        """Take the preview away and flush. Idempotent."""
        ...


class LiveRenderer(Renderer, Protocol):
    """One that shares a terminal with a prompt: it can step aside, and moves while nothing is said."""

    def remark(self, text: str) -> None:
        """Write a line that is no fact: what is not shown."""
        ...

    def suspend(self) -> None:
        """Leave the bottom of the terminal to somebody else; facts wait until `resume`. Idempotent."""
        ...

    def resume(self) -> None:
        """Take it back, and show what waited as one write. Idempotent."""
        ...

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        """Show what comes from now on in other colours; None for those of the terminal."""
        ...

    def tick(self) -> None:
        """Let spinner and elapsed time move on; called about ten times a second while a turn runs."""
        ...
