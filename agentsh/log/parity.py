"""What an archive carries so that damage to it can be mended: checksums of its blocks, and parity over them.

All before it in the file is cut into blocks. Block n is of group n modulo the number of groups, and the parity of a
group is the XOR of its blocks, the last of the file filled up with NULs. A block whose checksum does not fit is made
again from the others of its group. Blocks side by side are of different groups, so that a run of bad bytes is mended
as long as it touches no more blocks than there are groups. `zstd -dc` passes over all of this: it is a skippable
frame. Normative: docs/log-format.md.
"""

import struct
from typing import NamedTuple
from zlib import crc32

from agentsh.log.files import FileSystem
from agentsh.log.seekable import SKIPPABLE_HEADER, skippable

PARITY_MAGIC = 0x184D2A51
BLOCK_BYTES = 512
"""A sector: what disks lose at least."""
MIN_GROUPS = 16
"""So that a page of 4 KiB can go, wherever it begins."""
BLOCKS_IN_A_GROUP = 32
"""How many blocks pay for one of parity: 3.9 % of the packed bytes with the checksums, 0.4 % of the content."""
MAX_GROUPS = 1 << 17
"""64 MiB of parity, which are held in memory while it is made; larger archives have longer groups."""

_MARK = b"agentsh-parity/1"
_RECORD = struct.Struct("<16sQIIII")
_CRC = struct.Struct("<I")
_SEARCH_BYTES = 1 << 20
_MAX_IN_VAIN = 1 << 17
"""Blocks read in vain before no more is tried, or as many as there are: so much is lost anyway."""
_BLOCK_SIZES = range(BLOCK_BYTES, (1 << 20) + 1)
"""What is taken of others than us: with blocks of a byte a small file would take hours."""


class _Shape(NamedTuple):
    """covered: bytes of the file before the frame. crc: of checksums and parity."""

    covered: int
    block: int
    groups: int
    crc: int

    @property
    def blocks(self) -> int:
        return -(-self.covered // self.block)

    @property
    def parity_at(self) -> int:
        return self.covered + SKIPPABLE_HEADER.size + _RECORD.size

    @property
    def sums_at(self) -> int:
        return self.parity_at + self.groups * self.block

    @property
    def end(self) -> int:
        """Where the frame ends in the file."""
        return self.sums_at + self.blocks * _CRC.size + _RECORD.size

    def parity_of(self, group: int) -> int:
        """Return where the parity of a group begins: bad bytes that go on from the last blocks hit that of others."""
        return self.parity_at + (group - self.blocks) % self.groups * self.block

    def record(self) -> bytes:
        start = _RECORD.pack(_MARK, *self, 0)[: -_CRC.size]
        return start + _CRC.pack(crc32(start))


def parity(files: FileSystem, fd: int, covered: int) -> bytes:
    """Return the frame for the first `covered` bytes of a file, which must be more than none.

    Raises:
        OSError: the file cannot be read, or is shorter.
    """
    blocks = -(-covered // BLOCK_BYTES)
    groups = min(blocks, max(MIN_GROUPS, -(-blocks // BLOCKS_IN_A_GROUP)), MAX_GROUPS)
    stripe, sums, found = groups * BLOCK_BYTES, [], 0
    for at in range(0, covered, stripe):
        data = read_all(files, fd, min(stripe, covered - at), at)
        if len(data) != min(stripe, covered - at):
            raise OSError("the archive became shorter while it was written")
        sums += [crc32(data[n : n + BLOCK_BYTES]) for n in range(0, len(data), BLOCK_BYTES)]
        found ^= int.from_bytes(data, "little")
    xor, first = found.to_bytes(stripe, "little"), blocks % groups * BLOCK_BYTES
    body = xor[first:] + xor[:first] + struct.pack(f"<{len(sums)}I", *sums)
    record = _Shape(covered, BLOCK_BYTES, groups, crc32(body)).record()
    return skippable(PARITY_MAGIC, record + body + record)


class Mending:
    """An open archive, read as it was written where its parity can tell.

    search: look for the parity everywhere, not only at the end of the file, where it should be.
    covered: bytes that have parity; all of the file where it has none. intact: the parity, where there is any, is as
    it was written, and the file ends with it. mended: blocks that were made again so far. Where a block cannot be
    made again it is read as it is.
    """

    def __init__(self, files: FileSystem, fd: int, *, search: bool) -> None:
        self._files = files
        self._fd = fd
        self.size = files.fstat(fd).size
        self._again: dict[int, tuple[int, bytes]] = {}  # one of a group: that it came right tells that the others are
        self._in_vain = 0
        self._shape, self._sums = self._found(search), b""
        self.covered, self.intact = self.size, True
        if self._shape is not None:
            shape = self._shape
            self.covered = shape.covered
            self._sums = read_all(files, fd, shape.blocks * _CRC.size, shape.sums_at)
            self.intact = self._holds(shape)

    @property
    def has_parity(self) -> bool:
        """Tell whether there is any."""
        return self._shape is not None

    @property
    def mended(self) -> int:
        """How many blocks were made again so far."""
        return len(self._again)

    def read(self, size: int, at: int) -> bytes:
        """Return up to `size` bytes at `at` of what is covered.

        Raises:
            OSError: the disk refused.
        """
        shape = self._shape
        size = min(size, self.covered - at)
        if size <= 0:
            return b""
        if shape is None:
            return read_all(self._files, self._fd, size, at)
        first, behind = at // shape.block, -(-(at + size) // shape.block)
        start = first * shape.block
        data = read_all(self._files, self._fd, min(behind * shape.block, shape.covered) - start, start)
        size_there = (behind - first) * shape.block
        pieces = [data[place : place + shape.block] for place in range(0, size_there, shape.block)]
        whole = b"".join([self._block(shape, n, piece) for n, piece in enumerate(pieces, first)])
        return whole[at - start : at - start + size]

    def _block(self, shape: _Shape, n: int, data: bytes) -> bytes:
        """Return a block as it was written. data: as it is."""
        if len(data) == self._length(shape, n) and self._fits(n, data):
            return data
        group = n % shape.groups
        hopeful = self._in_vain < max(_MAX_IN_VAIN, shape.blocks) and n < len(self._sums) // _CRC.size
        if group not in self._again and hopeful:
            made = self._made(shape, n)
            if made is None:
                self._in_vain += -(-shape.blocks // shape.groups)
                return data
            self._again[group] = n, made
        known, made = self._again.get(group, (-1, b""))
        return made if known == n else data

    def _made(self, shape: _Shape, n: int) -> bytes | None:
        group = n % shape.groups
        found = int.from_bytes(read_all(self._files, self._fd, shape.block, shape.parity_of(group)), "little")
        for other in range(group, shape.blocks, shape.groups):
            if other != n:
                data = read_all(self._files, self._fd, self._length(shape, other), other * shape.block)
                found ^= int.from_bytes(data, "little")
        made = found.to_bytes(shape.block, "little")[: self._length(shape, n)]
        return made if self._fits(n, made) else None

    def _length(self, shape: _Shape, n: int) -> int:
        return min(shape.block, shape.covered - n * shape.block)

    def _fits(self, n: int, data: bytes) -> bool:
        at = n * _CRC.size
        return self._sums[at : at + _CRC.size] == _CRC.pack(crc32(data))

    def _holds(self, shape: _Shape) -> bool:
        """Tell whether the frame itself is as it was written, and the last of the file."""
        if shape.end != self.size:
            return False
        crc, at = 0, shape.parity_at
        while at < shape.end - _RECORD.size:
            data = read_all(self._files, self._fd, min(_SEARCH_BYTES, shape.end - _RECORD.size - at), at)
            crc, at = crc32(data, crc), at + (len(data) or _SEARCH_BYTES)
        head = SKIPPABLE_HEADER.pack(PARITY_MAGIC, shape.end - shape.covered - SKIPPABLE_HEADER.size)
        first = read_all(self._files, self._fd, len(head) + _RECORD.size, shape.covered)
        last = read_all(self._files, self._fd, _RECORD.size, shape.end - _RECORD.size)
        return crc == shape.crc and first == head + shape.record() and last == shape.record()

    def _found(self, search: bool) -> _Shape | None:
        """Return what the record at the end of the file says; where none is and `search`, the last one anywhere."""
        last = read_all(self._files, self._fd, _RECORD.size, max(self.size - _RECORD.size, 0))
        shape = _shape(last, self.size)
        end = self.size
        while shape is None and search and end > 0:
            start = max(end - _SEARCH_BYTES, 0)
            data = read_all(self._files, self._fd, end - start + _RECORD.size, start)
            at = data.rfind(_MARK)
            while at >= 0 and shape is None:
                shape = _shape(data[at : at + _RECORD.size], self.size)
                at = data.rfind(_MARK, 0, at)
            end = start
        return shape


def _shape(record: bytes, size: int) -> _Shape | None:
    """Return what a record says, or None where it is none, or not of a file of `size` bytes."""
    if len(record) != _RECORD.size or record[-_CRC.size :] != _CRC.pack(crc32(record[: -_CRC.size])):
        return None
    mark, covered, block, groups, crc, _ = _RECORD.unpack(record)
    sound = mark == _MARK and 0 < covered < size and block in _BLOCK_SIZES and 0 < groups <= MAX_GROUPS
    return _Shape(covered, block, groups, crc) if sound else None


def read_all(files: FileSystem, fd: int, size: int, at: int) -> bytes:
    """Return `size` bytes at `at`, fewer only where the file ends.

    Raises:
        OSError: the disk refused.
    """
    data = files.read(fd, size, at)
    while len(data) < size and (more := files.read(fd, size - len(data), at + len(data))):
        data += more
    return data
