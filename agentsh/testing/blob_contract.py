"""What every place for blobs must pass: subclass, give a fixture `blobs`, run pytest. See store_contract."""

# ruff: noqa: D102 - the names of the tests are the promises

import pytest

from agentsh.base.errors import BlobMissing
from agentsh.log.store import BlobStore


class BlobContract:
    """The promises of `BlobStore`."""

    @pytest.fixture
    def blobs(self) -> BlobStore:
        """Return a fresh, empty store; a subclass must."""
        raise NotImplementedError

    def again(self, blobs: BlobStore) -> BlobStore:
        """Return the store as another process would find it."""
        return blobs

    @pytest.mark.parametrize(
        "data", [b"", b"\0", b"hello", bytes(range(256)) * 5000], ids=["empty", "nul", "text", "long"]
    )
    def test_bytes_come_back(self, blobs: BlobStore, data: bytes) -> None:
        ref = blobs.put(data)
        assert ref.startswith("sha256:")
        assert len(ref) == 71
        assert blobs.get(ref) == data
        assert self.again(blobs).get(ref) == data

    def test_putting_twice_is_one_blob(self, blobs: BlobStore) -> None:
        with blobs.writing():
            assert blobs.put(b"same") == blobs.put(b"same") == self.again(blobs).put(b"same")
        assert blobs.put(b"other") != blobs.put(b"same")

    def test_a_missing_blob(self, blobs: BlobStore) -> None:
        for ref in ("sha256:" + "0" * 64, "sha256:../../etc/passwd", "", "md5:1", "sha256:" + "0" * 63 + "A"):
            with pytest.raises(BlobMissing):
                blobs.get(ref)

    def test_the_guard_nests(self, blobs: BlobStore) -> None:
        with blobs.writing(), blobs.writing():
            ref = blobs.put(b"x")
        assert blobs.get(ref) == b"x"
