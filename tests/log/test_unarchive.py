"""What is left of a damaged archive comes back, the archive stays in quarantine; no fault on the way loses any."""

import errno
import json
from contextlib import suppress
from hashlib import sha256
from random import Random

import pytest

from agentsh.base.errors import LogTooNew, SessionReadOnly
from agentsh.log.archive import Unarchivable, archive
from agentsh.log.checkpoint import checkpoint_seqs
from agentsh.log.files import FileSystem
from agentsh.log.frame import with_crc
from agentsh.log.packed import NAME, Contents, TooNew, describe, is_archived, verified
from agentsh.log.parity import BLOCK_BYTES
from agentsh.log.seekable import DESCRIPTION_MAGIC, SKIPPABLE_HEADER, skippable
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.log.unarchive import BACK, Taken, settle, unarchive
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.disks import SimDisk
from agentsh.testing.store_contract import note
from tests.log.archives import (
    ALL,
    FIRST,
    GOLDEN,
    PATH,
    SECOND,
    bare,
    broken,
    flipped,
    holding,
    kept,
    long_log,
    on_sim,
    packed_log,
    seqs,
    shape,
)
from tests.log.disks import FaultyFiles, MemFiles, PowerCut
from tests.log.logs import DIR, SESSION
from tests.log.sealed_logs import segment

CONTENT = long_log()
WHOLE = packed_log()
AT, END = shape(WHOLE)
OLD = bare(WHOLE)
OLD_AT = shape(OLD)[0]
IN_SECOND = len(CONTENT[FIRST]) + len(CONTENT[SECOND]) * 3 // 4
"""A byte of the content, in the second segment."""
DAMAGED = broken(OLD, IN_SECOND)


async def goes_on(files: MemFiles | FaultyFiles) -> tuple[list[int], int]:
    """Open, append, close, and open again, which must find nothing more to do; return what read, and the new seq."""
    store = JsonlStore("/sessions", FileBlobs("/blobs", files=files), files=files, min_free_bytes=0)
    opened = await store.open(SESSION)
    found = [record.seq for record in opened.records]
    assert found == ALL or opened.recovery
    (more,) = await opened.log.append([note("goes on")])
    await opened.log.wait_durable(more.seq)
    await opened.log.close()
    again = await store.open(SESSION)
    assert not again.recovery.quarantined
    assert not again.recovery.cut_bytes
    assert [record.seq for record in again.records] == [*found, more.seq]
    await again.log.close()
    return found, more.seq


@pytest.mark.parametrize(("name", "whole"), [("before-parity", True), ("parity", True), ("mended", False)])
def test_the_golden_archives_read_for_ever(name: str, whole: bool) -> None:
    disk = holding((GOLDEN / f"{name}.jsonl.zst").read_bytes())
    about = describe(disk, PATH)
    assert about is not None
    assert (about.session, about.last_seq, about.parity) == (SESSION, 60, name != "before-parity")
    assert (verified(disk, PATH) is not None) == whole
    assert unarchive(disk, DIR) == (Taken() if whole else Taken(NAME, True))
    assert seqs(disk) == ALL
    assert {n: sha256(disk.data(f"{DIR}/{n}")).hexdigest() for n, _, _ in about.members} == {
        n: digest for n, _, digest in about.members
    }


def test_a_new_one_says_how_long_the_log_was_and_that_it_has_parity() -> None:
    about = describe(holding(WHOLE), PATH)
    assert about is not None
    assert (about.last_seq, about.parity) == (60, True)
    assert json.loads(WHOLE[SKIPPABLE_HEADER.size : AT])["last_seq"] == 60


@pytest.mark.parametrize("seed", range(3))
async def test_one_damaged_byte_costs_nothing(seed: int) -> None:
    dice = Random(seed)
    places = [*range(8), dice.randrange(AT), AT, AT + 5, END - 1, END, END + 30, len(WHOLE) - 1]
    for place in [*places, *(dice.randrange(len(WHOLE)) for _ in range(12))]:
        data = flipped(WHOLE, place)
        disk = holding(data)
        assert verified(disk, PATH) is None, place
        assert unarchive(disk, DIR) == Taken(NAME, True), place
        assert {name: disk.data(f"{DIR}/{name}") for name in CONTENT} == CONTENT, place
        assert kept(disk) == {NAME: data}
        assert await goes_on(disk) == (ALL, 61)


@pytest.mark.parametrize("cut", [END + 1, END + 400, len(WHOLE) - 1])
def test_nor_does_an_end_that_is_cut_off_behind_the_frame(cut: int) -> None:
    disk = holding(WHOLE[:cut])
    assert unarchive(disk, DIR) == Taken(NAME, True)
    assert seqs(disk) == ALL


def test_nor_a_page_of_nuls_wherever_it_begins() -> None:
    for at in range(0, len(WHOLE), 4096):
        data = WHOLE[:at] + bytes(4096) + WHOLE[at + 4096 :]
        disk = holding(data)
        assert unarchive(disk, DIR) == Taken(NAME, True), at
        assert {name: disk.data(f"{DIR}/{name}") for name in CONTENT} == CONTENT, at


async def test_of_more_damage_than_parity_mends_what_comes_before_is_back() -> None:
    disk = holding(DAMAGED)
    assert await goes_on(disk) == (found := seqs(holding_segments(DAMAGED)), 61)
    assert found == ALL[: len(found)]
    assert 20 < len(found) < 40
    assert disk.data(f"{DIR}/{FIRST}") == CONTENT[FIRST]
    assert CONTENT[SECOND].startswith(disk.data(f"{DIR}/{SECOND}"))
    assert kept(disk)[NAME] == DAMAGED


async def test_what_zstd_does_not_notice_costs_the_entries_that_it_hits() -> None:
    """A byte that comes out as another one: all behind it unpacks, and each line has its crc."""
    place = OLD_AT + (len(OLD) - OLD_AT) // 2
    costs = set()
    for n in range(40):
        disk = holding(flipped(OLD, place + n))
        found, seq = await goes_on(disk)
        assert seq == 61
        assert found == sorted(set(found) & set(ALL))
        costs.add(60 - len(found))
    assert 1 in costs


def holding_segments(packed: bytes) -> MemFiles:
    disk = holding(packed)
    unarchive(disk, DIR)
    return disk


async def test_one_that_is_cut_short_keeps_all_that_unpacks() -> None:
    before = 0
    for size in range(OLD_AT + (80 << 10), len(OLD), 9_000):  # before that no block of zstd is whole
        disk = holding(OLD[:size])
        found, seq = await goes_on(disk)
        assert found == ALL[: len(found)]
        assert before <= len(found)
        assert seq == 61, size
        before = len(found)
    assert before > 40


async def test_what_is_missing_is_told_when_it_opens() -> None:
    disk = holding(DAMAGED)
    store = JsonlStore("/sessions", FileBlobs("/blobs", files=disk), files=disk, min_free_bytes=0)
    opened = await store.open(SESSION)
    last = opened.records[-1].seq
    assert opened.recovery.quarantined[0] == NAME
    assert ("gap", last) in {(damage.kind, damage.after_seq) for damage in opened.recovery.damages}
    assert opened.recovery.lost_after(60) >= last
    assert opened.log.last_seq == 60
    await opened.log.close()


@pytest.mark.parametrize("place", [1, 6, 40, 200])
async def test_without_its_description_the_segments_are_told_by_their_headers(place: int) -> None:
    disk = holding(flipped(OLD, place))
    assert await goes_on(disk) == (ALL, 61)
    assert {name: disk.data(f"{DIR}/{name}") for name in (FIRST, SECOND)} == {n: CONTENT[n] for n in (FIRST, SECOND)}


async def test_without_its_description_and_with_a_damaged_frame_as_much_as_with_it() -> None:
    found, _ = await goes_on(holding(flipped(DAMAGED, 40)))
    assert found == seqs(holding_segments(DAMAGED))


@pytest.mark.parametrize("place", range(9))
def test_a_damaged_frame_header_is_known_by_heart(place: int) -> None:
    """Nine bytes, any of which would cost everything."""
    disk = holding(flipped(OLD, OLD_AT + place))
    assert unarchive(disk, DIR) == Taken(NAME, True), place
    assert seqs(disk) == ALL


@pytest.mark.parametrize("data", [b"", b"x", bytes(5000), b"hello\n" * 90, WHOLE[:AT]])
async def test_where_nothing_is_left_nothing_is_changed_unless_it_is_asked_for(data: bytes) -> None:
    disk = holding(data)
    with pytest.raises(Unarchivable):
        unarchive(disk, DIR)
    store = JsonlStore("/sessions", FileBlobs("/blobs", files=disk), files=disk, min_free_bytes=0)
    with pytest.raises(SessionReadOnly, match="nothing of"):
        await store.open(SESSION)
    assert sorted(disk.listdir(DIR)) == [NAME, "lock"]
    assert disk.data(PATH) == data
    assert unarchive(disk, DIR, of_nothing=True) == Taken(NAME, False)
    assert kept(disk) == {NAME: data}
    assert not is_archived(disk, DIR)


async def test_one_of_a_newer_format_is_left_alone() -> None:
    about = json.loads(WHOLE[SKIPPABLE_HEADER.size : AT]) | {"format": "agentsh-archive/9"}
    del about["crc"]
    newer = skippable(DESCRIPTION_MAGIC, with_crc(json.dumps(about)[:-1], 0)) + WHOLE[AT:]
    disk = holding(newer)
    with pytest.raises(TooNew):
        unarchive(disk, DIR, of_nothing=True)
    store = JsonlStore("/sessions", FileBlobs("/blobs", files=disk), files=disk, min_free_bytes=0)
    with pytest.raises(LogTooNew):
        await store.open(SESSION)
    assert sorted(disk.listdir(DIR)) == [NAME, "lock"]


def test_closed_segments_that_were_left_beside_it_give_back_what_it_has_lost() -> None:
    """Archiving died behind its last decision, and the archive is damaged since: they are the only whole copy."""
    disk = holding(DAMAGED)
    disk.put(f"{DIR}/{SECOND}", CONTENT[SECOND])
    disk.put(f"{DIR}/{FIRST}", b"something else")
    assert unarchive(disk, DIR) == Taken(NAME, False)
    assert disk.data(f"{DIR}/{SECOND}") == CONTENT[SECOND]
    assert seqs(disk) == ALL[:40]
    assert kept(disk) == {NAME: DAMAGED, FIRST: b"something else"}
    assert not [name for name in disk.listdir(DIR) if name.endswith(BACK)]


def test_of_an_archive_of_which_nothing_is_left_too() -> None:
    disk = holding(bytes(3000))
    disk.put(f"{DIR}/{FIRST}", CONTENT[FIRST])
    assert unarchive(disk, DIR) == Taken(NAME, False)
    assert seqs(disk) == ALL[:20]


def test_but_nothing_joins_a_log_of_which_nothing_is_lost() -> None:
    """Its description is gone, its content is all there: a segment beside it is somebody else's."""
    disk = holding(flipped(OLD, 40))
    name, strange = closed_name(7, 90), segment(7, 90, 99)[1]
    disk.put(f"{DIR}/{name}", strange)
    assert unarchive(disk, DIR) == Taken(NAME, True)
    assert seqs(disk) == ALL
    assert kept(disk) == {NAME: flipped(OLD, 40), name: strange}


def test_taking_back_twice_leaves_no_second_copy_in_quarantine() -> None:
    """Killed between the names of the closed segments and the end: what it had put there is not set aside."""
    disk = holding(DAMAGED)
    unarchive(disk, DIR)
    disk.rename(f"{DIR}/quarantine/{NAME}", PATH)
    assert is_archived(disk, DIR)
    assert unarchive(disk, DIR) == Taken(NAME, False)
    assert kept(disk) == {NAME: DAMAGED}


def test_an_archive_beside_its_log_goes_only_as_long_as_all_segments_are_what_they_were() -> None:
    """Killed before it was removed: of a segment that is damaged since it is the only whole copy."""
    disk = holding(WHOLE)
    for name, data in CONTENT.items():
        disk.put(f"{DIR}/{name}", data)
    assert settle(disk, DIR) == Taken()
    assert not kept(disk)
    disk.put(PATH, WHOLE)
    disk.put(f"{DIR}/{SECOND}", flipped(CONTENT[SECOND], 5000))
    assert settle(disk, DIR) == Taken(NAME)
    assert kept(disk) == {NAME: WHOLE}


def test_the_length_of_the_log_outlives_a_second_archive() -> None:
    disk = holding_segments(DAMAGED)
    assert checkpoint_seqs(disk, DIR) == [60]
    disk.put(f"{DIR}/{OPEN_NAME}", disk.data(f"{DIR}/{SECOND}"))
    disk.unlink(f"{DIR}/{SECOND}")
    assert archive(disk, DIR, SESSION, {}).last_seq == 60


def settled(files: MemFiles | SimDisk, segments: dict[str, bytes], packed: bytes, n: int) -> None:
    """Whatever was interrupted: opening goes on from there, to the same segments and the archive in quarantine."""
    if NAME in files.listdir(DIR):
        with Contents(files, PATH) as contents:
            assert contents.told, n
    settle(files, DIR)
    assert settle(files, DIR) == Taken(), n
    names = [name for name in files.listdir(DIR) if name.endswith((".jsonl", SEALED, BACK))]
    found = {name: read(files, f"{DIR}/{name}") for name in names}
    assert found == segments, n
    assert list(kept(files).values()).count(packed) >= 1, n
    assert set(kept(files).values()) == {packed}, n


def read(files: FileSystem, path: str) -> bytes:
    fd = files.open(path, 0)
    try:
        return files.read(fd, 1 << 30, 0)
    finally:
        files.close(fd)


CASES = {
    "a part is lost": DAMAGED,
    "the open segment is hurt": broken(OLD, 3 * len(CONTENT[FIRST]) - 9000),
    "mended": flipped(WHOLE, AT),
}


def segments_of(packed: bytes) -> dict[str, bytes]:
    disk = holding_segments(packed)
    return {name: disk.data(f"{DIR}/{name}") for name in disk.listdir(DIR) if name.endswith(".jsonl")}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_of_a_salvage_fails_in_turn(case: str, for_ever: bool) -> None:
    """Also where the power goes and takes all that was not synced."""
    packed, wanted = CASES[case], segments_of(CASES[case])
    n, done = 0, False
    while not done:
        n += 1
        disk = PowerCut()
        disk.put(f"{DIR}/lock", b"")
        disk.put(PATH, packed)
        files = FaultyFiles(disk, n, errno.ENOSPC, for_ever=for_ever)
        with suppress(OSError):
            unarchive(files, DIR)
        done = not files.hit
        assert disk.fds == {}, n
        for after in (*disk.left(), disk):
            settled(after, wanted, packed, n)
    assert n > 30


@pytest.mark.parametrize("case", CASES)
def test_power_cuts_in_a_salvage_that_keep_any_part_of_what_was_not_synced(case: str) -> None:
    """At each operation in turn, and then at any of what goes on from there."""
    dice, n, done = Random(11), 0, False
    packed, wanted = CASES[case], segments_of(CASES[case])
    while not done:
        n += 1
        disk = on_sim({NAME: packed})
        files = FaultyFiles(disk, n, errno.EIO, for_ever=True)
        with suppress(OSError):
            unarchive(files, DIR)
        done = not files.hit
        disk.kill()
        after = disk.after_cut(dice)
        again = FaultyFiles(after, dice.randint(1, n), errno.EIO, for_ever=True)
        with suppress(OSError):
            settle(again, DIR)
        after.kill()
        settled(after.after_cut(dice), wanted, packed, n)


async def test_damage_of_any_kind_is_survived() -> None:
    """Whatever is done to it: what reads is a part of what it was, all numbers of before stay used, it goes on."""
    dice = Random(3)
    for n in range(120):
        data = spoiled(dice.choice((WHOLE, OLD)), dice)
        disk = holding(data)
        try:
            found, seq = await goes_on(disk)
        except SessionReadOnly:  # nothing of it is left
            assert disk.data(PATH) == data
            continue
        assert found == sorted(set(found) & set(ALL)), n
        assert seq > max(found, default=0)
        if found != ALL:
            assert kept(disk)[NAME] == data


def spoiled(packed: bytes, dice: Random) -> bytes:
    data, how = bytearray(packed), dice.randrange(6)
    at, size = dice.randrange(len(data)), dice.choice((1, BLOCK_BYTES, 9000))
    if how == 0:
        del data[at:]
    elif how == 1:
        del data[at : at + size]
    elif how == 2:
        data[at : at + size] = bytes(len(data[at : at + size]))
    elif how == 3:
        data[at : at + size] = dice.randbytes(len(data[at : at + size]))
    else:
        for _ in range(dice.choice((2, 9))):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)
