"""The zstd seekable format: independent frames, then our own description of them, then the table of their sizes.

Source: `zstd_seekable_compression_format.md`, version 0.1.0 of 11/04/17, in the repository of zstd (facebook/zstd,
contrib/seekable_format); frames and skippable frames: RFC 8878. The table has no checksums, because they would be
XXH64, which the standard library does not have; each frame carries its own. `zstd -dc` prints the content and
passes over both skippable frames. This module owns zstandard for `log`, and loads it where it is needed.
"""

import json
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from agentsh.log.frame import crc_fits, dump_json, with_crc

if TYPE_CHECKING:
    from concurrent.futures import Future

    import zstandard

FRAME_BYTES = 4 << 20
"""Content of one frame, at most, unless a single line is longer. 4 MiB: 74.6 % saved, 5 ms to read one event
(64 KiB: 68.5 % and 70 µs): reference/durability.md, table e."""
WINDOW_LOG, HASH_LOG, MIN_MATCH = 22, 17, 7
"""How frames are packed: zstd's fast strategy, looking back over all of a frame, for matches of seven bytes and more.
Level 3 looks for shorter ones in half a frame: on sessions that read files again it takes a third longer and saves
less (76.5 % to 77.1 %); where nothing comes again it saves a point more. Measured by `benches/segments.py`."""
MAX_FRAME_BYTES = 64 << 20
"""No frame claims more; one that does is damaged, or made to fill the memory."""

DESCRIPTION_MAGIC = 0x184D2A50
TABLE_MAGIC = 0x184D2A5E
FOOTER_MAGIC = 0x8F92EAB1
FRAME_START = b"\x28\xb5\x2f\xfd"
SKIPPABLE_HEADER = struct.Struct("<II")
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")
_RESERVED_OR_CHECKSUMS = 0b11111100


class Span(NamedTuple):
    """A frame in the file: `size` bytes at `at` hold `raw_size` bytes of the content; 0 for a skippable frame."""

    at: int
    size: int
    raw_size: int


class Description(NamedTuple):
    """What a sealed segment says of itself, under a crc of its own.

    frames: the first seq of each frame. header: the segment's header line with its LF, so that the salt is known
    even where the first frame is lost.
    """

    ordinal: int
    first_seq: int
    last_seq: int
    raw_bytes: int
    raw_sha256: str
    frames: tuple[int, ...]
    header: bytes


class Packer:
    """Makes the frames and, at the end, what follows them."""

    def __init__(self) -> None:
        self._compressor = self._new()
        self._sizes: list[tuple[int, int]] = []

    @staticmethod
    def _new() -> "zstandard.ZstdCompressor":
        import zstandard

        return zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                strategy=zstandard.STRATEGY_FAST, window_log=WINDOW_LOG, hash_log=HASH_LOG, chain_log=HASH_LOG,
                min_match=MIN_MATCH, search_log=1, write_checksum=True, write_content_size=True,
            )
        )  # fmt: skip

    def frame(self, piece: bytes) -> bytes:
        """Return the next frame."""
        packed = self._compressor.compress(piece)
        self._sizes.append((len(packed), len(piece)))
        return packed

    def end(self, description: Description) -> bytes:
        """Return the description and the seek table."""
        about = _describe(description)
        return about + seek_table([*self._sizes, (len(about), 0)])


class PackerBeside(Packer):
    """A packer that makes the frames on threads of its own, while its caller reads and checks what comes next.

    zstd leaves the interpreter to others meanwhile. At most AHEAD pieces are held. A context manager: on leaving
    it, what nobody asked for any more is given up.
    """

    AHEAD = 4
    THREADS = 2
    """The second has a frame in work while the first waits for the interpreter, which the caller keeps busy."""

    def __init__(self) -> None:
        super().__init__()
        from concurrent.futures import ThreadPoolExecutor

        self._free = [self._compressor, *(self._new() for _ in range(self.THREADS - 1))]
        self._pool = ThreadPoolExecutor(self.THREADS, "pack")
        self._waiting: deque[tuple[Future[bytes], int]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def give(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece, and yield the oldest frame where enough wait; else it comes later."""
        self._waiting.append((self._pool.submit(self._pack, piece), len(piece)))
        if len(self._waiting) >= self.AHEAD:
            yield self._oldest()

    def rest(self) -> Iterator[bytes]:
        """Yield the frames that did not come yet."""
        while self._waiting:
            yield self._oldest()

    def _pack(self, piece: bytes) -> bytes:
        compressor = self._free.pop()
        try:
            return compressor.compress(piece)
        finally:
            self._free.append(compressor)

    def _oldest(self) -> bytes:
        future, size = self._waiting.popleft()
        packed = future.result()
        self._sizes.append((len(packed), size))
        return packed


def pieces(chunks: Iterable[bytes], size: int = FRAME_BYTES) -> Iterator[bytes]:
    """Cut bytes at line ends into pieces of at most `size` bytes, more only where one line is longer."""
    parts: list[bytes] = []
    held = 0
    for chunk in chunks:
        parts.append(chunk)
        held += len(chunk)
        if held <= size:
            continue
        data, at = b"".join(parts), 0
        while len(data) - at > size:
            cut = data.rfind(b"\n", at, at + size) + 1 or data.find(b"\n", at) + 1
            if not cut:
                break
            yield data[at:cut]
            at = cut
        parts, held = [data[at:]], len(data) - at
    if held:
        yield b"".join(parts)


def skippable(magic: int, content: bytes) -> bytes:
    """Return a frame that every reader of zstd passes over."""
    return SKIPPABLE_HEADER.pack(magic, len(content)) + content


def seek_table(sizes: Sequence[tuple[int, int]]) -> bytes:
    """Return the table for frames of these (compressed, decompressed) sizes; it is the last frame of a file."""
    entries = b"".join(_ENTRY.pack(*pair) for pair in sizes)
    return skippable(TABLE_MAGIC, entries + _FOOTER.pack(len(sizes), 0, FOOTER_MAGIC))


def table_bytes(end: bytes, size: int) -> int | None:
    """Return the length of the seek table that ends a file of `size` bytes, or None. end: its last nine or more."""
    if len(end) < _FOOTER.size:
        return None
    count, descriptor, magic = _FOOTER.unpack_from(end, len(end) - _FOOTER.size)
    length = SKIPPABLE_HEADER.size + count * _ENTRY.size + _FOOTER.size
    if magic != FOOTER_MAGIC or descriptor & _RESERVED_OR_CHECKSUMS or length > size:
        return None
    return int(length)


def read_table(table: bytes, size: int) -> list[Span] | None:
    """Return the frames that a seek table names, or None where it does not fit a file of `size` bytes."""
    if SKIPPABLE_HEADER.unpack_from(table) != (TABLE_MAGIC, len(table) - SKIPPABLE_HEADER.size):
        return None
    spans, at = [], 0
    for packed, raw in _ENTRY.iter_unpack(table[SKIPPABLE_HEADER.size : -_FOOTER.size]):
        spans.append(Span(at, packed, raw))
        at += packed
    return spans if at + len(table) == size else None


def _describe(d: Description) -> bytes:
    value = {
        "format": "agentsh-seal/1", "ordinal": d.ordinal, "first_seq": d.first_seq, "last_seq": d.last_seq,
        "raw_bytes": d.raw_bytes, "raw_sha256": d.raw_sha256, "frames": list(d.frames),
        "header": d.header[:-1].decode(),
    }  # fmt: skip
    return skippable(DESCRIPTION_MAGIC, with_crc(dump_json(value)[:-1], 0))


def read_description(frame: bytes) -> Description | None:
    """Return what a skippable frame of ours says, or None where it is none, or damaged."""
    content = frame[SKIPPABLE_HEADER.size :]
    if frame[: SKIPPABLE_HEADER.size] != SKIPPABLE_HEADER.pack(DESCRIPTION_MAGIC, len(content)):
        return None
    try:
        if not crc_fits(content, 0):
            return None
        value = json.loads(content)
        numbers = value["ordinal"], value["first_seq"], value["last_seq"], value["raw_bytes"]
        if value["format"] != "agentsh-seal/1" or any(type(n) is not int for n in (*numbers, *value["frames"])):
            return None
        return Description(
            *numbers, str(value["raw_sha256"]), tuple(value["frames"]), value["header"].encode() + b"\n"
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class UnpackersBeside:
    """Unpacks frames on two threads, in order, while its caller looks at what it has got. A context manager."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._free = [Unpacker(), Unpacker()]
        self._pool = ThreadPoolExecutor(len(self._free), "unpack")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def frames(self, packed: Iterable[tuple[bytes, int]]) -> Iterator[bytes | None]:
        """Yield what `Unpacker.frame` makes of each (packed, raw_size)."""
        waiting: deque[Future[bytes | None]] = deque()
        for data, raw_size in packed:
            waiting.append(self._pool.submit(self._frame, data, raw_size))
            if len(waiting) > len(self._free):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _frame(self, packed: bytes, raw_size: int) -> bytes | None:
        unpacker = self._free.pop()
        try:
            return unpacker.frame(packed, raw_size)
        finally:
            self._free.append(unpacker)


class Unpacker:
    """Reads frames, one at a time."""

    def __init__(self) -> None:
        import zstandard

        self._zstd = zstandard
        self._decompressor = zstandard.ZstdDecompressor()

    def frame(self, packed: bytes, raw_size: int) -> bytes | None:
        """Return the content of a frame, checked against its checksum, or None where it does not hold."""
        known = self._parameters(packed)
        if known is None or not known.has_checksum or known.content_size != raw_size or raw_size > MAX_FRAME_BYTES:
            return None
        try:
            return self._decompressor.decompress(packed)
        except (self._zstd.ZstdError, MemoryError):
            return None

    def first_frame(self, data: bytes) -> tuple[bytes, int] | None:
        """Return (content, compressed size) of the frame that `data` begins with, or None where it does not hold."""
        known = self._parameters(data)
        if known is None or not known.has_checksum or known.content_size > MAX_FRAME_BYTES:
            return None
        frame = self._decompressor.decompressobj()
        try:
            content = frame.decompress(data)
        except (self._zstd.ZstdError, MemoryError):
            return None
        return (content, len(data) - len(frame.unused_data)) if frame.eof else None

    def _parameters(self, packed: bytes) -> "zstandard.FrameParameters | None":
        if not packed.startswith(FRAME_START):
            return None
        try:
            return self._zstd.get_frame_parameters(packed[:64])
        except self._zstd.ZstdError:
            return None
