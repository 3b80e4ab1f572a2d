"""Bytes of one segment to lines that hold and flaws that do not, in one pass and without decoding JSON.

Normative: docs/log-format.md. A line holds when its last member is the crc of the bytes before it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from agentsh.base.text import clean
from agentsh.log.frame import CRC_TAIL, BadLine, crc_fits, decode_header
from agentsh.log.record import Header, Record
from agentsh.log.store import HARMLESS

MAX_SCAN_LINE = 16 << 20
"""Bytes without a line feed that are still looked at as one line; a writer makes lines of at most 25,000."""
KEPT_OF_LONG = 64 << 10
"""End of a longer one that is kept, because a whole record may be glued behind it."""
MAX_PIECES = 8
"""Starts and ends of records that are tried inside one bad line."""

_TAIL = CRC_TAIL - 1  # without the line feed
_START = b'{"seq":'
_END = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_ENVELOPE = re.compile(
    rb'\{"seq":([1-9][0-9]{0,17}),"ts":"([^"\\]*)","type":"([^"\\]*(?:\\.[^"\\]*)*)","dur":(0|[1-9][0-9]{0,17})'
    rb'(?:,"cause":([1-9][0-9]{0,17}))?,"payload":\{'
)


Entry = tuple[int, bytes, int, int]
"""A line that holds: (seq, text without its line end, crc, offset). A plain tuple, because there are so many."""


class Flaw(NamedTuple):
    """Bytes that are no record. lines: how many records they may have been."""

    offset: int
    bytes: int
    kind: str
    lines: int = 1


class Head(NamedTuple):
    """What the first bytes of a segment say.

    header: None where it cannot be read or mended. salt: None where it is not known either.
    intact: the header stands there as it was written. start: offset behind it. ended: its LF is there.
    newer: name of a format that is not ours, else None.
    """

    header: Header | None
    salt: int | None
    intact: bool
    start: int
    ended: bool = True
    newer: str | None = None
    flaws: tuple[Flaw, ...] = ()


class SegmentScan:
    """One pass over the lines of a segment. The attributes hold once `items` has ended.

    good_end: offset behind the last valid line. needs_newline: that line lacks its LF.
    tail: what lies behind it, or None. end: offset of the end of the bytes.
    """

    def __init__(self, head: Head, chunks: Iterable[bytes]) -> None:
        self.head = head
        self.good_end = head.start
        self.end = head.start
        self.tail: Flaw | None = None
        self._chunks = chunks
        self._unended = -1 if head.ended else head.start
        self._foreign: int | None = None

    @property
    def needs_newline(self) -> bool:
        """Tell whether an LF is missing right behind the last valid line."""
        return self._unended == self.good_end

    def items(self) -> Iterator[Entry | Flaw]:
        """Yield lines, and flaws once a valid line follows them. chunks: the bytes from `head.start` on."""
        salt, pos, carry = self.head.salt, self.head.start, b""
        bad: Flaw | None = None
        seq = self.head.header.first_seq if self.head.header else 1
        for chunk in self._chunks:
            parts = (carry + chunk).split(b"\n")
            carry = parts.pop()
            for part in parts:
                if salt is not None and bad is None and part.startswith(b'{"seq":%d,"ts":"' % seq):
                    crc = crc32(part[:-_TAIL], salt)
                    if part.endswith(b',"crc":"%08x"}' % crc):
                        offset, pos = pos, pos + len(part) + 1
                        self.good_end = pos
                        yield seq, part, crc, offset
                        seq += 1
                        continue
                for item in self._odd(part + b"\n", pos, after_bad=bad is not None):
                    bad, ready = _merge(bad, item)
                    yield from ready
                    if not isinstance(item, Flaw):
                        seq = item[0] + 1
                pos += len(part) + 1
            if len(carry) > MAX_SCAN_LINE:
                gone = len(carry) - KEPT_OF_LONG
                bad, _ = _merge(bad, Flaw(pos, gone, "nul" if not carry.strip(b"\0") else "garbage"))
                pos, carry = pos + gone, carry[gone:]
        if carry:
            for item in self._odd(carry, pos, after_bad=bad is not None):
                bad, ready = _merge(bad, item)
                yield from ready
        self.end = pos + len(carry)
        self.tail = bad

    def _odd(self, line: bytes, pos: int, *, after_bad: bool) -> list[Entry | Flaw]:
        """Judge a line that does not hold as it stands; without its LF it is the last of the bytes."""
        ended = line.endswith(b"\n")
        if not line.strip(b" \t\r\n"):
            if after_bad or not ended:
                return [Flaw(pos, len(line), "garbage", 0)]
            self.good_end = pos + len(line)
            return [Flaw(pos, len(line), "blank", 0)]
        salt = self.head.salt
        if salt is None:
            return [Flaw(pos, len(line), _kind(line))]
        text, notes = line, []
        if text.startswith(b"\xef\xbb\xbf"):
            text = text[3:]
            notes.append(Flaw(pos, 3, "bom", 0))
        if text.endswith(b"\r\n"):
            text = text[:-2] + b"\n"
            notes.append(Flaw(pos + len(line) - 2, 1, "crlf", 0))
        if crc_fits(text, salt):
            entry = _entry(text, pos)
            if entry is None:
                return [Flaw(pos, len(line), "json")]  # written like that: no seq to be had
            self.good_end = pos + len(line)
            return [entry, *notes]
        return self._pieces(line, pos, salt) or [self._foreign_or_bad(line, pos)]

    def _pieces(self, line: bytes, pos: int, salt: int) -> list[Entry | Flaw]:
        """Return what is whole inside a bad line, with what lies between; nothing where nothing is."""
        found: list[Entry | Flaw] = []
        done, starts = 0, _starts(line)
        ends = [m for _, m in zip(range(MAX_PIECES), _END.finditer(line), strict=False)]
        ends += [m for m in _last_end(line) if m not in ends]
        for start in starts:
            for end in ends:
                if start < done or end.start() <= start or b"%08x" % crc32(line[start : end.start()], salt) != end[1]:
                    continue
                entry = _entry(line[start : end.end()] + b"\n", pos + start)
                if entry is None:
                    continue
                if start > done:
                    found.append(Flaw(pos + done, start - done, "glued"))
                elif found:
                    found.append(Flaw(pos + done, 0, "newline", 0))
                found.append(entry)
                done = end.end()
                self.good_end = pos + done
                self._unended = self.good_end
                if line[done:] == b"\n":
                    self.good_end, self._unended, done = pos + len(line), -1, len(line)
                break
        if found and done < len(line):
            found.append(Flaw(pos + done, len(line) - done, "garbage", 0))
        elif found and not line.endswith(b"\n"):
            found.append(Flaw(pos + done, 0, "newline", 0))
        return found

    def _foreign_or_bad(self, line: bytes, pos: int) -> Flaw:
        if self._foreign is not None and crc_fits(line, self._foreign):
            return Flaw(pos, len(line), "foreign", 0)
        if line.startswith(b'{"format":'):
            try:
                self._foreign = decode_header(line).salt
            except BadLine:
                pass
            else:
                return Flaw(pos, len(line), "foreign", 0)
        return Flaw(pos, len(line), _kind(line))


def _merge(bad: Flaw | None, item: Entry | Flaw) -> tuple[Flaw | None, tuple[Entry | Flaw, ...]]:
    """Return the bad bytes that wait for a valid line, and what can be told now."""
    if not isinstance(item, Flaw):
        return None, (item,) if bad is None else (bad, item)
    if item.kind in HARMLESS:
        return bad, (item,)
    if bad is None:
        return item, ()
    return Flaw(bad.offset, item.offset + item.bytes - bad.offset, bad.kind, bad.lines + item.lines), ()


def _kind(line: bytes) -> str:
    if not line.strip(b"\0\n"):
        return "nul"
    if line.startswith(_START):
        return "crc" if _END.search(line[-CRC_TAIL - 1 :]) else "half"
    return "garbage"


def _starts(line: bytes) -> list[int]:
    """Return where a record may start in a bad line: the first places, and the very last."""
    places = [] if line.startswith(_START) else [0]
    at = line.find(_START)
    while at >= 0 and len(places) < MAX_PIECES:
        places.append(at)
        at = line.find(_START, at + 1)
    last = line.rfind(_START)
    return places if last < 0 or last in places else [*places, last]


def _last_end(line: bytes) -> list[re.Match[bytes]]:
    at = line.rfind(b',"crc":"')
    found = _END.match(line, at) if at >= 0 else None
    return [found] if found else []


def _entry(line: bytes, offset: int) -> Entry | None:
    """Return the entry on a line whose crc fits, also where its members stand in another order."""
    crc = int(line[-11:-3], 16)
    m = _ENVELOPE.match(line)
    if m is not None:
        return int(m[1]), line[:-1], crc, offset
    try:
        value = json.loads(line)
        seq, good = value["seq"], isinstance(value["payload"], dict)
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return (seq, line[:-1], crc, offset) if good and type(seq) is int and 0 < seq < 1 << 62 else None


def entry_of(line: bytes, salt: int, offset: int) -> Entry | None:
    """Return the entry on one whole line (LF included), or None where it does not hold; nothing is mended."""
    return _entry(line, offset) if crc_fits(line, salt) else None


def peek(text: bytes) -> tuple[bytes, int]:
    """Return (type as written, dur) of a line that holds, undecoded; (b"", 0) where they stand elsewhere."""
    m = _ENVELOPE.match(text)
    return (m[3], int(m[4])) if m is not None else (b"", 0)


def durable_in(entry: Entry) -> int:
    """Return what a line says to be durable, wherever it stands in it; no more than there was, whatever it says."""
    seq, text = entry[:2]
    m = _ENVELOPE.match(text)
    try:
        dur = int(m[4]) if m is not None else json.loads(text).get("dur", 0)
    except (ValueError, RecursionError, AttributeError):
        return 0
    return min(dur, seq - 1) if type(dur) is int else 0


def last_seq_in(end: bytes, salt: int) -> int | None:
    """Return the seq of the very last line of some bytes; None where that is no record that holds and looks usual."""
    if not end.endswith(b"\n"):
        return None
    line = end[end.rfind(b"\n", 0, -1) + 1 :]
    found = _ENVELOPE.match(line)
    return int(found[1]) if found is not None and crc_fits(line, salt) else None


def to_record(raw: bytes) -> Record:
    """Return the record of a line that holds. Never fails.

    A payload that is no JSON (the crc says it was written like that) comes back as `{"unreadable": why}`.
    """
    m = _ENVELOPE.match(raw)
    if m is None:
        return _slow_record(raw)
    try:
        payload = json.loads(raw[m.end() - 1 : -CRC_TAIL].decode())
        kind = json.loads(b'"%b"' % m[3]) if b"\\" in m[3] else m[3].decode()
        return Record(
            int(m[1]), _time(m[2].decode()), kind, int(m[4]), None if m[5] is None else int(m[5]), payload, raw
        )
    except (ValueError, RecursionError):
        return _slow_record(raw)


def _time(ts: str) -> str:
    """Return a time stamp as it may be shown, which happens in many places: whatever it is, it steers no terminal."""
    return ts if ts.isprintable() else " ".join(clean(ts).split())


def _slow_record(raw: bytes) -> Record:
    """Decode the whole line: members in another order, unknown ones behind the payload, or no JSON at all."""
    m = _ENVELOPE.match(raw)
    seq, dur = (int(m[1]), int(m[4])) if m else (0, 0)
    try:
        value = json.loads(raw)
        cause = value.get("cause")
        return Record(
            int(value["seq"]), _time(str(value["ts"])), str(value["type"]), int(value["dur"]),
            cause if type(cause) is int else None, dict(value["payload"]), raw,
        )  # fmt: skip
    except (ValueError, OverflowError, RecursionError, TypeError, KeyError) as error:
        ts, kind = (
            (_time(m[2].decode("utf-8", "replace")), m[3].decode("utf-8", "replace")) if m else ("", "unreadable")
        )
        return Record(seq, ts, kind, dur, None, {"unreadable": f"{type(error).__name__}: {error}"[:200]}, raw)
