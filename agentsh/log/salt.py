"""Finds the salt of a segment whose header is damaged, and often the header itself. Pure arithmetic.

For fixed data the CRC-32 is an affine function of its start value over GF(2), and a bijection. So any intact
line of known crc gives the one start value that fits it: a system of 32 equations in 32 unknowns, about 50 µs.
A second line that gives the same value confirms it.
"""

import re
from collections import Counter
from functools import reduce
from operator import xor
from zlib import crc32

from agentsh.log.frame import CRC_TAIL, BadLine, decode_header
from agentsh.log.record import Header

MAX_CANDIDATES = 32
"""Lines that are tried for a salt."""
ENOUGH_VOTES = 3
"""Lines that agree, at which the search ends."""
MAX_HEADER_BYTES = 4096
"""A header is about 250 bytes; what is much longer is not searched for its one wrong byte."""

_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n\Z')


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
    nothing = crc32(bytes(len(damaged)))
    images = [[_image(len(damaged), place, bit) ^ nothing for bit in range(8)] for place in range(len(damaged))]
    by_weight = sorted(range(1, 256), key=int.bit_count)  # one flipped bit is the likeliest
    for bits in by_weight:
        chosen = [bit for bit in range(8) if bits >> bit & 1]
        for place, of_place in enumerate(images):
            if reduce(xor, [of_place[bit] for bit in chosen]) == wanted:
                mended = bytearray(damaged)
                mended[place] ^= bits
                header = _header(bytes(mended))
                if header is not None:
                    return header
    return None


def _image(length: int, place: int, bit: int) -> int:
    return crc32(bytes(length - place - 1), crc32(bytes([1 << bit]), crc32(bytes(place))))


def _header(line: bytes) -> Header | None:
    try:
        return decode_header(line)
    except BadLine:
        return None
