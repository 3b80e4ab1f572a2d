"""The logs of the golden corpus, by name: the files of a session's directory. Deterministic."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from zlib import crc32

from agentsh.log.frame import CRC_TAIL, encode_event, encode_header, resealed
from agentsh.log.record import Draft, Header
from agentsh.log.segment import closed_name

SESSION = "20261129-k3v9qd"
OPEN = "events.jsonl"
SAMPLE = (Path(__file__).parent / "format1-sample.jsonl").read_bytes().splitlines(keepends=True)
TS = "2026-11-29T16:20:01.118204Z"

Files = dict[str, bytes]
CASES: dict[str, Callable[[], Files]] = {}


def case(make: Callable[[], Files]) -> Callable[[], Files]:
    CASES[make.__name__] = make
    return make


def head(ordinal: int = 0, first_seq: int = 1, *, rescue: bool = False, session: str = SESSION,
         parent: dict[str, object] | None = None, before: bytes | None = None) -> Header:  # fmt: skip
    return encode_header(
        session, ordinal=ordinal, first_seq=first_seq, nonce=f"9c1f5a0be2d4{ordinal:04x}", created=TS,
        by="agentsh 0.1.0", rescue=rescue, parent=parent, prev_sha256=sha256(before).hexdigest() if before else None,
    )  # fmt: skip


def some(header: Header, first: int = 1, last: int = 17) -> list[bytes]:
    """Return events of the sample, sealed for another segment."""
    return [resealed(line, header.salt) for line in SAMPLE[first : last + 1]]


def event(header: Header, seq: int, kind: str, dur: int, payload: dict[str, object]) -> bytes:
    return encode_event(Draft(kind, TS, payload), seq=seq, dur=dur, salt=header.salt)


def note(header: Header, seq: int, text: str, dur: int = 12) -> bytes:
    return event(header, seq, "note", dur, {"text": text})


H = head()
L = some(H)
WHOLE = H.raw + b"".join(L)


def one(data: bytes) -> Files:
    return {OPEN: data}


def sealed(body: bytes, header: Header) -> bytes:
    return body + b',"crc":"%08x"}\n' % crc32(body, header.salt)


def flip(data: bytes, at: int, bit: int = 4) -> bytes:
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


@case
def good_whole() -> Files:
    return one(WHOLE)


@case
def good_header_only() -> Files:
    return one(H.raw)


@case
def good_segments() -> Files:
    first = H.raw + b"".join(L[:8])
    second = head(1, 9, before=first)
    middle = second.raw + b"".join(some(second, 9, 12))
    third = head(2, 13, before=middle)
    return {
        closed_name(0, 1): first, closed_name(1, 9): middle, OPEN: third.raw + b"".join(some(third, 13, 17)),
    }  # fmt: skip


@case
def good_rescue() -> Files:
    rescue = head(1, 13, rescue=True)
    torn = b"".join(L[:14])[:-60]
    return {closed_name(0, 1): H.raw + torn, OPEN: rescue.raw + b"".join(some(rescue, 13, 17))}


@case
def good_fork() -> Files:
    parent = head(session="20261128-0dvr4t")
    before = parent.raw + b"".join(some(parent, 1, 8))
    link = {"session": "20261128-0dvr4t", "upto_seq": 8, "upto_bytes": len(before)}
    own = head(1, 9, parent=link)
    return {
        closed_name(0, 1): before + b"".join(some(parent, 9, 17)), OPEN: own.raw + b"".join(some(own, 9, 10)),
    }  # fmt: skip


@case
def good_types_and_members_of_a_newer_version() -> Files:
    body = L[16][:-CRC_TAIL].replace(b'"seq":17', b'"seq":18') + b',"new_member":{"a":[1,2]}'
    return one(WHOLE + sealed(body, H) + event(H, 19, "hologram_shown", 12, {"depth": 3}))


@case
def a06_a36_every_line_separator() -> Files:
    text = "".join(map(chr, [10, 11, 12, 13, 28, 29, 30, 0x85, 0x2028, 0x2029, 0, 0xFEFF, 0x1F600, 0x202E]))
    return one(WHOLE + note(H, 18, f"a{text}b") + event(H, 19, "note", 12, {"text": "k", f"key{text}": text}))


@case
def a09_hook_with_a_line_separator() -> Files:
    payload: dict[str, object] = {"hook": "h", "call": "call_1", "verdict": "annotate", "message": "x\u2028y\u2029z"}
    return one(WHOLE + event(H, 18, "hook_answered", 12, payload))


@case
def a01_garbage_over_the_last_bytes() -> Files:
    return one(WHOLE[:-200] + bytes((n * 37 + 11) % 251 for n in range(200)))


@case
def a02_nul_bytes_at_the_end() -> Files:
    return one(WHOLE + bytes(1728))


@case
def a03_nul_bytes_a_stale_lock_and_a_broken_sidecar() -> Files:
    said = b'{"pid": 4711, "host": "gone", "tty": "/dev/pts/9", "since": "2026-11-29T16:20:01.118204Z"}\n'
    return {OPEN: WHOLE + bytes(900), "lock": said, "meta.json": b""}


@case
def a13_byte_order_mark() -> Files:
    return one(b"\xef\xbb\xbf" + WHOLE)


@case
def a14_a_doubled_line_and_a_gap() -> Files:
    return one(H.raw + b"".join([*L[:6], L[5], *L[6:9], *L[11:]]))


@case
def a15_a_segment_of_a_newer_format() -> Files:
    newer = head(1, 9).raw.replace(b"agentsh-log/1", b"agentsh-log/2")[:-CRC_TAIL]
    line = newer + b',"crc":"%08x"}\n' % crc32(newer)
    return {closed_name(0, 1): H.raw + b"".join(L[:8]), OPEN: line + b'{"v2":"another frame"}\n'}


@case
def a16_two_writers_tear_one_line() -> Files:
    return one(H.raw + b"".join([*L[:9], L[9][:90], L[10], L[9][90:], *L[11:]]))


@case
def a20_the_last_page_is_gone() -> Files:
    more = [note(H, seq, f"line {seq} " + "x" * 120) for seq in range(18, 60)]
    return one((WHOLE + b"".join(more))[:-4096])


@case
def a30_nul_bytes_in_the_middle() -> Files:
    at = len(H.raw) + sum(map(len, L[:5])) + 40
    return one(WHOLE[:at] + bytes(512) + WHOLE[at + 512 :])


@case
def a31_an_empty_file() -> Files:
    return one(b"")


@case
def no_file_at_all() -> Files:
    return {"lock": b""}


@case
def header_cut_short() -> Files:
    return one(H.raw[:100])


@case
def nothing_reads() -> Files:
    return one(bytes((n * 73 + 5) % 253 for n in range(3000)))


@case
def flipped_bit_in_a_saved_line() -> Files:
    return one(flip(WHOLE, len(H.raw) + sum(map(len, L[:4])) + 60))


@case
def flipped_bit_in_an_unsaved_line() -> Files:
    return one(flip(WHOLE, len(H.raw) + sum(map(len, L[:14])) + 60))


@case
def flipped_letter_case_in_a_crc() -> Files:
    at = next(n for n, line in enumerate(L) if set(line[-11:-3]) & set(b"abcdef"))
    line = L[at][:-11] + L[at][-11:-3].upper() + L[at][-3:]
    return one(H.raw + b"".join([*L[:at], line, *L[at + 1 :]]))


@case
def header_with_one_wrong_byte() -> Files:
    return one(flip(WHOLE, 80))


@case
def header_gone() -> Files:
    return one(b"#!/bin/rubbish\n" + b"".join(L))


@case
def last_line_end_missing() -> Files:
    return one(WHOLE[:-1])


@case
def a_line_end_missing_in_the_middle() -> Files:
    return one(H.raw + b"".join([*L[:4], L[4][:-1], *L[5:]]))


@case
def a_record_glued_behind_half_of_one() -> Files:
    return one(H.raw + b"".join([*L[:7], L[7][:55], *L[8:]]))


@case
def swapped_lines() -> Files:
    return one(H.raw + b"".join([*L[:5], L[6], L[5], *L[7:]]))


@case
def a_line_that_comes_too_late() -> Files:
    more = [note(H, seq, f"line {seq}") for seq in range(18, 120)]
    return one(H.raw + b"".join([*L[:5], *L[6:], *more[:90], L[5], *more[90:]]))


@case
def lines_of_another_log() -> Files:
    other = head(session="20261101-zzzzzz")
    return one(H.raw + b"".join([*L[:9], other.raw, *some(other, 9, 11), *L[9:]]))


@case
def header_of_another_session() -> Files:
    other = head(session="20261101-zzzzzz")
    return one(other.raw + b"".join(some(other)))


@case
def c61_two_writers_with_one_seq() -> Files:
    mine = [note(H, seq, f"mine {seq}") for seq in (18, 19, 20)]
    opened = event(H, 18, "opened", 12, {"epoch": 2, "version": "0.1.0", "host": "b"})
    return one(WHOLE + b"".join([*mine, opened, note(H, 19, "yours 19")]))


@case
def crlf() -> Files:
    return one(WHOLE.replace(b"\n", b"\r\n"))


@case
def blank_lines() -> Files:
    return one(H.raw + b"\n".join(L))


@case
def no_open_segment() -> Files:
    return {closed_name(0, 1): WHOLE}


@case
def an_unfinished_rescue() -> Files:
    rescue = head(1, 13, rescue=True)
    return {OPEN: WHOLE, "events.jsonl.new": rescue.raw + some(rescue, 13, 13)[0][:70]}


@case
def a_rescue_whose_header_is_damaged() -> Files:
    rescue = head(1, 13, rescue=True)
    return {closed_name(0, 1): H.raw + b"".join(L[:14]), OPEN: b"?\n" + b"".join(some(rescue, 13, 17))}


@case
def a_closed_segment_that_ends_in_half_a_line() -> Files:
    second = head(1, 11)
    return {
        closed_name(0, 1): H.raw + b"".join(L[:9]) + L[9][:33], OPEN: second.raw + b"".join(some(second, 11, 17)),
    }  # fmt: skip


@case
def a_segment_that_is_not_the_one_that_was_closed() -> Files:
    files = good_segments()
    other = [resealed(L[0][:-CRC_TAIL].replace(b"gpt-5", b"gpt-6") + L[0][-CRC_TAIL:], H.salt), *L[1:8]]
    return {**files, closed_name(0, 1): H.raw + b"".join(other)}


@case
def a_missing_segment() -> Files:
    files = good_segments()
    del files[closed_name(1, 9)]
    return files


@case
def a_payload_that_is_no_json() -> Files:
    body = L[4][:-CRC_TAIL].replace(b'"payload":{', b'"payload":{bad')
    return one(H.raw + b"".join([*L[:4], sealed(body, H), *L[5:]]))


@case
def a_line_without_a_seq() -> Files:
    return one(H.raw + b"".join([*L[:4], sealed(b'{"hello":"world"', H), *L[4:]]))


@case
def a_dur_that_goes_back() -> Files:
    return one(WHOLE + note(H, 18, "x", 3) + note(H, 19, "y", 12))
