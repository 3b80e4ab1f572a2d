"""What lines say to be durable: nobody waits for a sync of that, so it must never be more than there is."""

import pytest

from agentsh.log.frame import with_crc
from tests.log.logs import TS, header, lines, scan_of

HEAD = header()


@pytest.mark.parametrize(
    ("said", "payload", "durable"),
    [
        ("39", "{}", 39), ("39", "[]", 39), ('39,"cause":9223372036854775807', "{}", 39), ("40", "{}", 39),
        ("999999999999999999", "{}", 39), ("99999999999999999999", "{}", 39), ('"39"', "{}", 0),
    ],
)  # fmt: skip
def test_the_last_line_tells_it_in_any_form(said: str, payload: str, durable: int) -> None:
    odd = with_crc(f'{{"seq":40,"ts":"{TS}","type":"note","dur":{said},"payload":{payload}', HEAD.salt)
    found, scan = scan_of(HEAD.raw + b"".join(lines(HEAD, 1, 39)) + odd)
    assert len(found) == 40
    assert scan.durable_seq == durable
