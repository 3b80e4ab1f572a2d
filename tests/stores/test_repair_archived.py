"""Repair of an archived session: the archive is its only copy, and stays, whatever is made of what is left of it."""

from pathlib import Path

import pytest

from agentsh.log.archive import archive
from agentsh.log.files import RealFiles
from agentsh.log.packed import NAME, is_archived
from agentsh.log.segment import OPEN_NAME
from agentsh.log.unarchive import settle
from tests.log.archives import bare, broken, long_log, packed_log
from tests.log.logs import SESSION, header, lines
from tests.stores.test_repair import WHOLE, Place, bodies, flipped


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "sessions")


def archived(place: Place, data: bytes) -> Path:
    place.put(data)
    archive(RealFiles(), str(place.directory), SESSION, {})
    assert is_archived(RealFiles(), str(place.directory))
    return place.directory / NAME


def test_one_that_is_whole_is_left_alone(place: Place) -> None:
    """It was taken for a log without segments, and an empty one made; the next opening then removed the archive."""
    path = archived(place, WHOLE)
    before = path.read_bytes()
    assert place.repair() is None
    assert path.read_bytes() == before
    assert not place.log.exists()
    assert len(place.records()) == 40
    assert place.goes_on() == 41


def test_one_with_damage_in_it_is_unpacked_and_repaired(place: Place) -> None:
    damaged = flipped(WHOLE, len(WHOLE) // 2)
    archived(place, damaged)
    before = bodies(place.records())
    assert len(before) == 39
    assert place.repair() is not None
    assert place.verify().ok
    assert place.kept() == [damaged]
    assert before.items() <= bodies(place.records()).items()
    assert place.goes_on() == 42


@pytest.mark.parametrize("at", [20, 700, -60])
def test_one_that_is_damaged_itself_is_unpacked_and_kept(place: Place, at: int) -> None:
    path = archived(place, WHOLE)
    data = flipped(path.read_bytes(), at)
    path.write_bytes(data)
    assert [d.kind for d in place.verify().damages] == ["scratch"]
    assert place.repair() is None
    assert place.log.read_bytes() == WHOLE
    assert place.kept() == [data]
    assert place.verify().ok
    assert place.goes_on() == 41


def test_of_one_that_has_lost_a_part_the_missing_events_are_filled_in(place: Place) -> None:
    whole = packed_log()
    content_at = sum(len(data) for data in list(long_log().values())[:2]) - 9000
    damaged = broken(bare(whole), content_at)
    place.put(damaged, NAME)
    left = bodies(place.records())
    assert 20 < len(left) < 40
    found = place.verify()
    assert "archive" in {d.kind for d in found.damages}
    plan, _ = place.repair() or pytest.fail("nothing was repaired")
    assert plan.salvage.lost == ((len(left) + 1, 60),)
    assert plan.checkpoints == ()
    assert damaged in place.kept()
    assert place.verify().ok
    assert not place.verify().useless
    assert left.items() <= bodies(place.records()).items()
    assert place.goes_on() == 62


@pytest.mark.parametrize("data", [b"", bytes(3000), b"hello\n" * 90])
def test_of_one_of_which_nothing_is_left_the_log_is_begun_anew(place: Place, data: bytes) -> None:
    place.put(data, NAME)
    plan, _ = place.repair() or pytest.fail("nothing was repaired")
    assert plan.begins_anew
    assert place.kept() == [data]
    assert place.verify().ok


def test_an_archive_that_holds_more_than_the_log_is_never_removed(place: Place) -> None:
    """As where a repair had made an empty log beside it."""
    path = archived(place, WHOLE)
    before = path.read_bytes()
    head = header()
    place.put(head.raw + b"".join(lines(head, 1, 2)))
    settle(RealFiles(), str(place.directory))
    assert (place.kept(), path.exists()) == ([before], False)
    assert (place.directory / OPEN_NAME).exists()


@pytest.mark.parametrize("behind", [None, b"\n", bytes(90_000)])
def test_what_is_wrong_behind_all_of_it_is_told_and_costs_nothing(place: Place, behind: bytes | None) -> None:
    """A byte is missing of the last checksum, or there are more behind it: each segment has a hash of its own."""
    path = archived(place, WHOLE)
    path.write_bytes(path.read_bytes()[:-1] if behind is None else path.read_bytes() + behind)
    damaged = path.read_bytes()
    assert [d.kind for d in place.verify().damages] == ["scratch"]
    assert place.repair() is None
    assert place.verify().ok
    assert place.log.read_bytes() == WHOLE
    assert place.kept() == [damaged]
