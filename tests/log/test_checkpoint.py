"""A checkpoint is whole or not there, and refuses itself where the log does not say what it was made from."""

import errno
import random
from contextlib import suppress

import pytest

from agentsh.log.chain import Anchor, LogScan
from agentsh.log.checkpoint import (
    Checkpoint,
    checkpoint_name,
    checkpoint_seqs,
    is_anchored,
    newest_valid,
    pack,
    read_checkpoint,
    unpack,
    write_checkpoint,
)
from agentsh.log.segment import OPEN_NAME, closed_name
from tests.log.disks import FaultyFiles, MemFiles, PowerCut
from tests.log.logs import DIR, SESSION, header, lines
from tests.log.sealed_logs import seal_all, three_segments

REDUCER = "fold 1"


def anchor_of(disk: MemFiles, seq: int) -> Anchor:
    """Return the anchor of a record of `three_segments`, before any was sealed."""
    ordinal, name = ((0, closed_name(0, 1)), (1, closed_name(1, 21)), (2, OPEN_NAME))[(seq - 1) // 20]
    data = disk.data(f"{DIR}/{name}")
    offset = data.index(b'{"seq":%d,' % seq)
    line = data[offset : data.index(b"\n", offset) + 1]
    return Anchor(seq, ordinal, offset, line[-11:-3].decode())


def checkpoint(disk: MemFiles, seq: int, state: bytes = b"") -> Checkpoint:
    return Checkpoint(anchor_of(disk, seq), SESSION, REDUCER, state or b'{"folded":%d}' % seq)


def newest(disk: MemFiles, *, session: str = SESSION, reducer: str = REDUCER) -> int | None:
    scan = LogScan(disk, DIR, SESSION)
    found = newest_valid(disk, DIR, session, scan.segments, reducer=reducer)
    scan.close()
    assert disk.fds == {}
    return None if found is None else found.anchor.seq


def test_it_comes_back_and_the_newest_stay() -> None:
    disk = three_segments()
    assert checkpoint_seqs(disk, DIR) == []
    assert newest(disk) is None
    for seq in (5, 20, 21, 40, 60):
        name = write_checkpoint(disk, DIR, checkpoint(disk, seq, b"state\n\0\xff" * seq))
        assert name == checkpoint_name(seq)
    assert checkpoint_seqs(disk, DIR) == [60, 40, 21]
    assert read_checkpoint(disk, DIR, 21) == checkpoint(disk, 21, b"state\n\0\xff" * 21)
    assert read_checkpoint(disk, DIR, 20) is None
    assert newest(disk) == 60
    write_checkpoint(disk, DIR, checkpoint(disk, 5))  # an older one removes none of the newer
    assert checkpoint_seqs(disk, DIR) == [60, 40, 21, 5]


def test_every_bit_that_is_hit_is_noticed() -> None:
    disk = three_segments()
    packed = pack(checkpoint(disk, 7))
    assert unpack(packed) == checkpoint(disk, 7)
    for place in range(len(packed)):
        for bit in range(8):
            hit = bytearray(packed)
            hit[place] ^= 1 << bit
            assert unpack(bytes(hit)) in (None, checkpoint(disk, 7)), place  # zstd has one bit without a meaning
    for size in range(len(packed)):
        assert unpack(packed[:size]) is None
    assert unpack(packed + b"x") is None
    assert unpack(random.Random(1).randbytes(5000)) is None


def test_a_damaged_one_leaves_the_next_older() -> None:
    disk = three_segments()
    for seq in (20, 40, 60):
        write_checkpoint(disk, DIR, checkpoint(disk, seq))
    disk.nodes[f"{DIR}/checkpoints/{checkpoint_name(60)}"].data[30] ^= 1
    assert newest(disk) == 40
    disk.put(f"{DIR}/checkpoints/{checkpoint_name(40)}", b"")
    assert newest(disk) == 20
    disk.put(f"{DIR}/checkpoints/{checkpoint_name(50)}", pack(checkpoint(disk, 20)))  # not what its name says
    assert newest(disk) == 20
    assert newest(disk, session="other") is None
    assert newest(disk, reducer="fold 2") is None


def test_the_log_has_to_confirm_it() -> None:
    disk = three_segments()
    good = anchor_of(disk, 45)
    for wrong, holds in (
        (good, True),
        (good._replace(seq=46), False),
        (good._replace(ordinal=1), False),
        (good._replace(ordinal=7), False),
        (good._replace(offset=good.offset + 1), False),
        (good._replace(offset=1 << 40), False),
        (good._replace(crc="00000000"), False),
        (good._replace(crc=good.crc.upper() if good.crc.upper() != good.crc else "x"), False),
    ):
        scan = LogScan(disk, DIR, SESSION)
        assert is_anchored(disk, wrong, scan.segments) == holds, wrong
        scan.close()
    write_checkpoint(disk, DIR, checkpoint(disk, 40))
    write_checkpoint(disk, DIR, checkpoint(disk, 45))
    data = disk.data(f"{DIR}/{OPEN_NAME}")
    disk.put(f"{DIR}/{OPEN_NAME}", data[: good.offset + 30])  # a power cut took the line: newer than the log
    assert newest(disk) == 40
    disk.put(f"{DIR}/{OPEN_NAME}", data.replace(b"text 45", b"text 4x"))
    assert newest(disk) == 40


def test_the_anchor_holds_when_its_segment_is_sealed_and_not_when_it_is_superseded() -> None:
    disk = three_segments()
    for seq in (30, 35):
        write_checkpoint(disk, DIR, checkpoint(disk, seq))
    seal_all(disk)
    assert newest(disk) == 35
    rescue = header(2, 33, rescue=True)
    disk.put(f"{DIR}/{OPEN_NAME}", rescue.raw + b"".join(lines(rescue, 33, 60)))
    assert newest(disk) == 30


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_fails_in_turn(error: int, for_ever: bool) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = PowerCut()
        three_segments(disk)
        for seq in (10, 20, 30):
            write_checkpoint(disk, DIR, checkpoint(disk, seq))
        files = FaultyFiles(disk, n, error, for_ever=for_ever)
        written = False
        with suppress(OSError):
            write_checkpoint(files, DIR, checkpoint(disk, 40))
            written = True
        done = not files.hit
        for after in (*disk.left(), disk):
            assert newest(after) in ((40,) if written else (30, 40)), n
        assert disk.fds == {}, n
    assert n > 8
