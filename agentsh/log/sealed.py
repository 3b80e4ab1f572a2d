"""Reads sealed segments: only the frames that are wanted, and what is left of a file that is damaged or cut short."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from agentsh.base.pattern import later
from agentsh.log.files import READ, FileSystem
from agentsh.log.head import HEAD_BYTES, read_head
from agentsh.log.scan import Flaw, Head, SegmentScan
from agentsh.log.seekable import (
    DESCRIPTION_MAGIC,
    FRAME_BYTES,
    FRAME_START,
    SKIPPABLE_HEADER,
    TABLE_MAGIC,
    Description,
    Unpacker,
    read_description,
    read_table,
    table_bytes,
)
from agentsh.log.segment import Closed, file_sha256

KIND = "sealed"
"""The kind of damage for bytes of a sealed segment that cannot be unpacked."""
SHORTEST_RECORD = 80
"""Bytes of content; how many records a lost frame may have held, where nothing says how many it did."""
END_BYTES = 16 << 10
"""Last bytes of a file that are read at first: table and description of 64 MiB are 1 KiB."""

_SEQ = later(rb'\{"seq":([1-9][0-9]{0,17}),')


class Frame(NamedTuple):
    """A part of the content: `raw_size` bytes at `raw_at`, packed in `size` bytes at `at` of the file.

    first_seq: of its first record, None where it is not known. lost: it cannot be unpacked, and its raw_size is a
    guess or 0.
    """

    at: int
    size: int
    raw_at: int
    raw_size: int
    first_seq: int | None
    lost: bool = False


class Run(NamedTuple):
    """Lines of one frame. base: where everything up to this seq was passed over, else None."""

    scan: SegmentScan
    base: int | None


class SealedFile:
    """An open sealed segment. Opening reads its end only, and unpacks nothing as long as that is whole.

    description: None where it is damaged; then, and where the table is, every frame is looked at once.
    whole: the description and the table read, and agree.
    """

    def __init__(self, files: FileSystem, fd: int) -> None:
        self._files = files
        self._fd = fd
        self.size = files.fstat(fd).size
        self._unpacker: Unpacker | None = None
        self.description: Description | None = None
        self.whole = False
        self.frames = self._from_table()
        if not self.whole:
            self.frames = self._salvaged()

    @property
    def content_bytes(self) -> int:
        """Length of the content, as far as it is known: what lost frames held is a guess."""
        if self.description is not None:
            return self.description.raw_bytes
        return max((frame.raw_at + frame.raw_size for frame in self.frames), default=0)

    def unpack(self, frame: Frame) -> bytes | None:
        """Return the content of a frame, or None where it does not hold.

        Raises:
            OSError: the disk refused.
        """
        return None if frame.lost else self._unpacking().frame(self.packed(frame), frame.raw_size)

    def packed(self, frame: Frame) -> bytes:
        """Return a frame as it is in the file.

        Raises:
            OSError: the disk refused.
        """
        return self._read(frame.at, frame.size)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of the content from `offset` to the end of its frame; none where that is lost.

        Raises:
            OSError: the disk refused.
        """
        for frame in self.frames:
            if frame.raw_at <= offset < frame.raw_at + frame.raw_size:
                content = self.unpack(frame)
                return b"" if content is None else content[offset - frame.raw_at :][:size]
        return b""

    def head(self) -> tuple[bytes, Head]:
        """Return the first bytes that are needed to judge the segment, and what they say, as of a plain one."""
        if self.description is not None:
            data = self.description.header
            return data, read_head(data)
        for frame in self.frames:
            content = self.unpack(frame)
            if content:
                head = read_head(content[:HEAD_BYTES])
                flaws = tuple(f._replace(offset=frame.raw_at + f.offset) for f in head.flaws)
                return content, head._replace(start=frame.raw_at + head.start, flaws=flaws)
        return b"", read_head(b"")

    def runs(self, head: Head, limit: int | None, after_seq: int) -> Iterator[Run | Flaw]:
        """Yield the lines frame by frame, and what is lost. limit: bytes of the content that count, None for all.

        Frames that hold no record beyond `after_seq` are not unpacked, nor are lines before that scanned.
        """
        if not self.whole:
            yield Flaw(0, 0, KIND, 0)
        for n, frame in enumerate(self.frames):
            following = self.frames[n + 1].first_seq if n + 1 < len(self.frames) else None
            if following is not None and following <= after_seq + 1 and not frame.lost:
                continue
            if limit is not None and frame.raw_at >= limit:
                return
            content = self.unpack(frame)
            if content is None:
                yield Flaw(frame.raw_at, frame.raw_size or frame.size, KIND, self._records(frame, following))
                continue
            start, base = max(head.start, frame.raw_at), None
            if frame.first_seq is not None and frame.first_seq <= after_seq + 1 and self.whole:
                start, base = _passed_over(content, frame, start, after_seq)
            content = content[start - frame.raw_at : None if limit is None else limit - frame.raw_at]
            yield Run(SegmentScan(head._replace(start=start, ended=True), [content]), base)

    def _records(self, frame: Frame, following: int | None) -> int:
        """Return how many records were in a lost frame, or the most that can have been."""
        if following is None and self.description is not None:
            following = self.description.last_seq + 1
        if frame.first_seq is not None and following is not None:
            return max(following - frame.first_seq, 1)
        return max(frame.raw_size, FRAME_BYTES) // SHORTEST_RECORD

    def _unpacking(self) -> Unpacker:
        if self._unpacker is None:
            self._unpacker = Unpacker()
        return self._unpacker

    def _read(self, at: int, size: int) -> bytes:
        data = self._files.read(self._fd, size, at)
        while len(data) < size and (more := self._files.read(self._fd, size - len(data), at + len(data))):
            data += more
        return data

    def _from_table(self) -> list[Frame]:
        """Return the frames as the table and the description have them, if both are whole."""
        end = self._read(max(0, self.size - END_BYTES), min(self.size, END_BYTES))
        length = table_bytes(end, self.size)
        if length is None:
            return []
        table = end[-length:] if length <= len(end) else self._read(self.size - length, length)
        spans = read_table(table, self.size)
        if not spans:
            return []
        about = spans.pop()
        d = self.description = read_description(self._read(about.at, about.size))
        if d is None or len(d.frames) != len(spans) or sum(span.raw_size for span in spans) != d.raw_bytes:
            return []
        self.whole = True
        frames, raw_at = [], 0
        for span, first in zip(spans, d.frames, strict=True):
            frames.append(Frame(span.at, span.size, raw_at, span.raw_size, first))
            raw_at += span.raw_size
        return frames

    def _salvaged(self) -> list[Frame]:
        """Return the frames that unpack, found without the table, with what lies between them as lost."""
        data = self._read(0, self.size)
        frames: list[Frame] = []
        at = raw_at = 0
        while at < len(data):
            skipped = self._skippable(data, at)
            if skipped:
                at += skipped
                continue
            found = self._unpacking().first_frame(data[at : at + 2 * FRAME_BYTES]) or (
                self._unpacking().first_frame(data[at:])
            )
            if found is not None:
                content, size = found
                frames.append(Frame(at, size, raw_at, len(content), first_seq(content)))
                at, raw_at = at + size, raw_at + len(content)
                continue
            further = data.find(FRAME_START, at + 1)
            end = further if further >= 0 else self._end_of_damage(data, at)
            if frames and frames[-1].lost:
                frames[-1] = frames[-1]._replace(size=frames[-1].size + end - at)
            else:
                frames.append(Frame(at, end - at, raw_at, 0, None, lost=True))
            at = end
        return frames

    def _skippable(self, data: bytes, at: int) -> int:
        """Return the length of a skippable frame of ours that stands at `at`, or 0."""
        if at + SKIPPABLE_HEADER.size > len(data):
            return 0
        magic, size = SKIPPABLE_HEADER.unpack_from(data, at)
        end = at + SKIPPABLE_HEADER.size + size
        if magic not in (DESCRIPTION_MAGIC, TABLE_MAGIC) or end > len(data):
            return 0
        if magic == DESCRIPTION_MAGIC and self.description is None:
            self.description = read_description(data[at:end])
        return int(end - at)

    def _end_of_damage(self, data: bytes, at: int) -> int:
        """Return where bad bytes end behind which no frame comes: at our description, or at the end."""
        place = data.find(SKIPPABLE_HEADER.pack(DESCRIPTION_MAGIC, 0)[:4], at + 1)
        return place if place >= 0 and self._skippable(data, place) else len(data)


def raw_sha256(files: FileSystem, directory: str, closed: Closed) -> str | None:
    """Return the hash of the content of a closed segment, or None where a sealed one does not say it.

    Raises:
        OSError: it cannot be read.
    """
    path = os.path.join(directory, closed.name)
    if not closed.sealed:
        return file_sha256(files, path)
    fd = files.open(path, READ)
    try:
        about = SealedFile(files, fd).description
    finally:
        files.close(fd)
    return about.raw_sha256 if about is not None else None


def first_seq(content: bytes) -> int | None:
    """Return the seq of the first record, which stands on the second line where the first is the header."""
    at = 0 if content.startswith(b'{"seq":') else content.find(b"\n") + 1
    found = _SEQ.match(content, at)
    return int(found[1]) if found else None


def _passed_over(content: bytes, frame: Frame, start: int, after_seq: int) -> tuple[int, int | None]:
    """Return (where to begin in the content of the segment, the seq before): lines never hold a LF inside."""
    place = content.find(b'\n{"seq":%d,' % (after_seq + 1))
    if place >= 0:
        return frame.raw_at + place + 1, after_seq
    assert frame.first_seq is not None
    return start, frame.first_seq - 1
