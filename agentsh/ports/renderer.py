"""The port to a screen or a stream."""

from typing import Protocol

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
