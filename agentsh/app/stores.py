"""The logs and blobs of a home, through the tables of `wiring`. Light: `ls` goes through here."""

from agentsh.app.paths import Home
from agentsh.app.wiring import BLOBS, STORES, load
from agentsh.log.store import BlobStore, EventStore

STORE = "jsonl"
"""What every home keeps its logs in."""


def blob_store(home: Home) -> BlobStore:
    """Return the blobs of a home."""
    blobs: BlobStore = load(BLOBS["files"])(home.blobs)
    return blobs


def event_store(home: Home, *, durability: str = "ack") -> EventStore:
    """Return the logs of a home. durability: as `[log]` in agentsh.toml has it."""
    store: EventStore = load(STORES[STORE])(home.sessions, blob_store(home), durability=durability)
    return store
