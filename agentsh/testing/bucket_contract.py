"""The contract of the port `Bucket`, as a test class: inherit from it, and a place for copies is proved."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from agentsh.stores.bucket import Bucket, Found


class BucketContract:
    """What every place for copies keeps to. Override `bucket` as a fixture that gives an empty one."""

    @pytest.fixture
    def bucket(self) -> Bucket:
        """Return an empty place."""
        raise NotImplementedError

    def test_what_is_not_there(self, bucket: Bucket) -> None:
        """Nothing raises for that."""
        assert bucket.read("a/b") is None
        assert bucket.head("a/b") is None
        assert list(bucket.list("a/")) == []

    def test_an_object_is_made_once(self, bucket: Bucket) -> None:
        """The second one is told, and the first stays, whatever both hold."""
        made = bucket.create("a/b.json", b"one")
        assert made is not None
        assert made.size == 3
        assert bucket.create("a/b.json", b"one") is None
        assert bucket.create("a/b.json", b"two") is None
        found = bucket.read("a/b.json")
        assert found is not None
        assert found[0] == b"one"
        assert found[1] == bucket.head("a/b.json")
        assert found[1].version == made.version

    def test_only_what_was_read_is_replaced(self, bucket: Bucket) -> None:
        """Of two who read the same, one replaces it, and the other is told."""
        first = bucket.create("m", b"1")
        assert first is not None
        second = bucket.replace("m", b"22", first)
        assert second is not None
        assert bucket.replace("m", b"333", first) is None
        assert self._content(bucket, "m") == b"22"
        assert bucket.replace("m", b"4444", second) is not None
        assert self._content(bucket, "m") == b"4444"

    def test_what_is_not_there_is_not_replaced(self, bucket: Bucket) -> None:
        """A manifest that somebody took away does not come back by accident."""
        made = bucket.create("x", b"1")
        assert made is not None
        assert bucket.replace("y", b"2", made._replace(key="y")) is None
        assert bucket.head("y") is None

    def test_of_many_who_make_one_object_one_does(self, bucket: Bucket) -> None:
        """And of many who replace it."""
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda n: bucket.create("race", b"%d" % n), range(8)))
            (first,) = [m for m in made if m is not None]
            replaced = list(pool.map(lambda n: bucket.replace("race", b"new %d" % n, first), range(8)))
        winners = [n for n, m in enumerate(replaced) if m is not None]
        assert len(winners) == 1
        assert self._content(bucket, "race") == b"new %d" % winners[0]

    def test_large_and_empty_objects(self, bucket: Bucket) -> None:
        """To the byte, in one piece."""
        large = bytes(range(256)) * 50_000
        for key, data in (("large", large), ("empty", b"")):
            made = bucket.create(key, data)
            assert made is not None
            assert made.size == len(data)
            assert self._content(bucket, key) == data

    def test_names_directly_below(self, bucket: Bucket) -> None:
        """Objects and directories alike, each once; nothing of deeper levels."""
        for key in ("s/a/m.json", "s/a/n.json", "s/b/m.json", "s/c", "t/d"):
            bucket.create(key, b"x")
        assert list(bucket.list("s/")) == ["a", "b", "c"]
        assert list(bucket.list("s/a/")) == ["m.json", "n.json"]
        assert list(bucket.list("none/")) == []

    def test_a_name_for_people(self, bucket: Bucket) -> None:
        """It says where it is."""
        assert "://" in bucket.url

    def _content(self, bucket: Bucket, key: str) -> bytes:
        found: tuple[bytes, Found] | None = bucket.read(key)
        assert found is not None
        return found[0]
