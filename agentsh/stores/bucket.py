"""A place that keeps objects by key, as object storage does: what uploads need of it, and no more."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Found(NamedTuple):
    """An object. version: tells one content of the key from the next; md5: of its bytes, where the place tells it."""

    key: str
    size: int
    version: str
    md5: str | None = None


class Bucket(Protocol):
    """Objects below one prefix. Blocks: call it off the event loop. Safe to share between threads.

    Every method raises StorageUnavailable or StorageRefused; no message holds a credential.
    """

    @property
    def url(self) -> str:
        """Where it is, for people."""
        ...

    def ready(self) -> None:
        """Raise what is known to stand in the way of writing; changes nothing, and may know nothing."""
        ...

    def read(self, key: str) -> tuple[bytes, Found] | None:
        """Return an object's bytes with what it is, or None where there is none."""
        ...

    def head(self, key: str) -> Found | None:
        """Return what an object is, or None where there is none."""
        ...

    def create(self, key: str, data: bytes) -> Found | None:
        """Make an object, whole or not at all; None where the key is taken, whatever is there."""
        ...

    def replace(self, key: str, data: bytes, old: Found) -> Found | None:
        """Put new bytes in the place of `old`; None where the key holds something else by now."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the names directly below `prefix` (which ends in `/`), directories without their slash."""
        ...
