"""The port to texts that were too long for their line."""

from typing import Protocol

from agentsh.events.base import BlobRef, Text


class Texts(Protocol):
    """Resolves what may live in a blob."""

    def text(self, value: Text) -> str:
        """Return the whole text. A missing blob gives its head and tail with a note between, never an error."""
        ...


def with_gap(ref: BlobRef) -> str:
    """Return what is left of a text whose blob is missing."""
    return f"{ref.head}\n[… {ref.bytes:,} bytes; the blob {ref.blob} is missing …]\n{ref.tail}"


class InlineTexts:
    """For logs without blobs: every reference counts as missing."""

    def text(self, value: Text) -> str:
        """Return the text, or what is left of it."""
        return value if isinstance(value, str) else with_gap(value)
