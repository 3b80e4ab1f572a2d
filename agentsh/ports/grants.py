"""The port to what the user allowed for a project, in whatever session."""

from collections.abc import Sequence
from typing import Protocol


class Grants(Protocol):
    """Keeps rules beside the user's trust, never inside the project: what came with a project cannot allow itself."""

    @property
    def rules(self) -> tuple[str, ...]:
        """What was allowed so far, the newest last."""
        ...

    def add(self, rules: Sequence[str]) -> None:
        """Keep more.

        Raises:
            AgentshError: they cannot be written.
        """
        ...
