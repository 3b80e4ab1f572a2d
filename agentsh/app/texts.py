"""Texts that live in blobs, read through the blob store and kept for the next request."""

from collections import OrderedDict

from agentsh.base.errors import BlobMissing
from agentsh.events.base import BlobRef, Text
from agentsh.log.store import BlobStore
from agentsh.ports.texts import with_gap

MAX_KEPT_CHARS = 16_000_000
"""Every step of a turn asks for every long text of its context again; a context is far smaller than this."""


class BlobTexts:
    """Resolves references; a missing blob gives its ends with a note between."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._chars = 0

    def text(self, value: Text) -> str:
        """Return the whole text. Blocks for a read where it was not asked for lately."""
        return value if isinstance(value, str) else self._resolve(value)

    def _resolve(self, ref: BlobRef) -> str:
        text = self._kept.get(ref.blob)
        if text is not None:
            self._kept.move_to_end(ref.blob)
            return text
        try:
            text = self._blobs.get(ref.blob).decode("utf-8", "surrogatepass")
        except (BlobMissing, UnicodeDecodeError):
            return with_gap(ref)
        self._kept[ref.blob] = text
        self._chars += len(text)
        while self._chars > MAX_KEPT_CHARS and len(self._kept) > 1:
            self._chars -= len(self._kept.popitem(last=False)[1])
        return text
