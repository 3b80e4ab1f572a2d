"""From the journal to the screens: facts are never dropped, signals may be."""

from collections.abc import Callable

from agentsh.events.event import Event
from agentsh.events.signals import Signal
from agentsh.ports.renderer import Renderer


class Bus:
    """Hands each fact to every renderer, in order. A renderer that fails is taken off and told of once.

    on_failure: called with the renderer and its exception; the turn and the log go on.
    """

    def __init__(self, on_failure: Callable[[Renderer, Exception], None] | None = None) -> None:
        self._renderers: list[Renderer] = []
        self._on_failure = on_failure

    def subscribe(self, renderer: Renderer) -> None:
        """Add a renderer; it sees what is published from now on."""
        self._renderers.append(renderer)

    def publish(self, event: Event) -> None:
        """Show a fact everywhere."""
        for renderer in tuple(self._renderers):
            try:
                renderer.on(event)
            except Exception as error:  # noqa: BLE001 - a renderer must not stop the log
                self._drop(renderer, error)

    def signal(self, signal: Signal) -> None:
        """Preview everywhere."""
        for renderer in tuple(self._renderers):
            try:
                renderer.signal(signal)
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(renderer, error)

    def _drop(self, renderer: Renderer, error: Exception) -> None:
        self._renderers.remove(renderer)
        if self._on_failure is not None:
            self._on_failure(renderer, error)
