"""The log of a session as a copy of it is made: the content of its segments up to a durable end, and nothing else."""

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from agentsh.log.chain import LogScan, Segment
from agentsh.log.files import FileSystem
from agentsh.log.frame import crc_fits
from agentsh.log.plain import open_plain
from agentsh.log.scan import peek
from agentsh.log.segment import chunks, closed_name
from agentsh.stores.manifest import line_hash

WINDOW_BYTES = 64 << 10


class Last(NamedTuple):
    """The last event of a copy. end: of its line in the content of its segment."""

    seq: int
    line: bytes
    end: int


class Content:
    """One segment's content. end: bytes of it that count."""

    def __init__(self, files: FileSystem, directory: str, segment: Segment, end: int) -> None:
        self._files = files
        self._directory = directory
        self._segment = segment
        self.name = segment.name
        self.ordinal = segment.ordinal
        self.is_open = segment.is_open
        self.end = end
        self.sealed = segment.sealed is not None
        about = segment.sealed.description if segment.sealed is not None else None
        self._known_sha256 = about.raw_sha256 if about is not None else None

    def key_name(self) -> str:
        """Return what its objects are called after: the name that it has, or will have, once it is closed."""
        if not self.is_open:
            return self.name.removesuffix(".zst")
        header = self._segment.head.header
        return closed_name(self.ordinal, header.first_seq if header is not None else 0)

    def raw(self, start: int, end: int) -> Iterator[bytes]:
        """Yield content.

        Raises:
            OSError: the disk refused, or a frame does not unpack.
        """
        if self._segment.sealed is None:
            yield from chunks(self._files, self._segment.fd, start, end)
            return
        for frame in self._segment.sealed.frames:
            if frame.raw_at + frame.raw_size > start and frame.raw_at < end:
                content = self._segment.sealed.unpack(frame)
                if content is None:
                    raise OSError(f"{self.name} is damaged")
                yield content[max(0, start - frame.raw_at) : end - frame.raw_at]

    def hash_to(self, end: int) -> str | None:
        """Return the SHA-256 of the first `end` bytes of the content, or None where there are fewer."""
        if end > self.end:
            return None
        if end == self.end and self._known_sha256 is not None:
            return self._known_sha256
        digest = sha256()
        for piece in self.raw(0, end):
            digest.update(piece)
        return digest.hexdigest()

    def file(self) -> bytes:
        """Return the bytes of the sealed file."""
        return b"".join(chunks(self._files, self._segment.fd, 0))


class LocalLog:
    """A log that is being read for its copy; use it as a context manager.

    held: somebody writes it. Then only what he has acknowledged counts: what the last line's `dur` or `durable_seq`
    says; a line behind that may still be cut back. Else everything does, once it is synced.
    """

    def __init__(
        self, files: FileSystem, directory: str, session: str, *, held: bool = False, durable_seq: int = 0
    ) -> None:
        self._files = files
        self._directory = directory
        self.session = session
        self._scan = LogScan(files, directory, session)
        try:
            self.newer = self._scan.newer
            self.last, self.contents = self._measured(held, durable_seq)
        except BaseException:
            self._scan.close()
            raise

    def __enter__(self) -> "LocalLog":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._scan.close()

    def line_at(self, seq: int) -> str | None:
        """Return the hash of an event's line, as manifests have it, or None where that event is not there."""
        if not seq:
            return None
        scan = LogScan(self._files, self._directory, self.session)
        try:
            found = next((entry for entry in scan.entries(seq - 1) if entry[0] >= seq), None)
            return line_hash(found[1]) if found is not None and found[0] == seq else None
        finally:
            scan.close()

    def _measured(self, held: bool, durable_seq: int) -> tuple[Last | None, list[Content]]:
        contents: list[Content] = []
        last: Last | None = None
        for segment in reversed(self._scan.segments):
            size = self._files.fstat(segment.fd).size
            if segment.sealed is not None:
                about = segment.sealed.description
                if about is None or not segment.sealed.whole:
                    raise OSError(f"{segment.name} is damaged: its end does not read")
                size = about.raw_bytes
            if segment.limit is not None and segment.sealed is None:
                size = min(size, segment.limit)
            content = Content(self._files, self._directory, segment, size)
            if last is None:
                if segment.is_open:
                    self._files.sync(segment.fd)  # also on a descriptor that only reads; blobs were durable before
                last = _last_line(content, segment, held and segment.is_open, durable_seq)
                if segment.is_open:
                    if last is None:
                        continue  # nothing in it yet: a log without an open segment is whole
                    content.end = last.end
            contents.append(content)
        return last, contents[::-1]


def _last_line(content: Content, segment: Segment, held: bool, durable_seq: int) -> Last | None:
    """Return the last line that reads and counts, looked for from the end."""
    salt, size = segment.head.salt, content.end
    if salt is None:
        return None
    window = WINDOW_BYTES
    while True:
        start = max(0, size - window)
        data = b"".join(content.raw(start, size))
        limit: int | None = None
        end = start + data.rfind(b"\n") + 1
        body = data[: end - start]
        first = 0 if start == 0 else body.find(b"\n") + 1
        while len(body) > first:
            at = body.rfind(b"\n", 0, len(body) - 1) + 1
            if at < first:
                break
            line, body = body[at:], body[:at]
            if line.startswith(b'{"seq":') and crc_fits(line, salt):
                seq = int(line[7 : line.index(b",")])
                if limit is None:
                    limit = max(peek(line)[1], durable_seq) if held else seq
                if seq <= limit:
                    return Last(seq, line, start + at + len(line))
        if start == 0:
            return None
        window *= 4


def newest_checkpoint(directory: str, upto_seq: int) -> tuple[str, bytes] | None:
    """Return (name, bytes) of the newest checkpoint of nothing later than `upto_seq`; None where none reads."""
    from agentsh.log.checkpoint import DIRECTORY, checkpoint_name, checkpoint_seqs
    from agentsh.log.files import RealFiles

    for seq in checkpoint_seqs(RealFiles(), directory):
        if seq <= upto_seq:
            try:
                with open(os.path.join(directory, DIRECTORY, checkpoint_name(seq)), "rb", opener=open_plain) as file:
                    return checkpoint_name(seq), file.read()
            except OSError:
                continue
    return None
