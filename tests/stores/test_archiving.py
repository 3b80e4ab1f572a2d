"""Archiving removes what is a copy, and nothing else: other forms of a segment, leftovers, checkpoints."""

from pathlib import Path

import pytest

from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, checkpoint_seqs, write_checkpoint
from agentsh.log.files import RealFiles
from agentsh.log.packed import NAME, is_archived
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.stores.archiving import archive_session, unarchive_session
from tests.log import archives
from tests.log.archives import bare, broken, long_log, packed_log
from tests.log.disks import MemFiles, UnsyncedFiles
from tests.log.logs import DIR, SESSION, line
from tests.log.sealed_logs import seal_all, segment, three_segments
from tests.stores.test_repair import HEAD, LINES, WHOLE, Place, bodies

FIRST, SECOND = closed_name(0, 1), closed_name(1, 21)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "sessions")


def three(place: Place) -> dict[str, bytes]:
    """Put a log of three segments there; return what its closed ones are when they are sealed."""
    source = three_segments()
    for name in (FIRST, SECOND, OPEN_NAME):
        place.put(source.data(f"{DIR}/{name}"), name)
    seal_all(source)
    return {name + SEALED: source.data(f"{DIR}/{name}{SEALED}") for name in (FIRST, SECOND)}


def other() -> bytes:
    """Return a sealed segment with the name of FIRST that holds something else."""
    disk = MemFiles()
    head, _ = segment(0, 1, 20)
    disk.put(f"{DIR}/{FIRST}", head.raw + b"".join(line(n, head.salt, text=f"else {n}") for n in range(1, 21)))
    disk.put(f"{DIR}/{OPEN_NAME}", segment(1, 21, 40)[1])
    seal_all(disk, below=1)
    return disk.data(f"{DIR}/{FIRST}{SEALED}")


def archive(place: Place) -> bool:
    return archive_session(str(place.root), SESSION, dict, files=UnsyncedFiles()).before


def unarchive(place: Place) -> object:
    return unarchive_session(str(place.root), SESSION, files=UnsyncedFiles())


def test_the_other_form_of_a_segment_goes_only_where_it_is_a_copy(place: Place) -> None:
    sealed = three(place)
    for name, data in sealed.items():  # sealing was interrupted
        place.put(data, name)
    archive(place)
    assert place.kept() == []
    unarchive(place)
    place.put(other(), FIRST + SEALED)
    place.put(b"rubbish", SECOND + SEALED)
    archive(place)
    assert sorted(place.kept()) == sorted([other(), b"rubbish"])
    assert len(place.records()) == 60


@pytest.mark.parametrize("way", ["archive", "unarchive", "open"])
def test_leftovers_beside_an_archive_go_only_where_they_are_in_it(place: Place, way: str) -> None:
    sealed = three(place)
    plain = (place.directory / SECOND).read_bytes()
    archive(place)
    place.put(sealed[FIRST + SEALED], FIRST + SEALED)
    place.put(plain, SECOND)
    strange = segment(7, 90, 99)[1]
    place.put(strange, closed_name(7, 90))
    place.put(other(), SECOND + SEALED)
    if way == "archive":
        archive(place)
    elif way == "unarchive":
        unarchive(place)
    else:
        place.store().read(SESSION)
    if way == "open":
        assert place.goes_on() == 61
    assert sorted(place.kept()) == sorted([strange, other()])
    assert [r.seq for r in place.records()][:60] == list(range(1, 61))


def test_leftovers_beside_a_damaged_archive_stay(place: Place) -> None:
    three(place)
    plain = (place.directory / FIRST).read_bytes()
    archive(place)
    path = place.directory / NAME
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    place.put(plain, FIRST)
    archive(place)
    assert (place.directory / FIRST).read_bytes() == plain


def test_a_damaged_archive_that_was_taken_back_is_not_replaced_by_a_new_one(place: Place) -> None:
    """Killed between the name of the open segment and the quarantine: it may hold what the log has lost."""
    content, packed = long_log(), bare(packed_log())
    damaged = broken(packed, len(content[archives.FIRST]) + len(content[archives.SECOND]) * 3 // 4)
    lost = {archives.SECOND: content[archives.SECOND][:5000]}
    for name, data in (content | lost | {NAME: damaged}).items():
        place.put(data, name)
    assert archive_session(str(place.root), SESSION, dict, files=UnsyncedFiles()).kept == NAME
    assert place.kept() == [damaged]


def test_a_copy_beside_a_log_that_was_sealed_since_is_one_still(place: Place) -> None:
    sealed = three(place)
    archive(place)
    copy = (place.directory / NAME).read_bytes()
    unarchive(place)
    place.put(sealed[FIRST + SEALED], FIRST + SEALED)
    (place.directory / FIRST).unlink()
    place.put(copy, NAME)
    assert place.goes_on() == 61
    assert place.kept() == []
    assert not (place.directory / NAME).exists()


@pytest.mark.parametrize("kind", ["damaged", "of another log", "a copy"])
def test_an_archive_that_is_not_the_log_is_not_written_over(place: Place, kind: str) -> None:
    """Taking a damaged one back was killed after its segments were in their places, and nobody opened it since."""
    three(place)
    archive(place)
    beside = (place.directory / NAME).read_bytes()
    unarchive(place)
    if kind == "damaged":
        beside = beside[: len(beside) // 2]
    elif kind == "of another log":
        assert place.goes_on() == 61
        archive(place)
        beside = (place.directory / NAME).read_bytes()
        unarchive(place)
        (place.directory / OPEN_NAME).write_bytes(segment(2, 41, 60)[1])
    place.put(beside, NAME)
    archive(place)
    assert place.kept() == ([] if kind == "a copy" else [beside])
    assert [r.seq for r in place.records()][:60] == list(range(1, 61))


def a_checkpoint(place: Place, seq: int) -> None:
    at = len(HEAD.raw) + sum(map(len, LINES[: seq - 1]))
    anchor = Anchor(seq, 0, at, LINES[seq - 1][-11:-3].decode())
    write_checkpoint(UnsyncedFiles(), str(place.directory), Checkpoint(anchor, SESSION, "r", b"state"))


def checkpoints(place: Place) -> list[int]:
    return list(checkpoint_seqs(RealFiles(), str(place.directory)))


def test_checkpoints_of_a_whole_log_go(place: Place) -> None:
    place.put(WHOLE)
    a_checkpoint(place, 35)
    archive(place)
    assert checkpoints(place) == []


@pytest.mark.parametrize("repaired", [False, True])
def test_checkpoints_that_know_more_than_the_log_stay(place: Place, repaired: bool) -> None:
    """An end that is gone, or a middle: their seqs are not used again, and the state of before is not lost."""
    place.put(HEAD.raw + b"".join(LINES[:9] + LINES[12:30]))
    a_checkpoint(place, 35)
    if repaired:
        assert place.repair() is not None
        assert place.verify().ok
    before = bodies(place.records())
    archive(place)
    assert is_archived(RealFiles(), str(place.directory))
    assert checkpoints(place) == [35]
    unarchive(place)
    assert checkpoints(place) == [35]
    assert bodies(place.records()) == before
    assert place.verify().useless == ()
