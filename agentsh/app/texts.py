"""Texts that live in blobs, read through the blob store with a small cache."""

from functools import lru_cache

from agentsh.base.errors import BlobMissing
from agentsh.events.base import BlobRef, Text
from agentsh.log.store import BlobStore
from agentsh.ports.texts import with_gap

CACHED = 64


class BlobTexts:
    """Resolves references; a missing blob gives its ends with a note between."""

    def __init__(self, blobs: BlobStore) -> None:
        self._get = lru_cache(maxsize=CACHED)(blobs.get)

    def text(self, value: Text) -> str:
        """Return the whole text."""
        if isinstance(value, str):
            return value
        return self._resolve(value)

    def _resolve(self, ref: BlobRef) -> str:
        try:
            return self._get(ref.blob).decode("utf-8", "surrogatepass")
        except (BlobMissing, UnicodeDecodeError):
            return with_gap(ref)
