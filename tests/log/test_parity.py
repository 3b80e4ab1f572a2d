"""The parity of an archive: what is damaged reads as it was written, as long as no group has lost two blocks."""

import os
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.log.parity import BLOCK_BYTES, BLOCKS_IN_A_GROUP, MIN_GROUPS, PARITY_MAGIC, Mending, parity
from tests.log.disks import FaultyFiles, MemFiles

SIZES = (1, 511, 512, 513, 5_000, 40_000, 300_000)


def with_parity(size: int) -> bytes:
    data = Random(size).randbytes(size)
    disk = MemFiles()
    disk.put("/x", data)
    return data + parity(disk, disk.open("/x", os.O_RDONLY), size)


WHOLE = {size: with_parity(size) for size in SIZES}


def read(data: bytes, size: int, *, search: bool = True) -> tuple[bytes, Mending]:
    """Return the first `size` bytes in odd pieces, and the reader."""
    disk = MemFiles()
    disk.put("/x", data)
    source = Mending(disk, disk.open("/x", os.O_RDONLY), search=search)
    found, dice = b"", Random(1)
    while piece := source.read(dice.randint(1, size), len(found)):
        found += piece
    return found, source


@pytest.mark.parametrize("size", SIZES)
def test_what_is_whole_reads_as_it_is(size: int) -> None:
    found, source = read(WHOLE[size], size, search=False)
    assert found == WHOLE[size][:size]
    assert (source.intact, source.mended, source.has_parity) == (True, 0, True)
    assert WHOLE[size][size : size + 4] == PARITY_MAGIC.to_bytes(4, "little")


@settings(deadline=None)
@given(st.sampled_from(SIZES), st.integers(0), st.integers(1, 255))
def test_one_byte_anywhere_is_mended_and_noticed(size: int, at: int, bits: int) -> None:
    data = bytearray(WHOLE[size])
    data[at % len(data)] ^= bits
    found, source = read(bytes(data), size)
    assert found == WHOLE[size][:size]
    assert source.mended or not source.intact


@settings(deadline=None)
@given(st.sampled_from([5_000, 40_000, 300_000]), st.integers(0), st.integers(1), st.binary(min_size=1, max_size=1))
def test_a_run_is_mended_as_long_as_it_touches_no_more_blocks_than_there_are_groups(
    size: int, at: int, length: int, filler: bytes
) -> None:
    blocks = -(-size // BLOCK_BYTES)
    groups = min(blocks, max(MIN_GROUPS, -(-blocks // BLOCKS_IN_A_GROUP)))
    data = bytearray(WHOLE[size])
    at %= len(data)
    end = min(at + 1 + length % ((groups - 2) * BLOCK_BYTES), len(data))
    data[at:end] = filler * (end - at)
    assert read(bytes(data), size)[0] == WHOLE[size][:size]


@settings(deadline=None)
@given(st.sampled_from(SIZES), st.integers(0))
def test_an_end_that_is_cut_off_costs_nothing_before_it(size: int, cut: int) -> None:
    left = size + cut % (len(WHOLE[size]) - size)
    assert read(WHOLE[size][:left], left)[0].startswith(WHOLE[size][:size])


def test_junk_behind_it_is_no_matter_but_noticed() -> None:
    found, source = read(WHOLE[5_000] + bytes(90_000), 5_000)
    assert (found, source.intact) == (WHOLE[5_000][:5_000], False)
    assert not read(WHOLE[5_000] + bytes(90_000), 5_000, search=False)[1].has_parity


def test_two_blocks_of_a_group_are_too_many_and_stay_as_they_are() -> None:
    data = bytearray(WHOLE[300_000])
    groups = 19
    for block in (3, 3 + groups):
        data[block * BLOCK_BYTES] ^= 1
    found, source = read(bytes(data), 300_000)
    assert found == data[:300_000]
    assert source.mended == 0


@settings(deadline=None)
@given(st.binary(max_size=3_000))
def test_what_has_none_reads_as_it_is(data: bytes) -> None:
    found, source = read(data, max(len(data), 1))
    assert found == data
    assert (source.has_parity, source.covered) == (False, len(data))


class Counted(bytes):
    """Bytes that count what is copied out of them."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(found, bytes):
            Counted.copied += len(found)
        return found


class CountedFiles(MemFiles):
    """A disk of such."""

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return Counted(super().read(fd, size, offset))


def test_many_blocks_at_once_are_copied_no_more_often_than_few() -> None:
    """Where the description is lost, up to 16 MiB are read to find where the frame begins: that took 25 s."""
    disk = CountedFiles()
    disk.put("/x", WHOLE[300_000])
    source = Mending(disk, disk.open("/x", os.O_RDONLY), search=False)
    Counted.copied = 0
    assert source.read(300_000, 0) == WHOLE[300_000][:300_000]
    assert Counted.copied <= 3 * 300_000


def test_it_costs_four_percent() -> None:
    assert len(WHOLE[300_000]) < 300_000 * 1.041


@pytest.mark.parametrize("cut", [True, False])
def test_where_the_checksums_are_gone_not_every_block_is_tried_to_be_mended(cut: bool) -> None:
    """Each try reads a whole group: an archive whose end is lost would read each of its bytes many times."""
    size = 3_000_000
    data = with_parity(size)
    sums_at = len(data) - 40 - 4 * -(-size // BLOCK_BYTES)
    disk = MemFiles()
    disk.put("/x", data[:sums_at] if cut else data[:sums_at] + bytes(len(data) - 40 - sums_at) + data[-40:])
    counting = FaultyFiles(disk)
    source = Mending(counting, counting.open("/x", os.O_RDONLY), search=True)
    found = b""
    while piece := source.read(1 << 16, len(found)):
        found += piece
    assert found == data[:size]
    assert counting.ops.count("read") < (200 if cut else 4096 * 34)
