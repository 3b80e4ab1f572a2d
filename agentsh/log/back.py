"""Reads a log from its end: what was last is found without reading what was before."""

from collections.abc import Iterator

from agentsh.log.chain import LogScan, Segment
from agentsh.log.files import FileSystem
from agentsh.log.scan import MAX_SCAN_LINE, entry_of

BLOCK_BYTES = 256 << 10


def newest_first(files: FileSystem, scan: LogScan) -> Iterator[bytes]:
    """Yield the lines from the last one back, by seq; what does not hold as it stands is passed over.

    For showing: nothing is judged here, and of damage nothing is said.

    Raises:
        OSError: a segment cannot be read.
    """
    before, held = 1 << 62, (0, b"")
    for segment in reversed(scan.segments):
        salt, cap = segment.head.salt, segment.cap
        for line in _lines_back(files, segment) if salt is not None else ():
            entry = entry_of(line, salt or 0, 0)
            if entry is None or entry[0] >= before or (cap is not None and entry[0] >= cap):
                continue
            if held[0] > entry[0]:
                yield held[1]
                before = held[0]
            held = entry[0], line  # instead of a line with a lower seq behind this one, which came late
    if held[0]:
        yield held[1]


def _lines_back(files: FileSystem, segment: Segment) -> Iterator[bytes]:
    """Yield the lines of a segment, each with its LF, from the end to the header."""
    if segment.sealed is None:
        yield from _split_back(_blocks_back(files, segment))
        return
    for frame in reversed(segment.sealed.frames):
        if segment.limit is None or frame.raw_at < segment.limit:
            content = segment.sealed.unpack(frame)
            if content is not None:
                yield from _split_back(
                    iter([content[: None if segment.limit is None else segment.limit - frame.raw_at]])
                )


def _blocks_back(files: FileSystem, segment: Segment) -> Iterator[bytes]:
    end = files.fstat(segment.fd).size
    end = end if segment.limit is None else min(end, segment.limit)
    while end > segment.head.start:
        start = max(end - BLOCK_BYTES, segment.head.start)
        yield files.read(segment.fd, end - start, start)
        end = start


def _split_back(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of blocks that come from the last to the first."""
    first = b""
    for block in blocks:
        first, *lines = (block + first).split(b"\n")
        if len(first) > MAX_SCAN_LINE:
            first = b""
        yield from (line + b"\n" for line in reversed(lines) if line)
    if first:
        yield first + b"\n"
