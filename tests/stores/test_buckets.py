"""Both places for copies keep to the contract, and what goes wrong is told without what nobody should read."""

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from agentsh.app.hosts import check_bucket_url
from agentsh.app.uploading import open_bucket
from agentsh.base.errors import StorageError, StorageRefused, StorageUnavailable
from agentsh.stores.bucket import Bucket
from agentsh.stores.bucket_files import FileBucket
from agentsh.stores.bucket_objects import ObjectBucket
from agentsh.testing.bucket_contract import BucketContract
from tests.buckets import S3, SECRET, Azure, Cloud, Gate, Google
from tests.log.disks import FaultyFiles, MemFiles


def opened(url: str, timeout_s: float = 20.0) -> Bucket:
    return open_bucket(url, timeout_s, os.environ)


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


class TestS3(BucketContract):
    @pytest.fixture
    def bucket(self, s3: S3) -> Bucket:
        return opened(s3.url)


class TestGoogle(BucketContract):
    @pytest.fixture
    def bucket(self, gs: Google) -> Bucket:
        return opened(gs.url)


class TestAzure(BucketContract):
    @pytest.fixture
    def bucket(self, az: Azure) -> Bucket:
        return opened(az.url)


@pytest.fixture
def silent() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def told(error: StorageError, cloud: Cloud) -> str:
    text = str(error)
    assert not any(secret in text for secret in cloud.secrets)
    assert "\n" not in text
    assert "http" not in text
    return text


def _listed(bucket: Bucket) -> list[str]:
    return list(bucket.list("k/"))


def refusal(cloud: Cloud, job: Callable[[], object]) -> str:
    with pytest.raises(StorageRefused) as caught:
        job()
    return told(caught.value, cloud)


def unavailable(cloud: Cloud, job: Callable[[], object]) -> str:
    with pytest.raises(StorageUnavailable) as caught:
        job()
    return told(caught.value, cloud)


def test_no_such_bucket(cloud: Cloud) -> None:
    nowhere = opened(cloud.url_of("nowhere"))
    assert "no such bucket" in refusal(cloud, lambda: nowhere.create("k", b"x"))
    assert "no such bucket" in refusal(cloud, lambda: nowhere.read("k"))
    assert "no such bucket" in refusal(cloud, lambda: list(nowhere.list("sessions/")))


def test_who_may_not_gets_no_further(gs: Google, az: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    """moto knows nobody; the other two are asked with a key that is not theirs, and without one."""
    for place, status, servers in ((gs, "401", gs.server), (az, "403", az.server)):
        for name, value in {**place.env(), **place.stranger()}.items():
            monkeypatch.setenv(name, value)
        bucket = opened(place.url)
        jobs: list[Callable[[], object]] = [partial(bucket.create, "k", b"x")]
        jobs += [partial(bucket.read, "k"), partial(bucket.head, "k"), partial(_listed, bucket)]
        for job in jobs:
            text = refusal(place, job)
            assert "credentials" in text
            assert status in text
        assert servers is not None
        assert len(servers.seen) == len(jobs)  # asking again would change nothing


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_are_refused(cloud_gate: Gate, cloud: Cloud, status: int) -> None:
    cloud_gate.rule = lambda n, method, path: status
    text = refusal(cloud, lambda: opened(cloud.url).create("k", b"x"))
    assert "credentials" in text
    assert str(status) in text
    assert len(cloud_gate.seen) == 1


def test_a_server_that_fails_is_asked_again_a_few_times(cloud_gate: Gate, cloud: Cloud) -> None:
    cloud_gate.rule = lambda n, method, path: 503
    assert "503" in unavailable(cloud, lambda: opened(cloud.url).create("k", b"x"))
    assert 2 <= len(cloud_gate.seen) <= 3
    cloud_gate.rule = lambda n, method, path: 503 if n == 4 else None
    assert opened(cloud.url).create("k", b"x") is not None


def test_an_answer_that_breaks_off_is_gone_on_with(gs: Google, az: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks for the rest, of the same version; whatever it does, half an object is never taken for one."""
    data = os.urandom(300_000)
    for place, server in ((gs, gs.server), (az, az.server)):
        for name, value in place.env().items():
            monkeypatch.setenv(name, value)
        bucket = opened(place.url)
        assert bucket.create("k", data) is not None
        assert server is not None
        server.cut = (100_000, 1)
        found = bucket.read("k")
        assert found is not None
        assert found[0] == data
        assert server.cut == (100_000, 0)
        server.cut = (1, 1_000)
        unavailable(place, partial(bucket.read, "k"))


def test_a_write_whose_answer_was_lost_is_there(cloud_gate: Gate, cloud: Cloud) -> None:
    """Made, but the answer got lost: the client asks again, is told that it is there, and so does the caller know."""
    bucket = opened(cloud.url)
    lost: list[str] = []

    def rule(n: int, method: str, path: str) -> int | None:
        if method == "PUT" and not lost:
            lost.append(path)
            assert bucket.create("k", b"x") is not None
            return 500
        return None

    cloud_gate.rule = rule
    assert bucket.create("k", b"x") is None
    found = bucket.read("k")
    assert found is not None
    assert found[0] == b"x"


def test_nobody_there_and_nobody_who_answers(cloud: Cloud, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        for name, value in cloud.env(unused.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        assert "no connection" in unavailable(cloud, lambda: opened(cloud.url).read("k"))
    for name, value in cloud.env(silent).items():
        monkeypatch.setenv(name, value)
    began = time.monotonic()
    assert "does not answer" in unavailable(cloud, lambda: opened(cloud.url, 0.5).create("k", b"x"))
    assert time.monotonic() - began < 60  # it gives up, at some time


@pytest.mark.parametrize("status", [301, 400, 405])
def test_what_another_try_will_not_get(cloud_gate: Gate, cloud: Cloud, status: int) -> None:
    """A bucket in another region, a name that cannot be: no reason to ask again every few minutes for ever."""
    cloud_gate.rule = lambda n, method, path: status
    bucket = opened(cloud.url)
    for job in (lambda: bucket.create("k", b"x"), lambda: bucket.read("k"), lambda: list(bucket.list("k/"))):
        text = refusal(cloud, job)
        assert "connection" not in text
        assert ("somewhere else" if status == 301 else str(status)) in text


def test_a_conflict_that_made_nothing_is_no_object(cloud_gate: Gate, cloud: Cloud) -> None:
    """S3 says 409 where two write at a time, Azure where a container is being deleted."""
    cloud_gate.rule = lambda n, method, path: 409 if method == "PUT" else None
    bucket = opened(cloud.url)
    assert "409" in unavailable(cloud, lambda: bucket.create("k", b"x"))
    cloud_gate.rule = lambda n, method, path: None
    assert bucket.create("k", b"x") is not None
    cloud_gate.rule = lambda n, method, path: 409 if method == "PUT" else None
    assert bucket.create("k", b"x") is None


def test_words_of_the_url_are_not_taken_for_the_servers(monkeypatch: pytest.MonkeyPatch, cloud: Cloud) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        for name, value in cloud.env(unused.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        url = f"{cloud.scheme}://my-credentials/credentials/NoSuchBucket must be specified"
        assert "there is no connection" in unavailable(cloud, lambda: opened(url).read("k"))


@pytest.mark.parametrize(
    ("url", "env"),
    [
        ("gs://b/x", {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}),
        ("gs://b/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}),
        ("az://b/x", {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "no base64!"}),
    ],
)
def test_credentials_that_are_none(url: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    text = refusal(Cloud(0, ""), lambda: opened(url, 0.5).create("k", b"x"))
    assert "credentials" in text
    assert "nowhere" not in text


@pytest.mark.parametrize("bad", ["garbage", "http://", "", "ü", "http://h:99999", "http://h/x y", "ftp://h"])
def test_an_address_that_is_none(cloud: Cloud, bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would end with a panic, which is no Exception, after many lines about its insides."""
    name = next(name for name in cloud.env() if "URL" in name or "ENDPOINT" in name)
    monkeypatch.setenv(name, bad)
    with pytest.raises(StorageRefused, match=f"{name} is not the address of a server") as caught:
        opened(cloud.url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AZURE_STORAGE_ACCOUNT_NAME", "GOOGLE_BEARER_TOKEN"])
def test_a_line_end_in_a_credential(cloud: Cloud, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `export X="$(cat file)"` does not make it, but a program's configuration does."""
    monkeypatch.setenv(name, f"{SECRET}\n")
    with pytest.raises(StorageRefused, match=name) as caught:
        opened(cloud.url)
    assert SECRET not in str(caught.value)


def test_a_panic_of_the_client_is_told_like_all_else(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "garbage")
    bucket = ObjectBucket(s3.url, timeout_s=5)
    assert "these settings" in refusal(s3, lambda: bucket.read("k"))


@pytest.mark.parametrize("url", ["az://container/x", "gs:///x"])
def test_settings_that_cannot_be(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    refusal(Cloud(0, ""), lambda: opened(url, 0.5).create("k", b"x"))


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
        ("s3://bucket/../x", r"\.\."),
        ("file:///a/%2e%2e/x", r"\.\."),
        ("file:///", "whole path"),
        ("file:////", "whole path"),
        ("file:///a%00b", "control"),
        ("s3://bucket/%0a", "control"),
        ("s3://bucket/a//b", "without a name"),
        ("gs://bucket//b", "without a name"),
    ],
)
def test_urls_that_cannot_be(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_bucket_url(url)


def test_urls_that_can_be() -> None:
    assert check_bucket_url("s3://bucket/") == "s3://bucket"
    assert check_bucket_url(" file:///a/b c/ ") == "file:///a/b c"
    assert check_bucket_url("FILE:///a//b//") == "file:///a//b"
    assert check_bucket_url("S3://bucket/ä b//") == "s3://bucket/ä b"
    assert check_bucket_url("az://container/a%20b") == "az://container/a%20b"


@pytest.mark.parametrize("prefix", ["prä fix/ü", "a%20b", "日本/x y", "100%25", "a+b&c=d", "it's"])
def test_prefixes_of_any_words(cloud: Cloud, prefix: str) -> None:
    """Two prefixes stay two, and what is made there is found there."""
    bucket = opened(check_bucket_url(f"{cloud.scheme}://{cloud.bucket}/{prefix}//"))
    other = opened(f"{cloud.scheme}://{cloud.bucket}/other")
    made = bucket.create("sessions/a/m.json", b"1")
    assert made is not None
    assert bucket.replace("sessions/a/m.json", b"2", made) is not None
    assert list(bucket.list("sessions/")) == ["a"]
    assert list(other.list("sessions/")) == []
    found = opened(f"{cloud.scheme}://{cloud.bucket}/{prefix}").read("sessions/a/m.json")
    assert found is not None
    assert found[0] == b"2"
