"""Reads the first line of a segment, and gets by without it where it is damaged."""

import json

from agentsh.base.pattern import later
from agentsh.log.frame import BadLine, crc_fits, decode_header, header_format
from agentsh.log.record import FORMAT, Header
from agentsh.log.salt import mend_header, salt_votes
from agentsh.log.scan import Flaw, Head

HEAD_BYTES = 1 << 20
"""First bytes of a segment that are searched for lines to solve its salt from; 40 of the longest lines."""

_BOM = b"\xef\xbb\xbf"
_END = later(rb',"crc":"[0-9a-f]{8}"\}')
_FAMILY = "agentsh-log/"


def read_head(data: bytes) -> Head:
    """Return what the first bytes (up to HEAD_BYTES) of a segment say about it."""
    flaws, start = [], 0
    if data.startswith(_BOM):
        flaws.append(Flaw(0, 3, "bom", 0))
        start = 3
    blank = len(data) - start - len(data[start:].lstrip(b"\r\n \t"))
    if blank:
        flaws.append(Flaw(start, blank, "blank", 0))
        start += blank
    line_end = data.find(b"\n", start) + 1 or len(data)
    line = data[start:line_end]
    if line.endswith(b"\r\n"):
        flaws.append(Flaw(line_end - 2, 1, "crlf", 0))
        line = line[:-2] + b"\n"
    header = _decoded(line)
    end, ended = line_end, line.endswith(b"\n")
    if header is None and (found := _END.search(line)) is not None:
        header = _decoded(line[: found.end()] + b"\n")  # its LF was hit, so that the next line hangs on it
        end, ended = start + found.end(), False
    if header is not None:
        if not ended and end < len(data):
            flaws.append(Flaw(end, 0, "newline", 0))
            return Head(header, header.salt, True, end, False, None, tuple(flaws))
        return Head(header, header.salt, True, end, ended, None, tuple(flaws))
    newer = _newer(line) if crc_fits(line, 0) else None
    if newer is not None:
        return Head(None, None, True, line_end, newer=newer, flaws=tuple(flaws))
    return _without_header(data, start, line_end, flaws) or _unknown(line, start, line_end, flaws)


def _decoded(line: bytes) -> Header | None:
    try:
        header = decode_header(line)
    except BadLine:
        return None
    return header if header_format(line) == FORMAT else None


def _newer(line: bytes) -> str | None:
    """Return the format that a line names where it is of our family and not ours."""
    named = header_format(line)
    return named if named is not None and named.startswith(_FAMILY) and named != FORMAT else None


def _unknown(line: bytes, start: int, end: int, flaws: list[Flaw]) -> Head:
    """Nothing can be read: the creation was cut short, or a newer format frames its lines in another way.

    Or the header stands alone, and a byte of the format's name is wrong: then its own crc fits with the right name.
    """
    newer = _newer(line)
    if newer is not None:
        header = _decoded(line.replace(newer.encode(), FORMAT.encode(), 1))
        if header is not None:
            return Head(header, header.salt, False, end, flaws=(*flaws, Flaw(start, end - start, "header", 0)))
    return Head(None, None, False, 0, newer=newer, flaws=tuple(flaws))


def _without_header(data: bytes, start: int, line_end: int, flaws: list[Flaw]) -> Head | None:
    """Solve the salt from the lines behind a damaged header; None where there is not enough to go by."""
    lines = [text + b"\n" for text in data[start:].removesuffix(b"\r\n").replace(b"\r\n", b"\n").split(b"\n")]
    votes = salt_votes(lines)
    if not votes:
        return None
    first = votes[0]
    if first[1] >= 2:
        return _solved(data, start, line_end, first[0], flaws)
    for salt, _ in votes:  # one line proves nothing by itself: a header that can be mended does, and so does JSON
        head = _solved(data, start, line_end, salt, flaws)
        if head.header is not None:
            return head
    for text in lines:
        if _is_event(text) and (alone := salt_votes([text])):
            return _solved(data, start, line_end, alone[0][0], flaws)
    return None


def _is_event(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and type(value.get("seq")) is int and isinstance(value.get("payload"), dict)


def _solved(data: bytes, start: int, line_end: int, salt: int, flaws: list[Flaw]) -> Head:
    """Return the head of a segment with a known salt: the header ends where the first line that fits begins."""
    at, fits = line_end, line_end
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        if crc_fits(data[at:end].replace(b"\r\n", b"\n"), salt):
            fits = at
            break
        at = end
    for stop in dict.fromkeys((fits, line_end)):
        header = mend_header(data[start:stop].replace(b"\r\n", b"\n"), salt)
        if header is not None:
            return Head(header, salt, False, stop, flaws=(*flaws, Flaw(start, stop - start, "header", 0)))
    # Where the header ends is not known, so that the scan looks at all of it: a record may hang on its end.
    return Head(None, salt, False, start, flaws=(*flaws, Flaw(start, 0, "header", 0)))
