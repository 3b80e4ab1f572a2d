"""Any text is one line for every reader, and comes back; any cut of any log gives a part of what was in it."""

import io
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from agentsh.log.frame import decode_event, encode_event
from agentsh.log.record import Draft
from agentsh.log.scan import to_record
from tests.log.logs import TS, header, lines, scan_of

HEAD = header()
ANY = st.text(alphabet=st.characters(exclude_categories=()))  # lone surrogates too
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(ANY, v, max_size=4), max_leaves=12)

DANGEROUS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def joined(text: str) -> str:
    """Return the text as JSON readers have it: two halves of a pair in a row are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@given(text=ANY, key=ANY, kind=ANY)
def test_any_text_is_one_line_and_comes_back(text: str, key: str, kind: str) -> None:
    line = encode_event(Draft(kind, TS, {"text": text, key: text}), seq=1, dur=0, salt=HEAD.salt)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    whole = line.decode()
    assert len(line.splitlines()) == len(whole.splitlines()) == len(io.StringIO(whole).readlines()) == 1
    assert DANGEROUS.search(whole) is None
    record = decode_event(line, HEAD.salt)
    assert record.payload == {"text": joined(text), joined(key): joined(text)}
    assert record.type == joined(kind)
    assert to_record(line) == record
    assert json.loads(whole)["payload"] == record.payload


@given(payload=st.dictionaries(ANY, VALUES, max_size=5), cause=st.none() | st.integers(1, 10**12))
def test_any_value_comes_back_and_encodes_the_same_again(payload: dict[str, object], cause: int | None) -> None:
    line = encode_event(Draft("note", TS, payload, cause), seq=7, dur=3, salt=HEAD.salt)
    record = decode_event(line, HEAD.salt)
    again = encode_event(Draft("note", TS, record.payload, record.cause), seq=7, dur=3, salt=HEAD.salt)
    assert again == line
    assert to_record(line) == record


PIECES = [HEAD.raw, *lines(HEAD, 1, 12), b"", b"\n", b"\r\n", bytes(30), b'{"seq":', b"\xef\xbb\xbf", b"\xff garbage"]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 200), st.integers(0, 200)), max_size=30))
def test_any_mess_reads_as_a_part_of_what_was_written(mess: list[tuple[bytes, int, int]]) -> None:
    data = HEAD.raw + b"".join(
        piece if start + end > 150 else piece[start : len(piece) - end] for piece, start, end in mess
    )
    found, scan = scan_of(data)
    assert {text + b"\n" for _, text in found} <= set(PIECES[1:13])
    assert [seq for seq, _ in found] == sorted({seq for seq, _ in found})
    assert scan.last is not None
    assert 0 <= scan.last.good_end <= scan.last.end == len(data)
