"""The log that DESIGN shows reads, and encodes again byte for byte: format 1 never changes under anybody's feet."""

from pathlib import Path

from agentsh.log.frame import decode_event, decode_header, encode_event, encode_header
from agentsh.log.record import Draft
from agentsh.log.salt import mend_header, salt_votes
from agentsh.log.scan import peek, to_record
from tests.log.logs import scan_of

SAMPLE = (Path(__file__).parents[1] / "golden" / "format1-sample.jsonl").read_bytes()
LINES = SAMPLE.splitlines(keepends=True)


def test_the_sample_reads_without_a_flaw() -> None:
    found, scan = scan_of(SAMPLE)
    assert [seq for seq, _ in found] == list(range(1, 18))
    assert scan.damages == []
    assert (scan.last_seq, scan.durable_seq) == (17, 12)


def test_the_sample_encodes_again_byte_for_byte() -> None:
    header = decode_header(LINES[0])
    again = encode_header(
        header.session, ordinal=header.ordinal, first_seq=header.first_seq, nonce=header.nonce,
        created=header.created, by=header.by, rescue=header.rescue, parent=header.parent,
        prev_sha256=header.prev_sha256,
    )  # fmt: skip
    assert again == header
    for line in LINES[1:]:
        record = decode_event(line, header.salt)
        draft = Draft(record.type, record.ts, record.payload, record.cause)
        assert encode_event(draft, seq=record.seq, dur=record.dur, salt=header.salt) == line


def test_the_quick_ways_agree_with_the_slow_one() -> None:
    header = decode_header(LINES[0])
    for line in LINES[1:]:
        record = decode_event(line, header.salt)
        assert to_record(line) == record
        assert peek(line) == (record.type.encode(), record.dur)


def test_the_salt_is_solved_from_any_line_and_the_header_from_the_salt() -> None:
    header = decode_header(LINES[0])
    for line in LINES[1:]:
        assert salt_votes([line]) == [(header.salt, 1)]
    damaged = bytearray(LINES[0])
    damaged[77] ^= 0xFF
    assert mend_header(bytes(damaged), header.salt) == header
    damaged[99] ^= 0x01
    assert mend_header(bytes(damaged), header.salt) is None
