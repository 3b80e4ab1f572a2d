"""The scanner loses no record that can be read, believes none that was changed, and tells every damage."""

import random

import pytest

from agentsh.log.head import read_head
from agentsh.log.scan import MAX_SCAN_LINE, Flaw, SegmentScan, to_record
from agentsh.log.segment import closed_name
from tests.log.disks import MemFiles
from tests.log.logs import DIR, LOG, header, kinds, line, lines, scan_of, scanned

HEAD = header()
LINES = lines(HEAD, 1, 40)
WHOLE = HEAD.raw + b"".join(LINES)
TEXTS = [(seq, text[:-1]) for seq, text in enumerate(LINES, 1)]


def without(*seqs: int) -> list[tuple[int, bytes]]:
    return [pair for pair in TEXTS if pair[0] not in seqs]


def test_a_whole_log() -> None:
    found, scan = scan_of(WHOLE)
    assert found == TEXTS
    assert (scan.last_seq, scan.durable_seq, scan.damages) == (40, 39, [])
    assert scan.last is not None
    assert (scan.last.good_end, scan.last.tail, scan.last.needs_newline) == (len(WHOLE), None, False)


def test_every_truncation() -> None:
    ends = [len(HEAD.raw)]
    for text in LINES:
        ends.append(ends[-1] + len(text))
    for size in range(len(WHOLE)):
        found, scan = scan_of(WHOLE[:size])
        whole = sum(end <= size + 1 for end in ends) - 1  # a line that lacks only its newline reads
        assert found == TEXTS[: max(whole, 0)], size
        assert scan.last is not None
        if size + 1 >= ends[0]:
            assert scan.last.good_end == max(end if end <= size else end - 1 for end in ends if end <= size + 1), size
            assert scan.last.needs_newline == (size + 1 in ends), size
            assert not [d for d in scan.damages if not d.harmless], size
            assert (scan.last.tail is None) == (size in ends or size + 1 in ends), size
        else:
            assert scan.last.head.salt is None, size


def quick(data: bytes) -> tuple[list[tuple[int, bytes]], bool]:
    """Return what one segment gives, and whether it says that something is wrong."""
    head = read_head(data)
    scan = SegmentScan(head, [data[head.start :]])
    items = list(scan.items())
    found = [(item[0], item[1]) for item in items if not isinstance(item, Flaw)]
    return found, bool(head.flaws or scan.tail or scan.needs_newline or len(found) < len(items))


@pytest.mark.parametrize("bit", range(8))
def test_every_single_bit_flip(bit: int) -> None:
    """No readable record is lost, none is silently wrong, and each flip is told; in the header too."""
    data = bytearray(WHOLE)
    place = 0
    for hit, text in enumerate([HEAD.raw, *LINES]):
        for at in range(len(text)):
            data[place] ^= 1 << bit
            found, told = quick(bytes(data))
            assert found == (TEXTS if hit == 0 or at == len(text) - 1 else without(hit)), place
            assert told, place
            data[place] ^= 1 << bit
            place += 1


def test_a_flip_is_told_as_what_it_is() -> None:
    place = len(HEAD.raw)
    for hit, text in enumerate(LINES[:-1], 1):
        data = bytearray(WHOLE)
        data[place + hit * 2] ^= 4
        found, scan = scan_of(bytes(data))
        assert found == without(hit)
        assert [(d.after_seq, d.rot, d.harmless) for d in scan.damages] == [(hit - 1, True, False)]
        place += len(text)


def test_random_damage_never_makes_up_a_record() -> None:
    dice = random.Random(7)
    for _ in range(300):
        data = bytearray(WHOLE)
        for _ in range(dice.randint(1, 6)):
            at, size = dice.randrange(len(data)), dice.choice([1, 1, 3, 50, 400])
            how = dice.randrange(4)
            piece = data[at : at + size]
            if how == 0:
                data[at : at + size] = dice.randbytes(len(piece))
            elif how == 1:
                del data[at : at + size]
            elif how == 2:
                data[at:at] = piece
            else:
                data[at : at + size] = bytes(len(piece))
        found, _ = scan_of(bytes(data))
        assert set(found) <= set(TEXTS)
        assert [seq for seq, _ in found] == sorted({seq for seq, _ in found})


def test_nothing_and_nothing_but_nuls() -> None:
    for data in (b"", b"\n", bytes(1728), b"garbage\n" * 3, b"\xff" * 5000, HEAD.raw[:50]):
        found, scan = scan_of(data)
        assert found == []
        assert scan.last is not None
        assert scan.last.head.salt is None


@pytest.mark.parametrize(
    "tail", [bytes(1728), b"{", b"\n\n{\n", b"garbage", b"\0\n\0\n", LINES[0][:50], b"\xff\xfe\n" * 9, b" \t"]
)
def test_a_tail_is_cut_and_no_more(tail: bytes) -> None:
    found, scan = scan_of(WHOLE + tail)
    assert found == TEXTS
    assert scan.last is not None
    blank = len(tail) - len(tail.lstrip(b"\n"))
    assert scan.last.good_end == len(WHOLE) + blank
    assert scan.last.tail is not None
    assert scan.last.tail.bytes == len(tail) - blank
    assert [d for d in scan.damages if not d.harmless] == []


def test_a_record_without_newline_before_garbage_is_kept() -> None:
    for junk in (bytes(100), b"\0\n", b"{"):
        found, scan = scan_of(WHOLE[:-1] + junk)
        assert found == TEXTS
        assert scan.last is not None
        assert (scan.last.good_end, scan.last.needs_newline) == (len(WHOLE) - 1, True)


def test_bom_crlf_and_blank_lines_are_read() -> None:
    for data, kind in (
        (b"\xef\xbb\xbf" + WHOLE, "bom"),
        (WHOLE.replace(b"\n", b"\r\n"), "crlf"),
        (WHOLE.replace(b"\n", b"\n\n"), "blank"),
        (b"\n \n" + WHOLE, "blank"),
        (b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r\n\r\n"), "bom"),
        (HEAD.raw + b"\xef\xbb\xbf" + WHOLE[len(HEAD.raw) :], "bom"),
    ):
        found, scan = scan_of(data)
        assert found == TEXTS, kind
        assert kind in kinds(scan)
        assert all(d.harmless for d in scan.damages)
        assert scan.last is not None
        assert (scan.last.tail, scan.last.good_end) == (None, len(data))


def test_a_record_glued_behind_half_of_one() -> None:
    for half in (1, 20, 60, len(LINES[20]) - 1):
        data = HEAD.raw + b"".join(LINES[:20]) + LINES[20][:half] + b"".join(LINES[21:])
        found, scan = scan_of(data)
        assert found == (without(21) if half < len(LINES[20]) - 1 else TEXTS)
        assert len(scan.damages) == 1


def test_two_writers_tear_one_line() -> None:
    data = HEAD.raw + b"".join(LINES[:20]) + LINES[20][:40] + LINES[21] + LINES[20][40:] + b"".join(LINES[22:])
    found, scan = scan_of(data)
    assert found == without(21)
    assert not scan.conflict


def test_missing_lines_are_told_with_what_they_were() -> None:
    found, scan = scan_of(HEAD.raw + b"".join(LINES[:9] + LINES[12:]))
    assert found == without(10, 11, 12)
    assert [(d.kind, d.after_seq, d.rot) for d in scan.damages] == [("gap", 9, True)]
    unsynced = lines(HEAD, 1, 40, behind=50)
    _, scan = scan_of(HEAD.raw + b"".join(unsynced[:9] + unsynced[12:]))
    assert [(d.kind, d.after_seq, d.rot) for d in scan.damages] == [("gap", 9, False)]


def test_the_first_lines_missing() -> None:
    found, scan = scan_of(HEAD.raw + b"".join(LINES[5:]))
    assert found == without(1, 2, 3, 4, 5)
    assert [(d.kind, d.after_seq) for d in scan.damages] == [("gap", 0)]


def test_a_doubled_line_is_read_once() -> None:
    data = HEAD.raw + b"".join(LINES[:10]) + LINES[9] + LINES[3] + b"".join(LINES[10:])
    found, scan = scan_of(data)
    assert found == TEXTS
    assert kinds(scan) == ["doubled", "doubled"]
    assert not scan.conflict


def test_swapped_lines_are_put_in_order() -> None:
    data = HEAD.raw + b"".join(
        [*LINES[:9], LINES[10], LINES[9], *LINES[11:20], LINES[25], *LINES[20:25], *LINES[26:]]
    )
    found, scan = scan_of(data)
    assert found == TEXTS
    assert not scan.conflict


def test_two_lines_with_one_seq_are_a_conflict() -> None:
    other = line(20, HEAD.salt, text="somebody else")
    found, scan = scan_of(HEAD.raw + b"".join(LINES[:20]) + other + b"".join(LINES[20:]))
    assert found == TEXTS
    assert scan.conflict
    assert kinds(scan) == ["conflict"]


def test_foreign_lines_are_told_and_not_believed() -> None:
    foreign = header(session="20261129-000000")
    strangers = [foreign.raw, *lines(foreign, 11, 13)]
    found, scan = scan_of(HEAD.raw + b"".join([*LINES[:10], *strangers, *LINES[10:]]))
    assert found == TEXTS
    assert [(d.kind, d.bytes) for d in scan.damages] == [("foreign", sum(map(len, strangers)))]
    found, scan = scan_of(HEAD.raw + b"".join([*LINES[:10], *strangers[1:], *LINES[10:]]))
    assert found == TEXTS
    assert kinds(scan) == ["crc"]


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_a_header_beyond_repair_costs_no_line(count: int) -> None:
    for junk in (b"\n", b"rubbish\n", bytes(len(HEAD.raw) - 1) + b"\n", HEAD.raw[10:], b"{" * 300 + b"\n"):
        found, scan = scan_of(junk + b"".join(LINES[:count]))
        assert found == TEXTS[:count], junk
        assert "header" in kinds(scan)


def test_a_header_with_one_wrong_byte_is_known_again() -> None:
    data = bytearray(WHOLE)
    data[120] ^= 0x5A
    found, scan = scan_of(bytes(data))
    assert found == TEXTS
    assert scan.last is not None
    assert scan.last.head.header == HEAD
    assert not scan.last.head.intact


def test_a_page_of_nuls_in_the_middle() -> None:
    data = bytearray(WHOLE)
    data[2000:3000] = bytes(1000)
    found, scan = scan_of(bytes(data))
    assert len(scan.damages) == 1
    assert scan.damages[0].rot
    missing = sorted({seq for seq, _ in TEXTS} - {seq for seq, _ in found})
    assert missing == list(range(missing[0], missing[-1] + 1))
    assert len(missing) <= 1000 // len(LINES[20]) + 2


def test_a_hole_larger_than_any_line_and_a_record_behind_it() -> None:
    hole = bytes(MAX_SCAN_LINE * 2 + 5)
    found, scan = scan_of(HEAD.raw + b"".join(LINES[:20]) + hole + b"".join(LINES[20:]))
    assert found == TEXTS
    assert [(d.kind, d.bytes) for d in scan.damages] == [("nul", len(hole))]
    found, scan = scan_of(WHOLE + hole)
    assert found == TEXTS
    assert scan.last is not None
    assert scan.last.tail is not None
    assert scan.last.tail.bytes == len(hole)


def test_a_session_that_is_another() -> None:
    other = header(session="20261129-000000")
    found, scan = scan_of(other.raw + b"".join(lines(other, 1, 3)))
    assert len(found) == 3
    assert kinds(scan) == ["session"]


def segments(*parts: tuple[str, bytes]) -> MemFiles:
    files = MemFiles()
    for name, data in parts:
        files.put(f"{DIR}/{name}", data)
    return files


def test_segments_follow_one_another() -> None:
    second = header(1, 21)
    found, scan = scanned(
        segments(
            (closed_name(0, 1), HEAD.raw + b"".join(LINES[:20])),
            ("events.jsonl", second.raw + b"".join(lines(second, 21, 30))),
        )
    )
    assert [seq for seq, _ in found] == list(range(1, 31))
    assert (scan.damages, scan.last_seq) == ([], 30)


def test_a_rescue_supersedes_what_came_before() -> None:
    rescue = header(1, 15, rescue=True)
    kept = lines(rescue, 15, 30)
    for torn in (b"", LINES[25][:30], bytes(4000), LINES[15][:10] + b"\n" + b"".join(LINES[17:20])):
        found, scan = scanned(
            segments(
                (closed_name(0, 1), HEAD.raw + b"".join(LINES[:25] if not torn else LINES[:14]) + torn),
                ("events.jsonl", rescue.raw + b"".join(kept)),
            )
        )
        assert found == TEXTS[:14] + [(seq, text[:-1]) for seq, text in enumerate(kept, 15)]
        assert scan.damages == []


def test_a_rescue_whose_header_is_damaged_still_supersedes() -> None:
    rescue = header(1, 15, rescue=True)
    kept = b"".join(lines(rescue, 15, 30))
    for head in (rescue.raw.replace(b"15", b"1\xff"), b"rubbish\n"):
        found, scan = scanned(
            segments((closed_name(0, 1), HEAD.raw + b"".join(LINES[:25])), ("events.jsonl", head + kept))
        )
        assert [seq for seq, _ in found] == list(range(1, 31))
        assert not scan.conflict
        assert "header" in kinds(scan)


def test_the_open_segment_missing() -> None:
    found, scan = scanned(segments((closed_name(0, 1), WHOLE + LINES[0][:9])))
    assert found == TEXTS
    assert scan.open_segment is None
    assert kinds(scan) == ["half"]


def test_a_damaged_closed_segment_is_told() -> None:
    second = header(1, 21)
    found, scan = scanned(
        segments(
            (closed_name(0, 1), HEAD.raw + b"".join(LINES[:19])),
            ("events.jsonl", second.raw + b"".join(lines(second, 21, 30))),
        )
    )
    assert [seq for seq, _ in found] == [*range(1, 20), *range(21, 31)]
    assert [(d.kind, d.after_seq, d.rot) for d in scan.damages] == [("gap", 19, True)]


def test_a_fork_takes_only_its_part_of_the_parent() -> None:
    from agentsh.log.frame import encode_header

    parent = HEAD.raw + b"".join(LINES)
    upto = len(HEAD.raw) + sum(map(len, LINES[:20]))
    child = encode_header(
        "20261130-child0", ordinal=1, first_seq=21, nonce="c" * 16, created="", by="",
        parent={"session": HEAD.session, "upto_seq": 20, "upto_bytes": upto},
    )  # fmt: skip
    files = segments((closed_name(0, 1), parent), ("events.jsonl", child.raw + b"".join(lines(child, 21, 22))))
    from agentsh.log.chain import LogScan

    scan = LogScan(files, DIR, "20261130-child0")
    assert [seq for seq, *_ in scan.entries()] == list(range(1, 23))
    assert scan.damages == []
    scan.close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"seq":1,"ts":"x","type":"note","dur":0,"payload":{"n":' + b"9" * 6000 + b"}",
        b'{"seq":1,"ts":"x","type":"note","dur":0,"payload":{"a":' + b"[" * 9000 + b"}",
        b'{"seq":1,"ts":"x","type":"note","dur":0,"payload":{bad}',
        b'{"seq":1,"ts":"\xff\xfe","type":"note","dur":0,"payload":{}',
        b'{"type":"note","payload":{"x":1},"dur":0,"seq":1,"ts":"x"',
        b'{"seq":1,"ts":"x","type":"n\\u00e9","dur":0,"cause":0,"payload":{"x":1},"new":2',
    ],
)
def test_a_line_that_no_writer_of_ours_makes_never_stops_a_read(body: bytes) -> None:
    from zlib import crc32

    odd = body + b',"crc":"%08x"}\n' % crc32(body, HEAD.salt)
    found, _ = scan_of(HEAD.raw + odd + b"".join(LINES[1:3]))
    assert [seq for seq, _ in found] == [1, 2, 3]
    record = to_record(found[0][1] + b"\n")
    assert record.raw == odd
    assert record.payload
    assert record.seq == 1


def test_a_line_with_no_seq_at_all() -> None:
    from zlib import crc32

    body = b'{"seq":"x","ts":3,"payload":[]'
    found, scan = scan_of(HEAD.raw + body + b',"crc":"%08x"}\n' % crc32(body, HEAD.salt) + b"".join(LINES))
    assert found == TEXTS
    assert kinds(scan) == ["json"]


def test_names_that_are_no_segments_are_passed_over() -> None:
    files = segments(("events.jsonl", WHOLE), ("events.jsonl.bak", b"x"), ("000-1.jsonl", b"x"), ("lock", b""))
    found, scan = scanned(files)
    assert found == TEXTS
    assert scan.damages == []
    assert files.data(LOG) == WHOLE


def test_a_flip_in_the_name_of_the_format_is_no_newer_format() -> None:
    """Found by the crash laboratory, seed 100972: with no record behind it, the session did not open any more."""
    place = HEAD.raw.index(b"-log/") + 5
    for bit in range(8):
        data = bytearray(HEAD.raw)
        data[place] ^= 1 << bit
        _, scan = scan_of(bytes(data))
        assert scan.newer is None, bytes(data[:30])
