"""Archives for tests: of logs with several segments whose frame has several blocks, so that a part can be left."""

import os
from pathlib import Path
from random import Random

import zstandard

from agentsh.log.archive import archive
from agentsh.log.chain import LogScan
from agentsh.log.files import FileSystem
from agentsh.log.packed import FORMAT, NAME, describe
from agentsh.log.parity import Mending
from agentsh.log.segment import OPEN_NAME, closed_name
from agentsh.testing.disks import SimDisk
from tests.log.disks import MemFiles
from tests.log.logs import DIR, SESSION, header, line

FIRST, SECOND = closed_name(0, 1), closed_name(1, 21)
ALL = list(range(1, 61))
PATH = f"{DIR}/{NAME}"
GOLDEN = Path(__file__).parents[1] / "golden" / "archive1"


def long_log() -> dict[str, bytes]:
    """Return the segments of records 1 to 60, each of some 170 KB that hardly pack."""
    dice, found = Random(1), dict[str, bytes]()
    for ordinal, first, name in ((0, 1, FIRST), (1, 21, SECOND), (2, 41, OPEN_NAME)):
        head = header(ordinal, first)
        texts = [line(n, head.salt, dur=n - 1, text=dice.randbytes(4200).hex()) for n in range(first, first + 20)]
        found[name] = head.raw + b"".join(texts)
    return found


def packed_log() -> bytes:
    """Return the archive of `long_log`."""
    disk = MemFiles()
    for name, data in long_log().items():
        disk.put(f"{DIR}/{name}", data)
    archive(disk, DIR, SESSION, {"title": "a"})
    return disk.data(PATH)


def shape(packed: bytes) -> tuple[int, int]:
    """Return where the frame begins and where the parity does."""
    disk = MemFiles()
    disk.put(PATH, packed)
    about = describe(disk, PATH)
    assert about is not None
    fd = disk.open(PATH, os.O_RDONLY)
    return about.frame_at, Mending(disk, fd, search=True).covered


def bare(packed: bytes) -> bytes:
    """Return an archive without its parity, as one of before: damage to it stays."""
    _, end = shape(packed)
    disk = MemFiles()
    disk.put(PATH, packed)
    about = describe(disk, PATH)
    assert about is not None
    facts = {"summary": {"last_seq": about.last_seq}}
    old = about._replace(parity=False, last_seq=0, facts=facts).packed()
    assert FORMAT.encode() in old
    return old + packed[about.frame_at : end]


def broken(packed: bytes, content_at: int) -> bytes:
    """Return an archive whose frame breaks at the block with this byte of the content: all behind it is lost."""
    at, _ = shape(packed)
    raw, place = 0, at + zstandard.frame_header_size(packed[at : at + 18])
    sizes = zstandard.ZstdDecompressor().decompressobj()
    sizes.decompress(packed[at:place])
    while True:
        size = int.from_bytes(packed[place : place + 3], "little") >> 3
        raw += len(sizes.decompress(packed[place : place + 3 + size]))
        if raw > content_at:
            return flipped_to(packed, place, packed[place] | 0b110)  # a type of block that there is not
        place += 3 + size


def flipped_to(data: bytes, place: int, byte: int) -> bytes:
    return data[:place] + bytes([byte]) + data[place + 1 :]


def flipped(data: bytes, *places: int) -> bytes:
    found = bytearray(data)
    for place in places:
        found[place] ^= 4
    return bytes(found)


def holding(packed: bytes) -> MemFiles:
    """Return a disk with a session that is archived like this."""
    disk = MemFiles()
    disk.put(f"{DIR}/lock", b"")
    disk.put(PATH, packed)
    return disk


def on_sim(files: dict[str, bytes]) -> SimDisk:
    """Return a simulated disk that has these files in the session's directory for certain."""
    disk = SimDisk()
    disk.mkdir("/sessions")
    disk.mkdir(DIR)
    for name, data in files.items():
        fd = disk.open(f"{DIR}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        disk.write(fd, data)
        disk.sync(fd)
        disk.close(fd)
    for place in ("/", "/sessions", DIR):
        disk.sync_dir(place)
    return disk


def seqs(files: FileSystem) -> list[int]:
    """Return the seqs of all that reads."""
    scan = LogScan(files, DIR, SESSION)
    try:
        return [entry[0] for entry in scan.entries()]
    finally:
        scan.close()


def kept(files: MemFiles | SimDisk) -> dict[str, bytes]:
    """Return what lies in quarantine."""
    place = f"{DIR}/quarantine"
    if isinstance(files, SimDisk):
        tree = files.tree(DIR)
        return {path.removeprefix(place + "/"): data for path, data in tree.items() if path.startswith(place + "/")}
    return {p.removeprefix(place + "/"): files.data(p) for p in files.nodes if p.startswith(place + "/")}
