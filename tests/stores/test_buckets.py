"""Both places for copies keep to the contract, and what goes wrong is told without what nobody should read."""

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.app.hosts import check_bucket_url
from agentsh.base.errors import StorageError, StorageRefused, StorageUnavailable
from agentsh.stores.bucket import Bucket
from agentsh.stores.bucket_files import FileBucket
from agentsh.stores.bucket_objects import ObjectBucket
from agentsh.testing.bucket_contract import BucketContract
from tests.buckets import S3, SECRET, Gate
from tests.log.disks import FaultyFiles, MemFiles


def opened(url: str, timeout_s: float = 20.0) -> ObjectBucket:
    return ObjectBucket(url, timeout_s=timeout_s, endpoint=os.environ.get("AWS_ENDPOINT_URL"))


class TestFiles(BucketContract):
    @pytest.fixture
    def bucket(self, tmp_path: Path) -> Bucket:
        return FileBucket(str(tmp_path / "mounted" / "copies"))

    def test_files_are_the_owners_alone(self, bucket: Bucket, tmp_path: Path) -> None:
        bucket.create("a/b", b"x")
        assert (tmp_path / "mounted/copies/a/b").stat().st_mode & 0o777 == 0o600

    def test_a_place_that_is_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StorageRefused):
            FileBucket(str(tmp_path / "file")).create("a", b"x")


@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_a_directory_fails_at_every_operation_in_turn(error: int, for_ever: bool) -> None:
    """An object is whole, old or new, whatever failed; and the next try makes it what it was to be."""
    n, done = 0, False
    while not done:
        n += 1
        disk = MemFiles()
        sound = FileBucket("/copies", files=disk)
        old = sound.create("s/old", b"old" * 1000)
        assert old is not None
        files = FaultyFiles(disk, n, error, for_ever=for_ever)
        bucket = FileBucket("/copies", files=files)
        with suppress(StorageRefused, StorageUnavailable):
            assert bucket.create("s/new/part", b"new" * 1000) is not None
            assert bucket.replace("s/old", b"newer" * 1000, old) is not None
        done = not files.hit
        assert disk.fds == {}, n
        new, now = sound.read("s/new/part"), sound.read("s/old")
        assert new is None or new[0] == b"new" * 1000, n
        assert now is not None
        assert now[0] in (b"old" * 1000, b"newer" * 1000), n
        assert sound.create("s/new/part", b"new" * 1000) is not None or new is not None
        assert sound.replace("s/old", b"last", now[1]) is not None
        assert list(sound.list("s")) == ["new", "old"]
    assert n > 12


class TestObjects(BucketContract):
    @pytest.fixture
    def bucket(self, s3: S3) -> Bucket:
        return opened(s3.url)


@pytest.fixture
def silent() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def told(error: StorageError) -> str:
    text = str(error)
    assert SECRET not in text
    assert "AKID" not in text
    assert "\n" not in text
    assert "http" not in text
    return text


def test_no_such_bucket(s3: S3) -> None:
    nowhere = opened("s3://nowhere/x")
    with pytest.raises(StorageRefused) as caught:
        nowhere.create("k", b"x")
    assert "no such bucket" in told(caught.value)
    with pytest.raises(StorageRefused) as caught:
        nowhere.read("k")
    assert "no such bucket" in told(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_are_refused(gate: Gate, s3: S3, status: int) -> None:
    gate.rule = lambda n, method, path: status
    with pytest.raises(StorageRefused) as caught:
        opened(s3.url).create("k", b"x")
    assert "credentials" in told(caught.value)
    assert str(status) in told(caught.value)
    assert len(gate.seen) == 1  # asking again would change nothing


def test_a_server_that_fails_is_asked_again_a_few_times(gate: Gate, s3: S3) -> None:
    gate.rule = lambda n, method, path: 503
    with pytest.raises(StorageUnavailable) as caught:
        opened(s3.url).create("k", b"x")
    assert "503" in told(caught.value)
    assert 2 <= len(gate.seen) <= 3
    gate.rule = lambda n, method, path: 503 if n == 4 else None
    assert opened(s3.url).create("k", b"x") is not None


def test_nobody_there_and_nobody_who_answers(s3: S3, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StorageUnavailable) as caught:
            opened(s3.url).read("k")
    assert "no connection" in told(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent}")
    began = time.monotonic()
    with pytest.raises(StorageUnavailable) as caught:
        opened(s3.url, 0.5).create("k", b"x")
    assert "does not answer" in told(caught.value)
    assert time.monotonic() - began < 60  # it gives up, at some time


@pytest.mark.parametrize("url", ["az://container/x", "gs:///x"])
def test_settings_that_cannot_be(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(StorageRefused) as caught:
        opened(url, 0.5).create("k", b"x")
    told(caught.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://b/p", "none of"),
        ("/tmp/x", "none of"),
        ("s3://key:secret@bucket/p", "credentials"),
        ("s3://bucket/p?sig=x", "credentials"),
        ("s3:///p", "bucket"),
        ("file://host/p", "whole path"),
        ("file:relative", "whole path"),
        ("s3://bucket/../x", ".."),
    ],
)
def test_urls_that_cannot_be(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_bucket_url(url)


def test_urls_that_can_be() -> None:
    assert check_bucket_url("s3://bucket/") == "s3://bucket"
    assert check_bucket_url(" file:///a/b c/ ") == "file:///a/b c"
