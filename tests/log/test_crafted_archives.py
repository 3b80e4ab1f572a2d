"""Archives made to do harm, or that hold what nobody expects: no more memory or time than others, and no crash."""

import os
import struct
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
import zstandard

from agentsh.log import parity as parity_module
from agentsh.log.archive import Unarchivable
from agentsh.log.archived import ArchivedFiles
from agentsh.log.frame import with_crc
from agentsh.log.packed import FORMAT, NAME, describe
from agentsh.log.parity import BLOCK_BYTES, PARITY_MAGIC, Mending
from agentsh.log.seekable import DESCRIPTION_MAGIC, skippable
from agentsh.log.segment import OPEN_NAME
from agentsh.log.unarchive import unarchive
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import DIR, SESSION

MIB = 1 << 20


def told(size: str, sha: str = "0" * 64) -> bytes:
    """Return a description of one segment whose size is written like that."""
    member = f'{{"name":"{OPEN_NAME}","bytes":{size},"sha256":"{sha}"}}'
    about = f'{{"format":"{FORMAT}","session":"{SESSION}","members":[{member}],"facts":{{}}'
    return skippable(DESCRIPTION_MAGIC, with_crc(about, 0))


def frame(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


@pytest.mark.parametrize(
    "size", ["1e999", "-1e999", "NaN", "1" + "0" * 30, str(1 << 64), str((1 << 64) - 1), str(1 << 63), "-1", "{}"]
)
def test_no_number_in_a_description_is_too_much(size: str) -> None:
    data = told(size) + frame(b"hello")
    disk = MemFiles()
    disk.put(f"{DIR}/{NAME}", data)
    assert describe(disk, f"{DIR}/{NAME}") is None
    damage = ArchivedFiles(disk, DIR).damage
    assert damage is not None
    try:
        unarchive(disk, DIR)
    except Unarchivable:
        assert disk.data(f"{DIR}/{NAME}") == data
    else:
        assert disk.data(f"{DIR}/{OPEN_NAME}") == b"hello"


def trap(block: int, blocks: int) -> tuple[bytes, int]:
    """Return bytes that all are bad by their parity, each of which it would make other ones of, and how many."""
    data, key = Random(1).randbytes(block * blocks), b"\x55" * block
    pieces = [int.from_bytes(data[n : n + block], "little") for n in range(0, len(data), block)]
    found = int.from_bytes(key, "little")
    for piece in pieces:
        found ^= piece
    made = [(piece ^ int.from_bytes(key, "little")).to_bytes(block, "little") for piece in pieces]
    body = found.to_bytes(block, "little") + struct.pack(f"<{blocks}I", *map(crc32, made))
    record = parity_module._Shape(len(data), block, 1, crc32(body)).record()
    return data + skippable(PARITY_MAGIC, record + body + record), len(data)


@pytest.mark.parametrize(("block", "blocks"), [(1, 2_000), (BLOCK_BYTES, 2_000)])
def test_parity_that_would_have_all_made_anew_costs_no_more_than_another_read(block: int, blocks: int) -> None:
    """Of a group one block can be lost. Else each would be made of all others, which takes hours in a small file."""
    packed, size = trap(block, blocks)
    disk = MemFiles()
    disk.put("/x", packed)
    files = FaultyFiles(disk)
    source = Mending(files, files.open("/x", os.O_RDONLY), search=True)
    found = b""
    while piece := source.read(1 << 16, len(found)):
        found += piece
    differ = [n for n in range(0, size, BLOCK_BYTES) if found[n : n + BLOCK_BYTES] != packed[n : n + BLOCK_BYTES]]
    assert len(differ) == source.mended <= 1
    assert files.ops.count("read") < 2 * blocks + 200


UNPACKS = """
import sys
from agentsh.log.files import RealFiles
from agentsh.log.packed import Contents
with Contents(RealFiles(), sys.argv[1]) as contents:
    for member, pieces in contents.parts():
        size = sum(map(len, pieces))
assert size == member.bytes and contents.ended, size
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]  # of this program alone
print(int(peak.split()[1]) >> 10)
"""


def test_what_unpacks_to_thousands_of_times_its_size_does_so_bit_by_bit(tmp_path: Path) -> None:
    """A log that says the same over and over: one read of 64 KiB unpacked was a gigabyte of memory."""
    size, path = 1 << 30, tmp_path / NAME
    packer = zstandard.ZstdCompressor(level=9, write_checksum=True).compressobj(size=size)
    digest = sha256()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            digest.update(bytes(MIB))
        file.write(told(str(size), digest.hexdigest()))
        for _ in range(size // MIB):
            file.write(packer.compress(bytes(MIB)))
        file.write(packer.flush())
    assert path.stat().st_size < 64 << 10
    done = subprocess.run(
        [sys.executable, "-c", UNPACKS, path], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 300
