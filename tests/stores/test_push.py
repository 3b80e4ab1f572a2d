"""Copies of sessions on object storage: what goes there, in which order, and what nobody can overwrite."""

import json
import re
from pathlib import Path

import pytest

from agentsh.base.errors import SessionMissing, StorageConflict, StorageDamaged, StorageRefused
from agentsh.log.files import RealFiles
from agentsh.log.lease import take
from agentsh.stores.bucket import Found
from agentsh.stores.manifest import MARKER_KEY, decode, manifest_key
from tests.stores.copies import SESSION, Machine, bucket_of, long_text

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["file", "s3", "gs", "az"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/nas"
    return str(request.getfixturevalue(request.param).url)


@pytest.fixture
def here(url: str, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", url, segment_bytes=4_000)
    machine.begin()
    return machine


@pytest.fixture
def there(url: str, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "there", url)


def test_a_session_comes_back_as_it_was(here: Machine, there: Machine) -> None:
    here.write("a", long_text(1), "b", turns=30)
    here.write("修复", long_text(2))
    done = here.pusher().push(SESSION, about={"title": "t"})
    assert done.changed
    assert done.last_seq == 92
    again = here.pusher().push(SESSION, about={"title": "t"})
    assert (again.changed, again.sent) == (False, 0)
    pulled = there.puller().pull(SESSION)
    assert pulled.how == "new"
    assert pulled.blobs == 2
    assert pulled.manifest.about == {"title": "t"}
    assert there.lines() == here.lines()
    assert there.texts()[1] == here.texts()[1]  # still a reference
    assert (there.root / "blobs").stat()
    names = {p.name for p in here.directory.iterdir() if p.name.endswith((".jsonl", ".zst"))}
    assert {p.name for p in there.directory.iterdir() if p.name.endswith((".jsonl", ".zst"))} == names
    assert len(names) > 3
    for name in names:
        assert (there.directory / name).read_bytes() == (here.directory / name).read_bytes()
    there.write("and it goes on there")
    assert there.texts()[-1] == "and it goes on there"
    assert not (there.root / "incoming").exists()


def test_what_is_new_is_sent_and_nothing_else(here: Machine) -> None:
    here.write(*(f"text {n} " * 40 for n in range(20)), long_text(1))
    first = here.pusher().push(SESSION)
    here.write("one more")
    second = here.pusher().push(SESSION)
    assert 0 < second.sent < first.sent
    assert second.last_seq == first.last_seq + 1


def test_many_small_parts_become_few(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "m", f"file://{tmp_path}/nas")
    machine.begin()
    for n in range(24):
        machine.write(f"turn {n} " + "x" * 300)
        machine.pusher().push(SESSION)
    (segment,) = machine.puller().manifest(SESSION).segments
    assert len(segment.parts) <= 5  # log2(24) + 1
    assert sum(part.raw_bytes for part in segment.parts) == segment.raw_bytes
    other = Machine(tmp_path / "o", machine.url)
    other.puller().pull(SESSION)
    assert other.lines() == machine.lines()


def test_a_writer_has_only_acknowledged_what_counts(here: Machine) -> None:
    """While somebody holds the session, lines behind what is known to be durable may still be cut back."""
    here.write("a", "b", "c")
    with (here.directory / "events.jsonl").open("rb") as file:
        last = json.loads(file.read().splitlines()[-1])
    lease = take(RealFiles(), str(here.directory), SESSION)
    try:
        assert here.pusher().push(SESSION).last_seq == last["dur"] < 3
        assert here.pusher().push(SESSION, durable_seq=2).last_seq == 2
    finally:
        lease.release()
    assert here.pusher().push(SESSION).last_seq == 3
    lease = take(RealFiles(), str(here.directory), SESSION)
    try:
        again = here.pusher().push(SESSION, durable_seq=2)  # who knows less does not take the copy back
        assert (again.last_seq, again.changed) == (3, False)
    finally:
        lease.release()


def test_a_torn_end_does_not_go_there(here: Machine, there: Machine) -> None:
    here.write("a", "b")
    with (here.directory / "events.jsonl").open("ab") as file:
        file.write(b'{"seq":3,"ts":"2026')
    assert here.pusher().push(SESSION).last_seq == 2
    there.puller().pull(SESSION)
    assert there.texts() == ["a", "b"]


def test_two_machines_cannot_both_go_on_silently(here: Machine, there: Machine) -> None:
    here.write("a")
    here.pusher().push(SESSION)
    there.puller().pull(SESSION)
    there.write("there")
    there.pusher().push(SESSION)
    with pytest.raises(StorageConflict, match="goes on to event 2, written at there") as caught:
        here.pusher().push(SESSION)
    assert "--replace" in (caught.value.hint or ""), "`pull` may refuse as well"
    here.write("here", "and here")
    with pytest.raises(StorageConflict, match="continued at there too"):
        here.pusher().push(SESSION)
    with pytest.raises(StorageConflict) as caught:
        here.puller().pull(SESSION)
    assert "--replace" in (caught.value.hint or "")
    assert (here.texts(), there.texts()) == (["a", "here", "and here"], ["a", "there"])
    done = here.pusher().push(SESSION, replace=True)
    assert done.changed
    assert here.puller().manifest(SESSION).host == "here"
    (kept,) = bucket_of(here.url).list(f"sessions/{SESSION}/replaced/")
    found = bucket_of(here.url).read(f"sessions/{SESSION}/replaced/{kept}")
    assert found is not None
    assert decode(found[0], SESSION).host == "there"


def test_a_session_that_went_on_elsewhere_is_brought_forward(here: Machine, there: Machine) -> None:
    here.write("a", long_text(1))
    here.pusher().push(SESSION)
    there.puller().pull(SESSION)
    there.write("there", long_text(2), turns=20)
    there.pusher().push(SESSION)
    (here.directory / "quarantine").mkdir()
    (here.directory / "quarantine" / "000000.17").write_bytes(b"torn")
    pulled = here.puller().pull(SESSION)
    assert pulled.how == "forward"
    assert here.lines() == there.lines()
    assert pulled.kept is not None
    assert (here.root / pulled.kept / "session" / "events.jsonl").exists()
    assert (here.directory / "quarantine" / "000000.17").read_bytes() == b"torn"
    assert here.puller().pull(SESSION).how == "same"
    here.write("here again")
    assert here.puller().pull(SESSION).how == "ahead"
    assert here.pusher().push(SESSION).changed


def test_a_race_for_the_manifest_has_one_winner(here: Machine, there: Machine) -> None:
    """Both have read the manifest; the second to write it looks again, and finds that it is behind."""
    here.write("a")
    here.pusher().push(SESSION)
    there.puller().pull(SESSION)
    there.write("there")
    here.write("here")
    bucket = bucket_of(here.url)

    class Late:
        """The bucket, but somebody else comes first."""

        url = here.url
        ready, read, head = bucket.ready, bucket.read, bucket.head
        create, list = bucket.create, bucket.list

        def replace(self, key: str, data: bytes, old: Found) -> Found | None:
            there.pusher().push(SESSION)
            return bucket.replace(key, data, old)

    with pytest.raises(StorageConflict, match="continued at there"):
        here.pusher(Late()).push(SESSION)
    assert here.puller().manifest(SESSION).host == "there"


def test_a_repaired_log_is_still_the_same_session(here: Machine, there: Machine) -> None:
    """A rescue says lines again, with other crcs: the copy follows, and events that were there stay the same."""
    from agentsh.app.repairing import WORDS
    from agentsh.stores.repair import repairing

    here.write(*(f"text {n}" for n in range(9)))
    here.pusher().push(SESSION)
    log = here.directory / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[data.index(b"text 3") + 5] ^= 1
    log.write_bytes(bytes(data))
    here.write("after")
    with repairing(str(here.root / "sessions"), SESSION, WORDS) as repairer:
        plan = repairer.plan()
        assert plan is not None
        repairer.repair(plan)
    assert here.pusher().push(SESSION).changed
    there.puller().pull(SESSION)
    assert there.lines() == here.lines()
    (kept,) = bucket_of(here.url).list(f"sessions/{SESSION}/replaced/")  # with the event that is lost here
    found = bucket_of(here.url).read(f"sessions/{SESSION}/replaced/{kept}")
    assert found is not None
    assert decode(found[0], SESSION).last_seq == 9


def test_a_copy_that_may_be_the_better_one_is_not_replaced(here: Machine) -> None:
    here.write("a", "last")
    here.pusher().push(SESSION)
    here.write("after")
    log = here.directory / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[data.index(b"last") + 1] ^= 1
    log.write_bytes(bytes(data))
    with pytest.raises(StorageConflict, match="does not read here"):
        here.pusher().push(SESSION)


def test_a_blob_that_is_missing_is_told_and_made_good_later(here: Machine, there: Machine) -> None:
    here.write("a", long_text(1))
    (blob,) = (here.root / "blobs").glob("*/*.zst")
    aside = blob.read_bytes()
    blob.unlink()
    assert here.pusher().push(SESSION).lost == 1
    assert there.puller().pull(SESSION).lost_blobs == (blob.stem,)
    blob.write_bytes(aside)
    assert here.pusher().push(SESSION).lost == 0
    again = there.puller().pull(SESSION)
    assert (again.how, again.blobs) == ("same", 1)


def test_the_newest_checkpoint_comes_along(here: Machine, there: Machine) -> None:
    from agentsh.log.chain import Anchor
    from agentsh.log.checkpoint import Checkpoint, read_checkpoint, write_checkpoint

    here.write("a", "b")
    for seq in (1, 2, 9):  # the last one is of a log that has gone farther
        write_checkpoint(
            RealFiles(), str(here.directory), Checkpoint(Anchor(seq, 0, 0, "0" * 8), SESSION, "r", b"s%d" % seq)
        )
    here.pusher().push(SESSION)
    there.puller().pull(SESSION)
    found = read_checkpoint(RealFiles(), str(there.directory), 2)
    assert found is not None
    assert found.state == b"s2"
    assert read_checkpoint(RealFiles(), str(there.directory), 9) is None


def test_wrong_objects_are_refused_and_named(url: str, tmp_path: Path) -> None:
    """Whatever object is changed, nothing is put in place; a push heals it."""
    here, there = Machine(tmp_path / "here", url), Machine(tmp_path / "there", url)
    here.begin()
    here.write("a", long_text(1, 200_000), "b" * 5000)
    here.pusher().push(SESSION)
    bucket = bucket_of(url)
    manifest = here.puller().manifest(SESSION)
    (blob,) = (here.root / "blobs").glob("*/*.zst")
    for key in (manifest.segments[0].parts[0].key, f"blobs/{blob.stem[:2]}/{blob.name}", manifest_key(SESSION)):
        found = bucket.read(key)
        assert found is not None
        bad = bytearray(found[0])
        bad[len(bad) // 2] ^= 1
        replaced = bucket.replace(key, bytes(bad), found[1])
        assert replaced is not None
        with pytest.raises(StorageDamaged, match=re.escape(key)):
            there.puller().pull(SESSION)
        assert not there.directory.exists()
        bucket.replace(key, found[0], replaced)
    there.puller().pull(SESSION)
    assert there.lines() == here.lines()


def test_an_object_that_was_packed_anew_is_not_the_one_that_was_put_there(url: str, tmp_path: Path) -> None:
    """Its content is the same; its SHA-256 is not that of the manifest."""
    import zstandard

    here, there = Machine(tmp_path / "here", url), Machine(tmp_path / "there", url)
    here.begin()
    here.write(long_text(1), "a" * 2_000)
    here.pusher().push(SESSION)
    bucket = bucket_of(url)
    (segment,) = here.puller().manifest(SESSION).segments
    key = segment.parts[0].key
    found = bucket.read(key)
    assert found is not None
    content = zstandard.ZstdDecompressor().decompress(found[0])
    again = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(content)
    assert again != found[0]
    bucket.replace(key, again, found[1])
    with pytest.raises(StorageDamaged, match="SHA-256"):
        there.puller().pull(SESSION)
    assert not there.directory.exists()


def test_a_damaged_object_is_made_good_by_a_push_that_needs_it(url: str, tmp_path: Path) -> None:
    here, there = Machine(tmp_path / "here", url), Machine(tmp_path / "there", url)
    here.begin()
    here.write(long_text(1))
    (blob,) = (here.root / "blobs").glob("*/*.zst")
    bucket = bucket_of(url)
    bucket.create(f"blobs/{blob.stem[:2]}/{blob.name}", b"somebody put something else here")
    here.pusher().push(SESSION)
    there.puller().pull(SESSION)
    assert there.store.blobs.get(f"sha256:{blob.stem}")


def test_a_copy_that_was_damaged_is_made_good_by_who_has_the_session(url: str, tmp_path: Path) -> None:
    """A push compares manifests, and finds nothing to do; with `replace` it looks at each object."""
    here = Machine(tmp_path / "here", url, segment_bytes=4_000)
    here.begin()
    here.write("a" * 900, long_text(1, 200_000), long_text(2), turns=9)
    here.pusher().push(SESSION, about={"title": "t"})
    bucket = bucket_of(url)
    manifest = here.puller().manifest(SESSION)
    blobs = [f"blobs/{path.stem[:2]}/{path.name}" for path in (here.root / "blobs").glob("*/*.zst")]
    keys = [part.key for segment in manifest.segments for part in segment.parts]
    assert len(blobs) == 2
    assert len(keys) > 2
    for n, key in enumerate([keys[0], keys[-1], *blobs]):
        found = bucket.read(key)
        assert found is not None
        bad = bytearray(found[0])
        bad[len(bad) // 2] ^= 1
        assert bucket.replace(key, bytes(bad), found[1]) is not None
        there = Machine(tmp_path / f"there{n}", url)
        with pytest.raises(StorageDamaged):
            there.puller().pull(SESSION)
        done = here.pusher().push(SESSION, about={"title": "t"}, replace=True)
        assert (done.changed, done.sent) == (False, len(bad))
        there.puller().pull(SESSION)
        assert there.lines() == here.lines()
    assert here.puller().manifest(SESSION) == manifest
    assert list(bucket.list(f"sessions/{SESSION}/replaced/")) == []


def test_hostile_manifests_lead_nowhere(url: str, tmp_path: Path) -> None:
    """Names and keys of a manifest become paths: none leads out of the staging directory or the session's keys."""
    from agentsh.stores.manifest import encode

    here, there = Machine(tmp_path / "here", url), Machine(tmp_path / "there", url)
    here.begin()
    here.write("a")
    here.pusher().push(SESSION)
    bucket = bucket_of(url)
    good = here.puller().manifest(SESSION)
    (segment,) = good.segments
    evil_key = segment.parts[0]._replace(key=f"sessions/{SESSION}/../../x")
    for bad in (
        good._replace(segments=(segment._replace(name="../../../evil.jsonl"),)),
        good._replace(segments=(segment._replace(name="lock"),)),
        good._replace(segments=(segment, segment)),
        good._replace(segments=(segment._replace(parts=(evil_key,)),)),
        good._replace(checkpoint=evil_key),
        good._replace(session="20261129-000000"),
    ):
        found = bucket.head(manifest_key(SESSION))
        assert found is not None
        assert bucket.replace(manifest_key(SESSION), encode(bad), found) is not None
        with pytest.raises(StorageDamaged):
            there.puller().pull(SESSION)
    assert not there.directory.exists()


def test_a_place_that_overwrites_what_it_was_told_not_to_is_refused(tmp_path: Path) -> None:
    here = Machine(tmp_path / "here", f"file://{tmp_path}/nas")
    here.begin()
    here.write("a")
    bucket = bucket_of(here.url)

    class Careless:
        """Storage of a kind that knows no If-Match."""

        url = "s3://careless"
        ready, read, head = bucket.ready, bucket.read, bucket.head
        create, list = bucket.create, bucket.list

        def replace(self, key: str, data: bytes, old: Found) -> Found | None:
            now = bucket.head(key)
            return None if now is None else bucket.replace(key, data, now)

    with pytest.raises(StorageRefused, match="overwrites"):
        here.pusher(Careless()).push(SESSION)
    assert bucket.head(MARKER_KEY) is None


def test_no_session_and_an_empty_one(url: str, here: Machine) -> None:
    assert here.pusher().push(SESSION).last_seq == 0
    with pytest.raises(SessionMissing):
        here.pusher().push("20261129-000000")
    with pytest.raises(SessionMissing):
        here.puller().pull(SESSION)
