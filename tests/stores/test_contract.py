"""Every store passes the contract that ships with the package."""

from pathlib import Path

import pytest

from agentsh.log.store import BlobStore, EventStore
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.memory import MemoryBlobs, MemoryStore
from agentsh.testing.blob_contract import BlobContract
from agentsh.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> EventStore:
        return MemoryStore()


class TestJsonlStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> EventStore:
        self.root = tmp_path
        return self.again(None)

    def again(self, store: EventStore | None) -> EventStore:
        return JsonlStore(self.root / "sessions", FileBlobs(self.root / "blobs"))


class TestJsonlStoreAlwaysDurable(TestJsonlStore):
    def again(self, store: EventStore | None) -> EventStore:
        return JsonlStore(self.root / "sessions", FileBlobs(self.root / "blobs"), durability="always")


class TestJsonlStoreNeverSynced(TestJsonlStore):
    def again(self, store: EventStore | None) -> EventStore:
        return JsonlStore(self.root / "sessions", FileBlobs(self.root / "blobs"), durability="none")


class TestMemoryBlobs(BlobContract):
    @pytest.fixture
    def blobs(self) -> BlobStore:
        return MemoryBlobs()


class TestFileBlobs(BlobContract):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        self.root = tmp_path
        return self.again(None)

    def again(self, blobs: BlobStore | None) -> BlobStore:
        return FileBlobs(self.root / "blobs")
