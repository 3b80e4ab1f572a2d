"""A pinned checkpoint stays with the log under it, whatever becomes of either."""

import errno
from contextlib import suppress

import pytest

from agentsh.log.chain import LogScan
from agentsh.log.checkpoint import Checkpoint, checkpoint_name, checkpoint_seqs, is_anchored, write_checkpoint
from agentsh.log.pin import pin, pinned, pins, unpin
from agentsh.log.segment import OPEN_NAME, closed_name
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import DIR, LOG, SESSION, header
from tests.log.sealed_logs import seal_all, three_segments
from tests.log.test_checkpoint import REDUCER, anchor_of


def disk_with(*seqs: int) -> MemFiles:
    disk = three_segments()
    for seq in seqs:
        write_checkpoint(disk, DIR, Checkpoint(anchor_of(disk, seq), SESSION, REDUCER, b"state %d" % seq))
    return disk


def confirmed(disk: MemFiles, seq: int) -> list[int]:
    """Return the seqs that can be read of a pin, whose log must confirm its checkpoint."""
    found = pinned(disk, DIR, seq)
    assert found is not None
    scan = LogScan(disk, found.place, SESSION)
    try:
        assert is_anchored(disk, found.checkpoint.anchor, scan.segments)
        assert [s.name for s in scan.segments] == list(found.segments)
        return [entry[0] for entry in scan.entries() if entry[0] <= seq]
    finally:
        scan.close()


def test_it_outlives_the_checkpoint_the_log_and_the_sealing() -> None:
    disk = disk_with(30, 45)
    for seq in (30, 45):
        made = pin(disk, DIR, SESSION, seq)
        assert made is not None
        assert made == pin(disk, DIR, SESSION, seq) == pinned(disk, DIR, seq)
        assert made.checkpoint.state == b"state %d" % seq
    assert pins(disk, DIR) == [30, 45]
    for seq in (46, 47, 48):
        write_checkpoint(disk, DIR, Checkpoint(anchor_of(disk, seq), SESSION, REDUCER, b""))
    assert checkpoint_seqs(disk, DIR) == [48, 47, 46], "pins do not count"
    seal_all(disk)
    grown = disk.data(LOG) + b"more of the log"
    disk.nodes[LOG].data[:] = grown  # the log grows in place; what is behind the anchor is not the pin's
    assert confirmed(disk, 30) == list(range(1, 31))
    assert confirmed(disk, 45) == list(range(1, 46))
    disk.rename(LOG, f"{DIR}/{closed_name(2, 41)}")
    disk.put(LOG, header(3, 61).raw)
    disk.unlink(f"{DIR}/{closed_name(2, 41)}")
    assert confirmed(disk, 45) == list(range(1, 46))
    unpin(disk, DIR, 45)
    unpin(disk, DIR, 45)
    assert pins(disk, DIR) == [30]
    assert disk.data(LOG) == header(3, 61).raw
    assert disk.fds == {}


def test_what_the_log_does_not_confirm_is_not_pinned() -> None:
    disk = disk_with(45)
    assert pin(disk, DIR, SESSION, 44) is None
    assert pin(disk, DIR, "another", 45) is None
    disk.put(LOG, disk.data(LOG)[: anchor_of(disk, 45).offset + 9])
    assert pin(disk, DIR, SESSION, 45) is None
    assert pins(disk, DIR) == []
    assert pins(MemFiles(), DIR) == []


@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_fails_in_turn(for_ever: bool) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = disk_with(45)
        files = FaultyFiles(disk, n, errno.EIO, for_ever=for_ever)
        made = None
        with suppress(OSError):
            made = pin(files, DIR, SESSION, 45)
        done = not files.hit
        assert pins(disk, DIR) in ([], [45]), n
        assert pin(disk, DIR, SESSION, 45) is not None, "another try makes it"
        assert confirmed(disk, 45) == list(range(1, 46))
        assert made is None or made.place == f"{DIR}/checkpoints/{45:012}.pin"
        files = FaultyFiles(disk, n, errno.EIO, for_ever=for_ever)
        with suppress(OSError):
            unpin(files, DIR, 45)
        unpin(disk, DIR, 45)
        assert pins(disk, DIR) == []
        assert sorted(disk.listdir(f"{DIR}/checkpoints")) == [checkpoint_name(45)]
        assert OPEN_NAME in disk.listdir(DIR)
        assert disk.fds == {}
    assert n > 10


def test_what_a_killed_one_has_left_goes_with_the_next_and_no_pin_does() -> None:
    """It holds segments, and nobody sees it: no list has it, and nothing can let it go."""
    disk = disk_with(30, 45, 50)
    pin(disk, DIR, SESSION, 30)
    with pytest.raises(OSError, match="Input"):
        pin(FaultyFiles(disk, 4, errno.EIO, for_ever=True, only=("link",)), DIR, SESSION, 45)
    assert disk.listdir(f"{DIR}/checkpoints/{45:012}.pin")
    assert pins(disk, DIR) == [30]
    pin(disk, DIR, SESSION, 50)
    assert sorted(n for n in disk.listdir(f"{DIR}/checkpoints") if n.endswith(".pin")) == [
        f"{30:012}.pin", f"{50:012}.pin",
    ]  # fmt: skip
    assert confirmed(disk, 30) == list(range(1, 31))
    assert confirmed(disk, 50) == list(range(1, 51))
