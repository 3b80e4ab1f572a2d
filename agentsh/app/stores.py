"""The logs and blobs of a home, through the tables of `wiring`. Light: `ls` goes through here."""

from typing import TYPE_CHECKING

from agentsh.app.paths import Home
from agentsh.app.wiring import BLOBS, STORES, load
from agentsh.log.store import BlobStore, EventStore

if TYPE_CHECKING:
    from agentsh.app.settings import LogSettings

STORE = "jsonl"
"""What every home keeps its logs in."""


def blob_store(home: Home) -> BlobStore:
    """Return the blobs of a home."""
    blobs: BlobStore = load(BLOBS["files"])(home.blobs)
    return blobs


def event_store(home: Home, log: "LogSettings | None" = None) -> EventStore:
    """Return the logs of a home. log: `[log]` of agentsh.toml, whose members the store takes; None for who reads."""
    options = {} if log is None else log.model_dump()
    store: EventStore = load(STORES[STORE])(home.sessions, blob_store(home), **options)
    return store
