"""Event streams, cut and glued at every byte."""

from collections.abc import AsyncIterator

import pytest

from agentsh.models import sse

STREAM = (
    ": comment\r\n\r\nretry: 10\n\nid: 3\n\ndata: {\"a\":\n"
    "data:  1}\n\nevent: x\rdata:zwei é\r\rdata\n\n\n\ndata:\n\ndata: last"
).encode()  # fmt: skip
EVENTS = ['{"a":\n 1}', "zwei é", "", "", "last"]


async def _pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
async def test_events_however_the_bytes_come(size: int) -> None:
    assert [event async for event in sse.events(_pieces(STREAM, size))] == EVENTS


async def test_an_event_is_there_with_its_blank_line_even_if_lines_end_in_cr() -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"data: 1\r\r"
        raise AssertionError("it waited for more")

    assert await anext(sse.events(stream())) == "1"


async def test_the_opening_and_all_of_the_rest() -> None:
    for size in (1, 4, 100):
        first, rest = await sse.opening(_pieces(b"\n  \n<html>", size))
        assert first == b"<"
        assert await sse.whole(rest) == b"<html>"
    first, rest = await sse.opening(_pieces(b"\xef\xbb\xbfdata: x", 100))
    assert (first, [e async for e in sse.events(rest)]) == (b"d", ["x"])
    first, rest = await sse.opening(_pieces(b" \n", 1))
    assert (first, await sse.whole(rest)) == (b"", b"")


async def test_nothing_grows_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    for data in (b"data: " + b"x" * 200, b"data: xxxxxxx\n" * 50):
        with pytest.raises(sse.EventTooLong):
            [event async for event in sse.events(_pieces(data, 10))]
    with pytest.raises(sse.EventTooLong):
        await sse.whole(_pieces(b"x" * 200, 10))
