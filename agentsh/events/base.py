"""What every fact is made of: references to blobs, token usage, the base of all."""

from typing import Any

from agentsh.base.typed import Value


class BlobRef(Value):
    """Text or bytes that live in the blob store. bytes: size of the whole. head, tail: its ends, for people."""

    blob: str
    bytes: int
    head: str
    tail: str


Text = str | BlobRef
"""Text that may have been moved to the blob store because the line would have been too long."""

JsonValue = Any
Cost = float | None
"""US dollars, or None where the price is not known."""


class Usage(Value):
    """Tokens as the provider reported them. cached and reasoning are parts of prompt and completion."""

    prompt: int
    cached: int
    completion: int
    reasoning: int

    def plus(self, other: "Usage | None") -> "Usage":
        """Return the sum; None counts as nothing."""
        if other is None:
            return self
        return Usage(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
            reasoning=self.reasoning + other.reasoning,
        )


NO_USAGE = Usage(prompt=0, cached=0, completion=0, reasoning=0)


class Fact(Value):
    """One thing that happened, as the log keeps it: the payload of an event.

    Members without a default are the minimum and always written; those with one are written only when set.
    Each subclass has a `type` literal; it is written to the envelope, not to the payload.
    """

    type: str = ""
