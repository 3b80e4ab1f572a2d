"""One line of a log: values to bytes and back, with the crc. Normative: docs/log-format.md.

A line is a JSON object in UTF-8 with its members in a fixed order, no spaces, `crc` last, then LF.
Characters that could split or hide text for some reader are escaped as `\\uXXXX`:
U+0000-001F, 007F-009F, 061C, 200B-200F, 2028-202E, 2060-2069, FEFF and lone surrogates
(with JSON's own short escapes for \\b \\t \\n \\f \\r).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

from agentsh.base.pattern import later
from agentsh.log.record import FORMAT, Draft, Header, Record

CRC_TAIL = len(b',"crc":"00000000"}\n')

_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_PAIRS = later("([\ud800-\udbff])([\udc00-\udfff])")
_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_raw_decode = json.JSONDecoder().raw_decode


class BadLine(ValueError):
    """A line that is no record; the message says why in a few words."""


def _join_pair(match: re.Match[str]) -> str:
    high, low = (ord(c) for c in match.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def dump_json(value: Any) -> str:
    """Return `value` as the log writes JSON: one physical line for every reader, harmless to `cat`.

    Raises:
        ValueError: the value holds NaN, an infinity, or something that JSON has no form for.
        TypeError: likewise, for foreign types.
    """
    text = _dumps(value)
    if text.isascii() and "\x7f" not in text:  # the usual case, without a look at each character
        return text
    if _ESCAPED.search(text) is None:
        return text
    # Two surrogates in a row are one character; kept apart they would be read back as one anyway.
    return _ESCAPED.sub(lambda m: f"\\u{ord(m[0]):04x}", _PAIRS.sub(_join_pair, text))


def with_crc(body: str, salt: int) -> bytes:
    """Return the line for an object that lacks its end: the crc of what is there, the brace, and the LF."""
    return _ended(body.encode(), salt)


def _ended(body: bytes, salt: int) -> bytes:
    return body + b',"crc":"%08x"}\n' % crc32(body, salt)


def encode_event(draft: Draft, *, seq: int, dur: int, salt: int) -> bytes:
    """Return the line for `draft`, LF included."""
    cause = "" if draft.cause is None else f',"cause":{draft.cause}'
    payload = dump_json(dict(draft.payload))
    return with_crc(
        f'{{"seq":{seq},"ts":"{draft.ts}","type":{dump_json(draft.type)},"dur":{dur}{cause},"payload":{payload}', salt
    )


class Ready(NamedTuple):
    """A draft whose line lacks only what the writer adds: everything that takes long, done before its turn comes.

    head, tail: what stands in the line before `dur` and behind it. type, payload: as any reader will read them.
    """

    draft: Draft
    head: bytes
    tail: bytes
    type: str
    payload: Mapping[str, Any]


def make_ready(draft: Draft, payload: str) -> Ready:
    """Return a draft made ready. payload: as JSON.

    Raises:
        BadLine: no reader would take it for a record: a time or a cause that is not what it should be.
    """
    ts, kind, cause = draft.ts, draft.type, draft.cause
    if not (_is_plain(ts) and (cause is None or _is_int(cause))):
        raise BadLine(f"a {kind[:80]} with a time or a cause that is none")
    if _is_plain(kind):
        shown = f'"{kind}"'
    else:
        shown = dump_json(kind)
        kind = _raw_decode(shown)[0]
    caused = "" if cause is None else f',"cause":{cause}'
    value = _raw_decode(payload)[0]
    head, tail = f'"ts":"{ts}","type":{shown}', f'{caused},"payload":{payload}'
    return Ready(draft, head.encode(), tail.encode(), kind, value)


def encode_ready(ready: Ready, seq: int, dur: int, salt: int) -> Record:
    """Return the record of a draft that is ready, with its line: what any reader makes of that."""
    draft, head, tail, kind, payload = ready
    start = b'{"seq":%d,%b,"dur":%d' % (seq, head, dur)  # short; the rest is copied once
    line = b'%b%b,"crc":"%08x"}\n' % (start, tail, crc32(tail, crc32(start, salt)))
    return Record(seq, draft.ts, kind, dur, draft.cause, payload, line)


def _is_plain(text: str) -> bool:
    """Tell whether a text stands in JSON as itself."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def encode_header(
    session: str,
    *,
    ordinal: int,
    first_seq: int,
    nonce: str,
    created: str,
    by: str,
    rescue: bool = False,
    parent: Mapping[str, Any] | None = None,
    prev_sha256: str | None = None,
) -> Header:
    """Return the header of a segment; its `raw` is the line. nonce: 16 random lower-case hex digits."""
    members = {
        "format": FORMAT, "session": session, "ordinal": ordinal, "first_seq": first_seq, "nonce": nonce,
        "rescue": rescue, "parent": parent, "prev_sha256": prev_sha256, "created": created, "by": by,
    }  # fmt: skip
    raw = with_crc(dump_json(members)[:-1], 0)
    return Header(session, ordinal, first_seq, nonce, rescue, parent, prev_sha256, created, by, raw, crc32(raw))


def resealed(line: bytes, salt: int) -> bytes:
    """Return a line with the crc that it has in another segment."""
    return _ended(line[:-CRC_TAIL], salt)


def crc_fits(line: bytes, salt: int) -> bool:
    """Tell whether `line` (LF included) carries the crc of its own bytes; compares bytes, not numbers."""
    cut = len(line) - CRC_TAIL
    return cut > 0 and line[cut:] == b',"crc":"%08x"}\n' % crc32(line[:cut], salt)


def _load(line: bytes, salt: int) -> dict[str, Any]:
    if not crc_fits(line, salt):
        raise BadLine("the crc does not fit")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadLine("not an object")
    return value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def decode_event(line: bytes, salt: int) -> Record:
    """Return the record on `line` (LF included). Unknown members are kept in `raw`.

    Raises:
        BadLine: the crc, the JSON or the envelope is wrong.
    """
    value = _load(line, salt)
    seq, ts, kind, dur = value.get("seq"), value.get("ts"), value.get("type"), value.get("dur")
    cause, payload = value.get("cause"), value.get("payload")
    if not (
        _is_int(seq) and _is_int(dur) and isinstance(ts, str) and isinstance(kind, str)
        and isinstance(payload, dict) and (cause is None or _is_int(cause))
    ):  # fmt: skip
        raise BadLine("the envelope lacks a member")
    assert isinstance(seq, int) and isinstance(dur, int)
    return Record(seq, ts, kind, dur, cause, payload, line)


def decode_header(line: bytes) -> Header:
    """Return the header on `line` (LF included).

    Raises:
        BadLine: the line is no header, or is damaged.
    """
    value = _load(line, 0)
    try:
        header = Header(
            value["session"], value["ordinal"], value["first_seq"], value["nonce"], value["rescue"],
            value["parent"], value["prev_sha256"], value["created"], value["by"], line, crc32(line),
        )  # fmt: skip
    except KeyError as error:
        raise BadLine(f"the header lacks {error}") from None
    if not str(value.get("format", "")).startswith("agentsh-log/"):
        raise BadLine("not an agentsh log")
    numbers = _is_int(header.ordinal) and _is_int(header.first_seq)
    if not (isinstance(header.session, str) and numbers and isinstance(header.parent, dict | None)):
        raise BadLine("the header's members have wrong types")
    return header


def header_format(line: bytes) -> str | None:
    """Return the format that a header line names, or None where it cannot be read."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = value.get("format") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
