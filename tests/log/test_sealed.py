"""Reading sealed segments: a damaged byte costs one frame at most and is told; an old event costs one frame."""

import random

import pytest

from agentsh.log.chain import LogScan
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.testing.store_contract import note
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import DIR, SESSION, header, kinds, lines, scanned
from tests.log.sealed_logs import seal_all, segment, three_segments
from tests.log.test_faults import store_on

PATH = f"{DIR}/{closed_name(0, 1)}{SEALED}"
MOST_IN_A_FRAME = 6


def sealed() -> tuple[MemFiles, bytes, list[tuple[int, bytes]]]:
    disk = three_segments()
    seal_all(disk)
    return disk, disk.data(PATH), scanned(disk)[0]


def test_every_byte_that_is_hit_costs_one_frame_at_most_and_is_told() -> None:
    disk, packed, whole = sealed()
    dice = random.Random(3)
    for place in range(len(packed)):
        hit = bytearray(packed)
        hit[place] ^= 1 << dice.randrange(8)
        disk.nodes[PATH].data[:] = hit
        found, scan = scanned(disk)
        assert set(found) <= set(whole), place
        assert [seq for seq, _ in found] == sorted(seq for seq, _ in found)
        lost = {seq for seq, _ in whole} - {seq for seq, _ in found}
        assert len(lost) <= MOST_IN_A_FRAME, place
        assert not lost or max(lost) - min(lost) == len(lost) - 1, place
        assert not lost or "sealed" in kinds(scan), place
        assert set(kinds(scan)) <= {"sealed", "gap"}, place
        assert not scan.conflict


def test_every_truncation_keeps_the_frames_before_it() -> None:
    disk, packed, whole = sealed()
    before = 0
    for size in range(0, len(packed), 3):
        disk.nodes[PATH].data[:] = packed[:size]
        found, scan = scanned(disk)
        assert set(found) <= set(whole)
        in_first = [seq for seq, _ in found if seq <= 20]
        assert in_first == list(range(1, len(in_first) + 1))
        assert len(in_first) >= before
        assert [seq for seq, _ in found if seq > 20] == list(range(21, 61))
        before = len(in_first)
        assert "sealed" in kinds(scan), size
    assert before == 20


def test_random_damage_never_makes_up_a_record() -> None:
    disk, packed, whole = sealed()
    dice = random.Random(5)
    for _ in range(400):
        hit = bytearray(packed)
        for _ in range(dice.randint(1, 4)):
            at, size = dice.randrange(len(hit)), dice.choice([1, 3, 50, 400])
            piece = bytes(hit[at : at + size])
            how = dice.randrange(4)
            if how == 0:
                hit[at : at + size] = dice.randbytes(len(piece))
            elif how == 1:
                del hit[at : at + size]
            elif how == 2:
                hit[at:at] = piece
            else:
                hit[at : at + size] = bytes(len(piece))
            if not hit:
                break
        disk.nodes[PATH].data[:] = hit
        found, _ = scanned(disk)
        assert set(found) <= set(whole)
        assert [seq for seq, _ in found] == sorted({seq for seq, _ in found})
        assert {seq for seq, _ in found} >= set(range(21, 61))


def test_a_lost_frame_is_told_with_its_place_in_the_content() -> None:
    disk, packed, _ = sealed()
    raw = segment(0, 1, 20)[1]
    second = packed.index(b"\x28\xb5\x2f\xfd", 8)
    hit = bytearray(packed)
    hit[second + 30] ^= 0xFF
    disk.put(PATH, bytes(hit))
    found, scan = scanned(disk)
    (damage,) = scan.damages
    ordinal, _, offset = damage.where.partition(":")
    lost = sorted(set(range(1, 61)) - {seq for seq, _ in found})
    place = raw.index(b'{"seq":%d,' % lost[0])
    assert (ordinal, int(offset), damage.bytes) == (
        "000000",
        place,
        raw.index(b'{"seq":%d,' % (lost[-1] + 1)) - place,
    )
    assert (damage.kind, damage.after_seq, damage.rot) == ("sealed", lost[0] - 1, True)


def test_the_first_frame_is_lost_and_the_salt_is_known_all_the_same() -> None:
    disk, packed, whole = sealed()
    for end in (len(packed), len(packed) - 200):  # also where the description is gone: the salt is solved
        hit = bytearray(packed)
        hit[20] ^= 0xFF
        disk.put(PATH, bytes(hit[:end]))
        found, scan = scanned(disk)
        assert len(whole) - len(found) <= MOST_IN_A_FRAME
        assert [seq for seq, _ in found][-54:] == list(range(7, 61))
        assert "sealed" in kinds(scan)


@pytest.mark.parametrize("data", [b"", b"garbage", bytes(5000), b"\x28\xb5\x2f\xfd" * 50])
async def test_nothing_is_left_of_it_and_the_session_opens(data: bytes) -> None:
    disk, _, _ = sealed()
    disk.put(PATH, data)
    store = store_on(disk)
    assert [r.seq for r in store.read(SESSION)] == list(range(21, 61))
    assert "sealed" in [d.kind for d in store.damages(SESSION)]
    opened = await store.open(SESSION)
    assert "sealed" in [d.kind for d in opened.recovery.damages]
    await opened.log.append([note("more")])
    await opened.log.close()
    assert [r.seq for r in store.read(SESSION)] == list(range(21, 62))
    assert disk.data(PATH) == data


async def test_sealed_and_closed_and_open_and_a_rescue() -> None:
    disk = three_segments()
    seal_all(disk, below=1)
    disk.put(f"{DIR}/{closed_name(2, 41)}", segment(2, 41, 60)[1])
    rescue = header(3, 50, rescue=True)
    disk.put(f"{DIR}/{OPEN_NAME}", rescue.raw + b"".join(lines(rescue, 50, 70)))
    store = store_on(disk)
    for after in range(72):
        assert [r.seq for r in store.read(SESSION, after_seq=after)] == list(range(after + 1, 71)), after
    assert list(store.damages(SESSION)) == []
    opened = await store.open(SESSION)
    assert [r.seq for r in opened.records] == list(range(1, 71))
    assert not opened.recovery
    await opened.log.close()
    seal_all(disk, below=3)
    for after in range(72):
        assert [r.seq for r in store.read(SESSION, after_seq=after)] == list(range(after + 1, 71)), after


def reads(files: FaultyFiles, after: int) -> int:
    """Return how many reads it takes to get the first event beyond `after`, opening not counted."""
    scan = LogScan(files, DIR, SESSION)
    before = len(files.ops)
    assert next(seq for seq, *_ in scan.entries(after) if seq > after) == after + 1
    scan.close()
    return len(files.ops) - before


def test_an_old_event_takes_one_frame() -> None:
    disk = three_segments()
    plain = FaultyFiles(disk, only=("read",))
    assert [reads(plain, after) for after in (0, 19, 20, 39)] == [1, 2, 3, 3]  # the ends of those before, its own
    seal_all(disk)
    files = FaultyFiles(disk, only=("read",))
    for after in range(40):
        assert reads(files, after) == 1, after


def test_an_old_event_behind_damage_is_found_too() -> None:
    disk, packed, whole = sealed()
    hit = bytearray(packed)
    hit[packed.index(b"\x28\xb5\x2f\xfd", 8) + 30] ^= 0xFF
    for data in (bytes(hit), packed[:-20], bytes(hit[:-20])):
        disk.put(PATH, data)
        there = [seq for seq, _ in scanned(disk)[0]]
        assert len(whole) - len(there) <= MOST_IN_A_FRAME
        for after in range(60):
            scan = LogScan(disk, DIR, SESSION)
            found = [seq for seq, *_ in scan.entries(after) if seq > after]
            assert found == [seq for seq in there if seq > after], after
            scan.close()
