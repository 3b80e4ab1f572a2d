"""Sealed segments are files of the zstd seekable format, which anybody can read without agentsh."""

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agentsh.log.seekable import Description, Packer, pieces, read_description, read_table, seek_table, table_bytes
from agentsh.log.segment import SEALED, closed_name
from tests.log.logs import DIR
from tests.log.sealed_logs import FRAME, seal_all, segment, three_segments, unpacked

_, RAW = segment(0, 1, 20)


def sealed() -> bytes:
    disk = three_segments()
    seal_all(disk)
    return disk.data(f"{DIR}/{closed_name(0, 1)}{SEALED}")


def entries(packed: bytes) -> list[tuple[int, int]]:
    """Read the seek table by the public description alone."""
    count, descriptor, magic = struct.unpack("<IBI", packed[-9:])
    assert (descriptor, magic) == (0, 0x8F92EAB1)
    table = packed[-(8 + 8 * count + 9) :]
    assert struct.unpack("<II", table[:8]) == (0x184D2A5E, len(table) - 8)
    return [struct.unpack_from("<II", table, 8 + 8 * n) for n in range(count)]


def test_the_table_leads_to_each_frame() -> None:
    packed, at, content = sealed(), 0, b""
    found = entries(packed)
    assert len(found) > 4
    for size, raw_size in found[:-1]:
        frame = packed[at : at + size]
        known = zstandard.get_frame_parameters(frame)
        assert (known.has_checksum, known.content_size) == (True, raw_size)
        piece = zstandard.ZstdDecompressor().decompress(frame)
        assert piece.endswith(b"\n")
        assert len(piece) <= FRAME
        content += piece
        at += size
    assert content == RAW
    size, raw_size = found[-1]  # our own description, which is passed over
    assert raw_size == 0
    assert struct.unpack_from("<II", packed, at) == (0x184D2A50, size - 8)
    about = json.loads(packed[at + 8 : at + size])
    assert (about["first_seq"], about["last_seq"], about["raw_bytes"]) == (1, 20, len(RAW))
    assert about["frames"][0] == 1
    assert len(about["frames"]) == len(found) - 1
    assert about["header"].encode() + b"\n" == RAW[: RAW.index(b"\n") + 1]


def test_zstandard_reads_the_exact_bytes_across_the_frames() -> None:
    assert unpacked(sealed()) == RAW


@pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd command")
def test_the_zstd_command_prints_the_exact_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(sealed())
    assert subprocess.check_output(["zstd", "-dc", str(path)]) == RAW
    subprocess.run(["zstd", "-tq", str(path)], check=True)


def test_a_reader_of_the_standard_format_without_the_table_fits_it() -> None:
    table = seek_table([(10, 100), (7, 0)])
    assert table_bytes(table, len(table) + 17) == len(table)
    assert table_bytes(table[-9:], len(table) + 17) == len(table)
    assert read_table(table, len(table) + 17) == [(0, 10, 100), (10, 7, 0)]
    assert read_table(table, len(table) + 16) is None
    assert table_bytes(table, len(table) - 1) is None
    for place in range(len(table)):
        hit = bytearray(table)
        hit[place] ^= 0x40
        length = table_bytes(bytes(hit), len(table) + 17)
        said = None if length != len(table) else read_table(bytes(hit), len(table) + 17)
        assert said is None or [span.size for span in said] == [10, 7]  # the content's sizes are checked elsewhere


def test_the_description_comes_back_and_says_when_it_was_hit() -> None:
    about = Description(3, 10, 99, 12345, "ab" * 32, (10, 50), b'{"x":"y"}\n')
    end = Packer().end(about)
    size = 8 + struct.unpack_from("<I", end, 4)[0]
    assert read_description(end[:size]) == about
    for place in range(size):
        hit = bytearray(end[:size])
        hit[place] ^= 1
        assert read_description(bytes(hit)) is None, place


def test_the_import_costs_nothing_until_it_is_used() -> None:
    code = "import sys, agentsh.stores.jsonl; sys.exit('zstandard' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(st.binary(max_size=60), max_size=40), st.integers(1, 100), st.integers(1, 50))
def test_pieces_end_at_line_ends_and_are_the_whole(parts: list[bytes], size: int, chunk: int) -> None:
    data = b"\n".join(parts)
    found = list(pieces((data[n : n + chunk] for n in range(0, len(data), chunk)), size))
    assert b"".join(found) == data
    assert all(piece.endswith(b"\n") for piece in found[:-1])
    assert all(len(piece) <= size or piece.count(b"\n") <= 1 for piece in found)
