"""Events as they lie in the log: the exact bytes of each line."""

from typing import BinaryIO

from agentsh.events.event import Event
from agentsh.events.signals import Signal


class JsonRenderer:
    """Writes each fact's line byte for byte, and flushes, so that a reader at the other end sees it at once."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def on(self, event: Event) -> None:
        """Write the line."""
        self._out.write(event.raw)
        self._out.flush()

    def signal(self, signal: Signal) -> None:
        """Nothing: previews are no part of the record."""

    def close(self) -> None:
        """Flush."""
        self._out.flush()
