"""How much a model takes: the value that configuration, model lists, data and refusals all come down to."""

from typing import NamedTuple, Protocol, runtime_checkable


class Window(NamedTuple):
    """Tokens of a whole exchange, and as far as they are known, of the largest reply and of the largest request.

    source: who says so, for people: `configured`, `model list`, `refusal`, `data of 2026-11-30`, `default`.
    """

    tokens: int
    source: str
    max_reply: int | None = None
    max_request: int | None = None


@runtime_checkable
class TellsWindows(Protocol):
    """A model that can ask its provider how much it takes."""

    async def window(self, model: str) -> Window | None:
        """Return what the provider's list of models says, or None. Never raises; takes a few seconds at most."""
        ...
