"""What is in an archive: what it says of itself, and its content as far as it unpacks. Changes nothing.

Normative: docs/log-format.md. Blocks.
"""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from agentsh.log.files import READ, FileSystem
from agentsh.log.frame import BadLine, crc_fits, decode_header, dump_json, with_crc
from agentsh.log.parity import Mending, read_all
from agentsh.log.record import Header
from agentsh.log.seekable import DESCRIPTION_MAGIC, FRAME_START, SKIPPABLE_HEADER, skippable
from agentsh.log.segment import OPEN_NAME, closed_name, closed_segments, exists

if TYPE_CHECKING:
    import zstandard

NAME = "archive.jsonl.zst"
FORMAT = "agentsh-archive/1"
PARITY = "agentsh-parity/1"
"""What a description says where the archive has parity."""
LEVEL = 9
"""zstd level. Archiving is asked for and may take its time: 40 MB/s, and 3 points more saved than at level 3."""
WINDOW_LOG = 27
"""128 MiB: as far back as `zstd -dc` looks without being told to; so repeats are found over whole sessions."""
READ_BYTES = 64 << 10
"""Packed bytes read at a time."""
STEP_BYTES = 1 << 10
"""Packed bytes unpacked at a time: of a log that says the same over and over, or of a trap, four make 128 KiB."""
MAX_DESCRIPTION = 16 << 20
MAX_CONTENT = 1 << 62
"""Bytes that a description may speak of: it need not be ours, and zstd takes no larger number."""

_HEADER_START = b'{"format":"agentsh-log/'
_MAX_HEADER = 8 << 10
_MAX_FRAME_HEADER = 18

Progress = Callable[[int], None]
"""Is told how many bytes of content are done."""


class TooNew(Exception):
    """An archive is of a format that this version does not know; the message names it."""


class Member(NamedTuple):
    """A segment in an archive. name: of its plain file. sha256: of its content, empty where nothing says it."""

    name: str
    bytes: int
    sha256: str


class Description(NamedTuple):
    """What an archive says of itself. facts: whatever its maker wants to know of it without unpacking.

    frame_at: where the frame begins in the file. last_seq: of the log when it was archived, 0 where nobody knows.
    parity: it was written with parity.
    """

    session: str
    members: tuple[Member, ...]
    facts: Mapping[str, Any]
    frame_at: int
    last_seq: int = 0
    parity: bool = False

    @property
    def raw_bytes(self) -> int:
        """Size of the content."""
        return sum(member.bytes for member in self.members)

    def packed(self) -> bytes:
        """Return the skippable frame that says all this."""
        about: dict[str, Any] = {
            "format": FORMAT, "session": self.session, "members": [member._asdict() for member in self.members],
            "facts": dict(self.facts),
        }  # fmt: skip
        if self.last_seq:
            about["last_seq"] = self.last_seq
        if self.parity:
            about["parity"] = PARITY
        return skippable(DESCRIPTION_MAGIC, with_crc(dump_json(about)[:-1], 0))


def is_archived(files: FileSystem, directory: str) -> bool:
    """Tell whether the archive of a session is its log.

    Raises:
        OSError: the directory cannot be read.
    """
    return not exists(files, os.path.join(directory, OPEN_NAME)) and exists(files, os.path.join(directory, NAME))


def describe(files: FileSystem, path: str) -> Description | None:
    """Return what an archive says of itself, or None where that is damaged beyond its parity.

    Raises:
        OSError: it cannot be read.
        TooNew: it is of a newer format.
    """
    fd = files.open(path, READ)
    try:
        found = _description(lambda size, at: read_all(files, fd, size, at))
        return found or _description(Mending(files, fd, search=True).read)
    finally:
        files.close(fd)


class Contents:
    """The segments in an archive, as far as they unpack. A context manager.

    told: the description reads, else `members` are what the content looks like, without their hashes; where the
    frame is not found either there are none. Once all was taken, `ended` says that it unpacked to its end and
    the frame's own checksum held, and `flawless` that the whole file is as it was written.
    """

    def __init__(self, files: FileSystem, path: str) -> None:
        self._files = files
        self._fd = files.open(path, READ)
        try:
            found = _description(lambda size, at: read_all(files, self._fd, size, at))
            self._plain = found is not None
            self._source = Mending(files, self._fd, search=found is None or found.parity)
            found = found or _description(self._source.read)
            self.told = found is not None
            self.ended = False
            self._end = 0
            self._anew = found is None
            self.description = found or self._described_anew()
            self._anew = False
        except BaseException:
            files.close(self._fd)
            raise

    def __enter__(self) -> "Contents":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close(self._fd)

    @property
    def flawless(self) -> bool:
        """Tell whether every byte of the file is as it was written; holds once all was taken."""
        parity = self._source.intact and self._source.has_parity == self.description.parity
        return self._plain and self.ended and parity and not self._source.mended

    def parts(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Yield each member with its content, which has to be taken before the next; shorter where it is damaged."""
        stream = _Stream(self._pieces())
        for member in self.description.members:
            yield member, stream.take(member.bytes)
        self.ended = stream.ended()

    def _pieces(self) -> Generator[bytes, None, bool]:
        """Yield what the frame holds; the generator returns whether all of it did, and nothing is behind it."""
        import zstandard

        start, head, done = self.description.frame_at, b"", 0
        size = self.description.raw_bytes if not self._anew else None
        if start < 0:  # it was not found
            return False
        frame = _new_frame()
        if size and not _begins_well(self._source.read(_MAX_FRAME_HEADER, start), size):
            head = _frame_header(size)  # its bytes are known as well as if they were there
        for n, packed in enumerate(self._packed(start, head)):
            try:
                piece = frame.decompress(packed)
            except (zstandard.ZstdError, MemoryError):
                yield from self._last_pieces(islice(self._packed(start, head), n), packed)
                return False
            done += len(packed)
            if piece:  # none as long as a block is not whole
                yield piece
            if frame.eof:
                return start + done - len(frame.unused_data) == self._source.covered and not head
        return False

    def _packed(self, start: int, head: bytes) -> Iterator[bytes]:
        """Yield the packed bytes from `start` on in steps. head: instead of the first of them."""
        at = start
        while data := self._source.read(READ_BYTES, at):
            data = head + data[len(head) :] if at == start else data
            at += len(data)
            yield from (data[n : n + STEP_BYTES] for n in range(0, len(data), STEP_BYTES))

    @staticmethod
    def _last_pieces(before: Iterator[bytes], packed: bytes) -> Iterator[bytes]:
        """Yield what can be had of the step in which the frame breaks: zstd gave none of that away."""
        import zstandard

        frame = _new_frame()
        for step in before:
            frame.decompress(step)
        with suppress(zstandard.ZstdError, MemoryError):
            for n in range(len(packed)):
                if piece := frame.decompress(packed[n : n + 1]):
                    yield piece

    def _described_anew(self) -> Description:
        """Return what the content looks like where the description is lost: a segment begins with its header."""
        size = min(self._source.covered, MAX_DESCRIPTION + SKIPPABLE_HEADER.size + len(FRAME_START))
        at = self._source.read(size, 0).find(FRAME_START)
        self.description = Description("", (), {}, at)
        if at < 0:
            return self.description
        starts, end = _headers(self._pieces())
        if not end:
            return self.description
        names = [closed_name(ordinal, seq) for _, ordinal, seq in starts[:-1]] + [OPEN_NAME]
        ends = [at for at, _, _ in starts[1:]] + [end]
        members = [Member(n, b - a[0], "") for n, a, b in zip(names, starts, ends, strict=True)]
        return self.description._replace(members=tuple(members))


def verified(files: FileSystem, path: str, progress: Progress = lambda _: None) -> Description | None:
    """Return what an archive says of itself where all of it is true and every byte as it was written, else None.

    Raises:
        OSError: it cannot be read.
        TooNew: it is of a newer format.
    """
    with Contents(files, path) as contents:
        for member, pieces in contents.parts():
            digest = sha256()
            for piece in pieces:
                digest.update(piece)
                progress(len(piece))
            if digest.hexdigest() != member.sha256:
                return None
        return contents.description if contents.flawless else None


def compressor(size: int) -> "zstandard.ZstdCompressionObj":
    """Return what makes the frame of `size` bytes of content."""
    import zstandard

    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, source_size=size, window_log=min(WINDOW_LOG, max(size.bit_length(), 10)), enable_ldm=True,
        write_content_size=True, write_checksum=True,
    )  # fmt: skip
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)


class _Stream:
    """Unpacked bytes, taken by length. Ends early where the frame is damaged."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def take(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    return
            piece, self._rest = self._rest[:size], self._rest[size:]
            size -= len(piece)
            yield piece

    def ended(self) -> bool:
        """Tell whether nothing is left, and the frame's own checksum held."""
        try:
            while not self._rest:
                self._rest = next(self._pieces)
        except StopIteration as end:
            return end.value is True
        return False


def _new_frame() -> "zstandard.ZstdDecompressionObj":
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).decompressobj()


def _begins_well(start: bytes, size: int) -> bool:
    """Tell whether these are the first bytes of a frame that holds `size` bytes."""
    import zstandard

    try:
        known = zstandard.get_frame_parameters(start)
    except zstandard.ZstdError:
        return False
    return known.content_size == size and known.has_checksum and known.window_size <= 1 << WINDOW_LOG


def _frame_header(size: int) -> bytes:
    """Return the header that the frame of `size` bytes of content has."""
    import zstandard

    frame = compressor(size)
    start = frame.compress(b"\n") + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return start[: zstandard.frame_header_size(start)]


def _headers(pieces: Iterator[bytes]) -> tuple[list[tuple[int, int, int]], int]:
    """Return (offset, ordinal, first seq) of each segment in some content, and the length of that.

    A header can be nothing else: inside of any other line its quotes are escaped.
    """
    found, base, data = [(0, 0, 1)], 0, b""
    while True:
        piece = next(pieces, b"")
        data += piece
        at = data.find(_HEADER_START)
        while at >= 0 and (len(data) - at >= _MAX_HEADER or not piece):
            header = _header(data[at : data.find(b"\n", at) + 1])
            if header is not None and base + at == 0:
                found[0] = (0, header.ordinal, header.first_seq)
            elif header is not None and header.ordinal > found[-1][1]:
                found.append((base + at, header.ordinal, header.first_seq))
            at = data.find(_HEADER_START, at + 1)
        if not piece:
            return found, base + len(data)
        keep = at if at >= 0 else max(len(data) - len(_HEADER_START), 0)
        base, data = base + keep, data[keep:]


def _header(line: bytes) -> Header | None:
    try:
        return decode_header(line)
    except BadLine:
        return None


def _description(read: Callable[[int, int], bytes]) -> Description | None:
    start = read(SKIPPABLE_HEADER.size, 0)
    if len(start) < SKIPPABLE_HEADER.size:
        return None
    magic, size = SKIPPABLE_HEADER.unpack(start)
    if magic != DESCRIPTION_MAGIC or size > MAX_DESCRIPTION:
        return None
    return _read_description(read(size, SKIPPABLE_HEADER.size), SKIPPABLE_HEADER.size + size)


def _read_description(line: bytes, frame_at: int) -> Description | None:
    try:
        if not crc_fits(line, 0):
            return None
        value = json.loads(line)
        if value["format"] != FORMAT and str(value["format"]).startswith("agentsh-archive/"):
            raise TooNew(str(value["format"])[:40])
        members = tuple(Member(str(m["name"]), int(m["bytes"]), str(m["sha256"])) for m in value["members"])
        facts = dict(value["facts"])
        last = value.get("last_seq", _summarised(facts))
        found = Description(
            str(value["session"]), members, facts, frame_at, last if type(last) is int and last > 0 else 0,
            value.get("parity") == PARITY,
        )  # fmt: skip
        if value["format"] != FORMAT:
            return None
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    names = [member.name for member in members]
    closed = [c.name for c in closed_segments(names) if not c.sealed]
    if sorted(names) != sorted([*closed, OPEN_NAME]) or len(set(names)) != len(names):
        return None
    if any(member.bytes < 0 for member in members) or found.raw_bytes > MAX_CONTENT:
        return None
    return found if names[-1:] == [OPEN_NAME] else None


def _summarised(facts: Mapping[str, Any]) -> Any:
    """Return the last seq as archives of before had it: in the summary for `ls`."""
    summary = facts.get("summary")
    return summary.get("last_seq") if isinstance(summary, dict) else None
