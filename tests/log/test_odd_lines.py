"""Lines that hold and say odd things: of what is durable no more than there is, nothing that steers a terminal."""

from zlib import crc32

import pytest

from agentsh.log.frame import with_crc
from agentsh.log.scan import to_record
from tests.log.logs import TS, header, kinds, line, lines, scan_of

HEAD = header()
HEADER = HEAD.raw


@pytest.mark.parametrize(
    ("said", "payload", "durable"),
    [
        ("39", "{}", 39), ("39", "[]", 39), ('39,"cause":9223372036854775807', "{}", 39), ("40", "{}", 39),
        ("999999999999999999", "{}", 39), ("99999999999999999999", "{}", 39), ("1e999", "{}", 0), ("NaN", "{}", 0),
        ('"39"', "{}", 0),
    ],
)  # fmt: skip
def test_the_last_line_tells_it_in_any_form(said: str, payload: str, durable: int) -> None:
    odd = with_crc(f'{{"seq":40,"ts":"{TS}","type":"note","dur":{said},"payload":{payload}', HEAD.salt)
    found, scan = scan_of(HEAD.raw + b"".join(lines(HEAD, 1, 39)) + odd)
    assert len(found) == 40
    assert scan.durable_seq == durable


@pytest.mark.parametrize(
    ("ts", "behind"),
    [
        ("\\u001b[31m2026\\u202e", ""), ("\x1b[31m2026\u202e", ""),
        ("\\u001b[31m2026\\u202e", ',"cause":9223372036854775807'),
    ],
)  # fmt: skip
def test_a_time_stamp_steers_no_terminal(ts: str, behind: str) -> None:
    made = with_crc(f'{{"seq":1,"ts":"{ts}","type":"note","dur":0{behind},"payload":{{}}', HEAD.salt)
    record = to_record(made)
    assert record.ts == "2026"
    assert record.raw == made


@pytest.mark.parametrize(("seq", "dur"), [("1", "1e999"), ("1e999", "0"), ("NaN", "0")])
def test_a_number_that_is_none_makes_a_record_that_says_so(seq: str, dur: str) -> None:
    made = with_crc(f'{{"seq":{seq},"ts":"{TS}","type":"note","dur":{dur},"payload":{{}}', HEAD.salt)
    record = to_record(made)
    assert list(record.payload) == ["unreadable"]
    assert record.raw == made


@pytest.mark.parametrize("parent", ['"x"', "[]", "5"])
def test_a_header_with_a_parent_that_is_none_is_a_damaged_one(parent: str) -> None:
    """It holds. But one such log was enough for `ls` to show none of the others."""
    text = HEADER.decode().rpartition(',"crc":')[0].replace('"parent":null', f'"parent":{parent}')
    made = with_crc(text, 0)
    found, scan = scan_of(made + b"".join(line(n, crc32(made)) for n in range(1, 10)))
    assert [seq for seq, _ in found] == list(range(1, 10))
    assert kinds(scan)[0] == "header"
