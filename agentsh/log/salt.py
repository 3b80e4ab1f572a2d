"""Finds the salt of a segment whose header is damaged, and often the header itself. Pure arithmetic.

For fixed data the CRC-32 is an affine function of its start value over GF(2), and a bijection. So any intact
line of known crc gives the one start value that fits it: a system of 32 equations in 32 unknowns, about 50 µs.
A second line that gives the same value confirms it.
"""

from collections import Counter
from zlib import crc32

from agentsh.base.pattern import later
from agentsh.log.frame import CRC_TAIL, BadLine, decode_header
from agentsh.log.record import Header

MAX_CANDIDATES = 32
"""Lines that are tried for a salt."""
ENOUGH_VOTES = 3
"""Lines that agree, at which the search ends."""
MAX_HEADER_BYTES = 4096
"""A header is about 250 bytes; what is much longer is not searched for its one wrong byte."""

_TAIL = later(rb',"crc":"([0-9a-f]{8})"\}\n\Z')


def solve_start(data: bytes, crc: int) -> int:
    """Return the start value `s` with `crc32(data, s) == crc`. There is exactly one."""
    zero = crc32(data, 0)
    rows = [(crc32(data, 1 << bit) ^ zero, 1 << bit) for bit in range(32)]
    wanted, start = crc ^ zero, 0
    for bit in range(31, -1, -1):
        mask = 1 << bit
        pivot = next(i for i, (image, _) in enumerate(rows) if image & mask)
        image, source = rows.pop(pivot)
        rows = [(i ^ image, s ^ source) if i & mask else (i, s) for i, s in rows]
        if wanted & mask:
            wanted ^= image
            start ^= source
    return start


def salt_votes(lines: list[bytes]) -> list[tuple[int, int]]:
    """Return (salt, number of lines that it fits), best first, from the first lines that end like a record.

    lines: with their LF. A salt with two votes is right; one vote says nothing, as every line has a salt.
    """
    votes: Counter[int] = Counter()
    for line in lines:
        tail = _TAIL.search(line)
        if tail is not None:
            salt = solve_start(line[:-CRC_TAIL], int(tail[1], 16))
            votes[salt] += 1
            if votes[salt] == ENOUGH_VOTES or votes.total() == MAX_CANDIDATES:
                break
    return votes.most_common()


def mend_header(damaged: bytes, salt: int) -> Header | None:
    """Return the header that differs from `damaged` in one byte and has this salt, or None.

    Two independent checks must agree, the salt and the header's own crc, so that no wrong guess gets through.
    """
    if len(damaged) > MAX_HEADER_BYTES:
        return None
    if crc32(damaged) == salt:
        return _header(damaged)
    # One wrong byte changes the crc by a value that depends only on its place and on the bits that differ.
    wanted = crc32(damaged) ^ salt
    for place, images in enumerate(_images(len(damaged))):
        low = {_sum(images[:4], bits): bits for bits in range(16)}
        for bits in range(16):
            other = low.get(_sum(images[4:], bits) ^ wanted)
            if other is not None:
                mended = bytearray(damaged)
                mended[place] ^= bits << 4 | other
                header = _header(bytes(mended))
                if header is not None:
                    return header
    return None


def _sum(images: list[int], bits: int) -> int:
    """Return what several flipped bits of one byte do together."""
    total = 0
    for bit, image in enumerate(images):
        if bits >> bit & 1:
            total ^= image
    return total


def _images(length: int) -> list[list[int]]:
    """Return by how much each bit of each byte changes the crc of `length` bytes."""
    blank = crc32(b"\0")
    backwards = [[crc32(bytes([1 << bit])) ^ blank for bit in range(8)]]
    while len(backwards) < length:
        backwards.append([crc32(b"\0", image) ^ blank for image in backwards[-1]])
    return backwards[::-1]


def _header(line: bytes) -> Header | None:
    try:
        return decode_header(line)
    except BadLine:
        return None
