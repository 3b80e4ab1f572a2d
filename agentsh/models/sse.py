"""Server-sent events out of bytes, for every wire that streams them; lenient where servers are sloppy.

The client's own decoder fails on events without data (`retry:`, `event: ping`), which real servers send.
Format: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""A longer event is garbage; the whole reply of a model is far below."""


class EventTooLong(ValueError):
    """An event, or a body that is no event stream, grew beyond MAX_EVENT_BYTES."""


class _Lines:
    """Splits at LF, CR LF and CR, without waiting for the LF of a CR, and without copying a growing line."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            self._parts.append(line)
            self._size += len(line)
            if line.endswith((b"\n", b"\r")):
                yield self.rest().rstrip(b"\r\n")
            elif self._size > MAX_EVENT_BYTES:
                raise EventTooLong("an event without end")

    def rest(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield the data of each event that has any; comments, names, ids and empty events are left out.

    An event that the end of the stream cuts is yielded too: some servers leave out the last blank line.

    Raises:
        EventTooLong: an event is longer than MAX_EVENT_BYTES.
    """
    lines, data, size = _Lines(), list[bytes](), 0
    async for chunk in chunks:
        for line in lines.feed(chunk):
            if not line and data:
                yield _joined(data)
                data, size = [], 0
            elif (value := _data(line)) is not None:
                data.append(value)
                size += len(value)
                if size > MAX_EVENT_BYTES:
                    raise EventTooLong("an event without end")
    if (value := _data(lines.rest())) is not None:
        data.append(value)
    if data:
        yield _joined(data)


async def opening(chunks: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """Return the first byte that is no white space (b"" where there is none), and all chunks, those read included."""
    seen = b""
    async for chunk in chunks:
        seen += chunk
        start = seen.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start or len(seen) > MAX_EVENT_BYTES:
            return start[:1], _chained(start, chunks)
    return b"", _chained(b"", chunks)


async def whole(chunks: AsyncIterator[bytes]) -> bytes:
    """Return everything. Raises: EventTooLong beyond MAX_EVENT_BYTES."""
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > MAX_EVENT_BYTES:
            raise EventTooLong("a body without end")
    return bytes(data)


async def _chained(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk


def _data(line: bytes) -> bytes | None:
    name, _, value = line.partition(b":")
    return value.removeprefix(b" ") if name == b"data" else None


def _joined(data: list[bytes]) -> str:
    return b"\n".join(data).decode("utf-8", "replace")
