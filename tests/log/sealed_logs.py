"""Logs with several segments, made by hand, and sealed with small frames."""

import zstandard

from agentsh.log.record import Header
from agentsh.log.seal import Pass, seal_closed
from agentsh.log.segment import OPEN_NAME, closed_name
from tests.log.disks import FaultyFiles, MemFiles
from tests.log.logs import DIR, SESSION, header, lines

FRAME = 700
"""Bytes of content of a frame: about four records."""


def segment(ordinal: int, first: int, last: int, *, rescue: bool = False) -> tuple[Header, bytes]:
    head = header(ordinal, first, rescue=rescue)
    return head, head.raw + b"".join(lines(head, first, last))


def three_segments(files: MemFiles | None = None) -> MemFiles:
    """Return a disk with records 1 to 60 in two closed segments and an open one."""
    disk = files or MemFiles()
    disk.put(f"{DIR}/lock", b"")
    for ordinal, first, name in ((0, 1, closed_name(0, 1)), (1, 21, closed_name(1, 21)), (2, 41, OPEN_NAME)):
        disk.put(f"{DIR}/{name}", segment(ordinal, first, first + 19)[1])
    return disk


def seal_all(files: MemFiles | FaultyFiles, *, below: int = 2) -> Pass:
    return seal_closed(files, DIR, SESSION, below=below, min_bytes=0, frame_bytes=FRAME)


def unpacked(packed: bytes) -> bytes:
    """Return what `zstd -dc` prints."""
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    return reader.read()
