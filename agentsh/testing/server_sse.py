"""Server-sent events as bytes: how events lie in the body, and the body in segments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from agentsh.testing.server_script import Comment, Control, Cut, Hang, Layout, Pause, Raw


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes to send; `framed` as part of the body, `apart` from what follows, in a segment of their own."""

    data: bytes
    framed: bool = True
    apart: bool = False


Frame: TypeAlias = Send | Control


def dumps(value: object, *, escape: bool = False, spread: bool = False) -> str:
    """JSON as servers send it: compact, readable text; half a surrogate pair is escaped, it has no UTF-8.

    `escape`: only ASCII. `spread`: over several lines.
    """
    layout: dict[str, object] = {"indent": 1} if spread else {"separators": (",", ":")}
    text = json.dumps(value, ensure_ascii=escape, **layout)  # type: ignore[arg-type]
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, **layout)  # type: ignore[arg-type]
    return text


def event(value: object, layout: Layout, name: str | None = None) -> Send:
    """One event that carries a JSON value."""
    return text_event(dumps(value, escape=layout.escape, spread=layout.split_data), layout, name)


def text_event(text: str, layout: Layout, name: str | None = None) -> Send:
    """One event whose data is `text`, one `data:` line for each of its lines."""
    lines = [f"event: {name}"] if name else []
    lines += [f"{layout.data_prefix}{line}" for line in text.split("\n")]
    return Send(layout.line_end.join([*lines, "", ""]).encode())


def comment(step: Comment, layout: Layout) -> Send:
    """A comment line and the blank line after it."""
    return Send(f": {step.text}{layout.line_end * 2}".encode())


def raw(step: Raw) -> Send:
    """Scripted bytes."""
    return Send(step.data, framed=step.framed)


def laid_out(frames: Iterable[Frame], layout: Layout, gap_s: float) -> Iterator[Frame]:
    """The frames as they will be sent: joined or cut as `layout` says, `gap_s` seconds between events."""
    if layout.joined:
        frames = _joined(frames)
    first = True
    for frame in frames:
        if isinstance(frame, Send):
            if gap_s and not first:
                yield Pause(gap_s)
            first = False
            yield from _segments(frame, layout)
        else:
            yield frame
        if isinstance(frame, Cut | Hang):
            return


def _joined(frames: Iterable[Frame]) -> Iterator[Frame]:
    waiting = b""
    for frame in frames:
        if isinstance(frame, Send) and frame.framed:
            waiting += frame.data
            continue
        if waiting:
            yield Send(waiting)
            waiting = b""
        yield frame
    if waiting:
        yield Send(waiting)


def _segments(frame: Send, layout: Layout) -> Iterator[Send]:
    data = frame.data
    if layout.segment_bytes:
        size = layout.segment_bytes
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
    elif layout.split_utf8:
        # One byte past the first lead byte: the segment ends inside a character.
        lead = next((place for place, byte in enumerate(data) if byte >= 0xC0), None)
        pieces = [data] if lead is None else [data[: lead + 1], data[lead + 1 :]]
    else:
        pieces = [data]
    for piece in pieces:
        yield Send(piece, frame.framed, apart=len(pieces) > 1)
