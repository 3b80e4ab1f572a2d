"""Sealing loses nothing wherever it stops, ends what it began, and leaves alone what it cannot vouch for."""

import errno
import threading
from contextlib import suppress

import pytest

from agentsh.log.seal import Pass, Stopped, pending, seal_closed
from agentsh.log.sealer import Sealer
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.testing.store_contract import note
from tests.log.disks import FaultyFiles, MemFiles, PowerCut
from tests.log.logs import DIR, SESSION, header, lines, scanned
from tests.log.sealed_logs import FRAME, seal_all, segment, three_segments, unpacked
from tests.log.test_faults import store_on

FIRST, SECOND = closed_name(0, 1), closed_name(1, 21)
ALL = list(range(1, 61))


def names(disk: MemFiles) -> list[str]:
    return sorted(disk.listdir(DIR))


def seqs(disk: MemFiles) -> list[int]:
    found, scan = scanned(disk)
    assert scan.damages == []
    assert not scan.conflict
    return [seq for seq, _ in found]


def test_the_closed_ones_are_sealed_and_the_open_one_is_not() -> None:
    disk, plain = three_segments(), three_segments()
    assert pending(disk, DIR, below=2, min_bytes=0)
    done = seal_all(disk)
    assert done == Pass((FIRST + SEALED, SECOND + SEALED), ())
    assert names(disk) == [FIRST + SEALED, SECOND + SEALED, OPEN_NAME, "lock"]
    for name in (FIRST, SECOND):
        assert unpacked(disk.data(f"{DIR}/{name}{SEALED}")) == plain.data(f"{DIR}/{name}")
    assert scanned(disk)[0] == scanned(plain)[0]
    assert disk.fds == {}
    assert not pending(disk, DIR, below=2, min_bytes=0)
    assert seal_all(disk) == ((), ())


def test_only_what_is_long_enough_and_not_being_written() -> None:
    disk = three_segments()
    size = len(disk.data(f"{DIR}/{FIRST}"))
    assert not pending(disk, DIR, below=2, min_bytes=size + 999)
    assert seal_closed(disk, DIR, SESSION, below=2, min_bytes=size + 999) == ((), ())
    assert seal_all(disk, below=1).sealed == (FIRST + SEALED,)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_fails_in_turn(error: int, for_ever: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the power goes and takes all that was not synced; the next pass brings it to its end."""
    monkeypatch.setattr("agentsh.log.seal.SYNC_BYTES", 2 * FRAME)  # synced on the way as well
    n, done = 0, False
    while not done:
        n += 1
        disk = PowerCut()
        three_segments(disk)
        files = FaultyFiles(disk, n, error, for_ever=for_ever)
        with suppress(OSError):
            seal_all(files)
        done = not files.hit
        assert disk.fds == {}, n
        for after in (*disk.left(), disk):
            assert seqs(after) == ALL, (n, names(after))
            seal_all(after)
            assert seqs(after) == ALL, n
            assert names(after) == [FIRST + SEALED, SECOND + SEALED, OPEN_NAME, "lock"], n
        for after in disk.left():
            assert seqs(after) == ALL, n
    assert n > 40


def test_a_power_cut_behind_a_directory_that_was_not_synced() -> None:
    """The next pass must not take a rename for durable because it sees the name."""
    for first in range(1, 5):
        n, done = 0, False
        while not done:
            n += 1
            disk = PowerCut()
            three_segments(disk)
            with pytest.raises(OSError):
                seal_all(FaultyFiles(disk, first, only=("sync_dir",)))
            files = FaultyFiles(disk, n, for_ever=True)
            with suppress(OSError):
                seal_all(files)
            done = not files.hit
            for after in disk.left():
                assert seqs(after) == ALL, (first, n)


def test_a_stop_at_every_frame() -> None:
    for n in range(100):
        disk, asked = three_segments(), 0

        def stopped(n: int = n) -> bool:
            nonlocal asked
            asked += 1
            return asked > n

        try:
            seal_closed(disk, DIR, SESSION, below=2, min_bytes=0, stopped=stopped, frame_bytes=FRAME)
        except Stopped:
            assert seqs(disk) == ALL
            assert not [name for name in names(disk) if name.endswith(".new")]
            assert disk.fds == {}
        else:
            break
    assert n > 10


def test_a_segment_with_any_damage_is_left_alone() -> None:
    whole = segment(0, 1, 20)[1]
    hit = bytearray(whole)
    hit[whole.index(b"text 7")] ^= 1
    missing = b"".join(text for n, text in enumerate(whole.splitlines(keepends=True)) if n != 5)
    head = bytearray(whole)
    head[60] ^= 1
    for data in (bytes(hit), missing, bytes(head), whole[:-1], whole + b"torn", b"\n" + whole, b"", whole[:200]):
        disk = three_segments()
        disk.put(f"{DIR}/{FIRST}", data)
        done = seal_all(disk)
        assert done == Pass((SECOND + SEALED,), (FIRST,)), data[:40]
        assert disk.data(f"{DIR}/{FIRST}") == data
        assert not pending(disk, DIR, below=2, min_bytes=0, known=frozenset(done.refused))
        assert disk.fds == {}


def test_a_segment_that_is_not_what_the_next_header_says_is_left_alone() -> None:
    from agentsh.log.frame import encode_header

    disk = three_segments()
    other = encode_header(SESSION, ordinal=1, first_seq=21, nonce="1" * 16, created="", by="", prev_sha256="0" * 64)
    disk.put(f"{DIR}/{SECOND}", other.raw + b"".join(lines(other, 21, 40)))
    assert seal_all(disk) == ((SECOND + SEALED,), (FIRST,))


def with_both() -> tuple[MemFiles, bytes, bytes]:
    """Return a disk on which sealing stopped behind the rename, and both forms of the first segment."""
    disk = three_segments()
    plain = disk.data(f"{DIR}/{FIRST}")
    seal_all(disk)
    disk.put(f"{DIR}/{FIRST}", plain)
    return disk, plain, disk.data(f"{DIR}/{FIRST}{SEALED}")


def test_both_forms_are_there_and_the_sealed_one_verifies() -> None:
    disk, _, packed = with_both()
    assert seqs(disk) == ALL
    assert pending(disk, DIR, below=2)
    assert seal_all(disk).sealed == (FIRST + SEALED,)
    assert disk.data(f"{DIR}/{FIRST}{SEALED}") == packed
    assert FIRST not in names(disk)
    assert seqs(disk) == ALL


@pytest.mark.parametrize("place", [0, 30, -4, -40, -300])
def test_both_forms_are_there_and_the_sealed_one_is_damaged(place: int) -> None:
    disk, _, packed = with_both()
    for bad in (packed[:place], bytes(len(packed)), packed[:-30] + b"x" + packed[-29:]):
        disk.put(f"{DIR}/{FIRST}{SEALED}", bad)
        disk.put(f"{DIR}/{FIRST}", segment(0, 1, 20)[1])
        assert seqs(disk) == ALL
        assert seal_all(disk).sealed == (FIRST + SEALED,)
        assert disk.data(f"{DIR}/{FIRST}{SEALED}") == packed
        assert seqs(disk) == ALL


def test_both_forms_are_there_and_differ() -> None:
    """What is damaged behind the sealing costs nothing, and is kept aside all the same."""
    disk, plain, _ = with_both()
    rotten = plain.replace(b"text 7", b"text x")
    disk.put(f"{DIR}/{FIRST}", rotten)
    seal_all(disk)
    assert seqs(disk) == ALL
    assert disk.data(f"{DIR}/quarantine/{FIRST}") == rotten


def test_both_forms_are_damaged_and_both_are_kept() -> None:
    disk, plain, packed = with_both()
    rotten, bad = plain.replace(b"text 7", b"text x"), packed[:-60]
    disk.put(f"{DIR}/{FIRST}", rotten)
    disk.put(f"{DIR}/{FIRST}{SEALED}", bad)
    assert seal_all(disk).refused == (FIRST,)
    assert (disk.data(f"{DIR}/{FIRST}"), disk.data(f"{DIR}/{FIRST}{SEALED}")) == (rotten, bad)


def test_a_segment_that_has_another_name_elsewhere_stays_as_it_is_there() -> None:
    disk = three_segments()
    plain = disk.data(f"{DIR}/{FIRST}")
    disk.put("/sessions/child/lock", b"")
    disk.link(f"{DIR}/{FIRST}", f"/sessions/child/{FIRST}")
    inode = disk.stat(f"/sessions/child/{FIRST}").inode
    seal_all(disk)
    assert FIRST not in names(disk)
    assert disk.data(f"/sessions/child/{FIRST}") == plain
    assert disk.stat(f"/sessions/child/{FIRST}").inode == inode


@pytest.mark.parametrize("parent_first", [True, False])
async def test_a_fork_and_its_parent_seal_each_their_own(parent_first: bool) -> None:
    """The child has a part of a segment that the parent goes on with; nothing of either is lost."""
    from agentsh.log.frame import encode_header

    _, whole = segment(0, 1, 20)
    upto = whole.index(b'{"seq":13,')
    child_head = encode_header(
        "child", ordinal=1, first_seq=13, nonce="c" * 16, created="", by="",
        parent={"session": SESSION, "upto_seq": 12, "upto_bytes": upto},
    )  # fmt: skip
    disk = three_segments()
    child = "/sessions/child"
    disk.put(f"{child}/{OPEN_NAME}", child_head.raw + b"".join(lines(child_head, 13, 15)))
    disk.link(f"{DIR}/{FIRST}", f"{child}/{FIRST}")
    for directory, session in ((DIR, SESSION), (child, "child"))[:: 1 if parent_first else -1]:
        seal_closed(disk, directory, session, below=9, min_bytes=0, frame_bytes=FRAME)
    assert unpacked(disk.data(f"{child}/{FIRST}{SEALED}")) == whole[:upto]
    assert unpacked(disk.data(f"{DIR}/{FIRST}{SEALED}")) == whole
    assert seqs(disk) == ALL
    store = store_on(disk)
    assert [r.seq for r in store.read("child")] == list(range(1, 16))
    assert [r.seq for r in store.read("child", after_seq=11)] == list(range(12, 16))
    assert list(store.damages("child")) == []
    # And a child that links a segment which is sealed already takes only its part of that.
    disk.unlink(f"{child}/{FIRST}{SEALED}")
    disk.link(f"{DIR}/{FIRST}{SEALED}", f"{child}/{FIRST}{SEALED}")
    assert [r.seq for r in store.read("child")] == list(range(1, 16))
    assert list(store.damages("child")) == []
    opened = await store.open("child")
    await opened.log.append([note("more")])
    await opened.log.close()
    assert [r.seq for r in store.read("child")] == list(range(1, 17))


def test_a_segment_before_a_rescue_is_sealed_and_superseded() -> None:
    disk = three_segments()
    rescue = header(2, 35, rescue=True)
    disk.put(f"{DIR}/{OPEN_NAME}", rescue.raw + b"".join(lines(rescue, 35, 60)))
    before = scanned(disk)[0]
    seal_all(disk)
    assert scanned(disk)[0] == before
    assert seqs(disk) == ALL


async def test_a_new_segment_behind_a_sealed_one_names_the_hash_of_its_content() -> None:
    from hashlib import sha256

    from agentsh.log.frame import decode_header

    disk = three_segments()
    disk.unlink(f"{DIR}/{OPEN_NAME}")
    plain = disk.data(f"{DIR}/{SECOND}")
    seal_all(disk)
    store = store_on(disk)
    opened = await store.open(SESSION)
    await opened.log.append([note("more")])
    await opened.log.close()
    head = decode_header(disk.data(f"{DIR}/{OPEN_NAME}").partition(b"\n")[0] + b"\n")
    assert (head.ordinal, head.first_seq, head.prev_sha256) == (2, 41, sha256(plain).hexdigest())
    assert [r.seq for r in store.read(SESSION)] == list(range(1, 42))


def test_a_sealer_that_fails_in_any_way_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no memory, say. Nothing is lost by it, so nobody hears of it."""
    disk, told = three_segments(), list[object]()

    def fails(*_: object, **__: object) -> Pass:
        raise MemoryError

    monkeypatch.setattr(threading, "excepthook", told.append)
    sealer = Sealer(disk, DIR, SESSION, min_bytes=0)
    with monkeypatch.context() as patched:
        patched.setattr("agentsh.log.sealer.seal_closed", fails)
        sealer.wake(2)
        sealer.join()
    sealer.wake(2)
    sealer.join()
    assert names(disk) == [FIRST + SEALED, SECOND + SEALED, OPEN_NAME, "lock"]
    assert told == []
