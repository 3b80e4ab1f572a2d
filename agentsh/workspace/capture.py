"""Keeps the output of a process within bounds: its head and tail, its whole while that is small, and a preview."""

import codecs
import time
from collections.abc import Callable

from agentsh.base.pattern import later

MAX_WHOLE_BYTES = 16 * 1024 * 1024
"""Up to here the whole output is kept; beyond, only its head and tail. Source: field report F114, 12 MB of it."""
PREVIEW_EVERY_S = 0.05
MAX_PREVIEW_BYTES = 16_384
"""Of what came between two previews, at most this much is shown."""

_SAMPLE_BYTES = 8_192
_DUMP_BYTES = 64
# Controls that no text has: all of C0 but for \\a \\b \\t \\n \\v \\f \\r and ESC, which terminal output is full of.
_ODD = later(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_MOSTLY = 0.3
_MIN_JUDGED_BYTES = 32  # of fewer bytes nothing can be said by their share
_HEAD_SHARE = 2 / 3


class Capture:
    """Takes bytes as they come. total_bytes: how many there were. Memory: at most 16 MiB, then twice max_bytes.

    whole_bytes: up to which the whole is kept, where that is not 16 MiB.
    """

    def __init__(self, max_bytes: int, *, whole_bytes: int | None = None) -> None:
        self.total_bytes = 0
        self._max_bytes = max_bytes
        self._whole_bytes = max(MAX_WHOLE_BYTES if whole_bytes is None else whole_bytes, max_bytes)
        self._head_bytes = int(max_bytes * _HEAD_SHARE)
        self._tail_bytes = max_bytes - self._head_bytes
        self._kept = bytearray()
        self._tail: bytearray | None = None  # None as long as everything is in _kept

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self.total_bytes += len(data)
        if self._tail is None:
            self._kept += data
            if self.total_bytes > self._whole_bytes:
                self._tail = self._kept[len(self._kept) - self._tail_bytes :]
                self._kept = self._kept[: self._head_bytes]
            return
        self._tail += data
        if len(self._tail) > 2 * self._tail_bytes + _SAMPLE_BYTES:
            del self._tail[: len(self._tail) - self._tail_bytes]

    def whole(self) -> bytes | None:
        """Return everything, or None where it was too much to keep."""
        return bytes(self._kept) if self._tail is None else None

    @property
    def binary(self) -> bool:
        """Whether this is no text."""
        return is_binary(bytes(self._kept[:_SAMPLE_BYTES])) or is_binary(bytes((self._tail or b"")[-_SAMPLE_BYTES:]))

    @property
    def cut(self) -> bool:
        """Whether `text` does not show everything."""
        return self.total_bytes > self._max_bytes or self.binary

    def text(self) -> str:
        """Return head and tail as text, with a mark between them that says how much was left out.

        Binary output gives its size and the first bytes in hexadecimal instead.
        """
        if self.binary:
            return binary_note(bytes(self._kept[:_DUMP_BYTES]), self.total_bytes)
        if self.total_bytes <= self._max_bytes:
            return self._kept.decode("utf-8", "replace")
        tail = self._kept if self._tail is None else self._tail
        start = _whole_characters(bytes(self._kept[: self._head_bytes]))
        end = bytes(tail[len(tail) - self._tail_bytes :])
        end = end[_leading_fragment(end) :]
        left_out = self.total_bytes - len(start) - len(end)
        mark = f"\n[… {left_out:,} bytes left out …]\n"
        return start.decode("utf-8", "replace") + mark + end.decode("utf-8", "replace")


class Preview:
    """Shows output while it comes, at most every 50 ms and 16 KiB at a time; never splits a character.

    `due_s` is the time after which what is held back should be flushed, or None.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        self._shown_s = 0.0
        self._binary = False

    @property
    def due_s(self) -> float | None:
        """Seconds of `time.monotonic` from which on `flush` shows what is pending; None: nothing is."""
        return self._shown_s + PREVIEW_EVERY_S if self._pending else None

    def add(self, data: bytes) -> None:
        """Take bytes; show them if the last time is long enough ago."""
        self._pending += data
        if len(self._pending) > 4 * MAX_PREVIEW_BYTES:
            self._skip()
        if time.monotonic() >= self._shown_s + PREVIEW_EVERY_S:
            self.flush()

    def flush(self, *, last: bool = False) -> None:
        """Show what is pending. last: nothing more will come."""
        if len(self._pending) > MAX_PREVIEW_BYTES:
            self._skip()
        data = bytes(self._pending)
        self._pending.clear()
        self._shown_s = time.monotonic()
        if self._binary:
            return
        if is_binary(data[:_SAMPLE_BYTES]):
            self._binary = True
            self._show("[binary output]\n")
            return
        text = self._decoder.decode(data, last)
        if text:
            self._show(text)

    def _skip(self) -> None:
        """Drop the older part of what is pending, up to the start of a line if there is one."""
        end = bytes(self._pending[len(self._pending) - MAX_PREVIEW_BYTES :])
        line = end.find(b"\n") + 1
        end = end[line or _leading_fragment(end) :]
        self._decoder.reset()
        self._pending = bytearray(b"\n[\xe2\x80\xa6]\n" + end)


def is_binary(sample: bytes) -> bool:
    """Tell whether bytes are no text: a NUL, or more than 30 % controls and bytes that are no UTF-8."""
    if b"\0" in sample:
        return True
    if len(sample) < _MIN_JUDGED_BYTES:
        return False
    whole = _whole_characters(sample)
    broken = whole[_leading_fragment(whole) :].decode("utf-8", "replace").count("\ufffd")
    return (len(_ODD.findall(sample)) + broken) > _MOSTLY * len(sample)


def binary_note(head: bytes, size: int) -> str:
    """Return what is said instead of binary bytes: the size and the first of them in hexadecimal."""
    rows = [head[i : i + 16] for i in range(0, min(len(head), _DUMP_BYTES), 16)]
    dump = "\n".join(
        f"{i * 16:08x}  {row.hex(' '):47}  {''.join(chr(b) if 32 <= b < 127 else '.' for b in row)}"
        for i, row in enumerate(rows)
    )
    return f"[binary output, {size:,} bytes; it starts with]\n{dump}"


def _leading_fragment(data: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before them (0 to 3)."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0xC0 == 0x80:
        count += 1
    return count


def _whole_characters(data: bytes) -> bytes:
    """Return `data` without the start of a character at its end that is not complete."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if need > back else data
    return data
