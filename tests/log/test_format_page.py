"""docs/log-format.md is true: its snippets run on the sample, and it names every event type and member."""

import json
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from agentsh.events.union import KINDS
from agentsh.log import packed as archive
from agentsh.log.frame import decode_header
from agentsh.log.parity import BLOCK_BYTES, BLOCKS_IN_A_GROUP, MIN_GROUPS, PARITY_MAGIC
from agentsh.log.roll import SEGMENT_BYTES
from agentsh.log.seekable import (
    DESCRIPTION_MAGIC,
    FOOTER_MAGIC,
    FRAME_BYTES,
    FRAME_START,
    TABLE_MAGIC,
    Description,
    Packer,
)
from agentsh.log.spill import END_BYTES, MAX_LINE_BYTES
from tests.log.archives import packed_log

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "log-format.md").read_text()
SAMPLE = ROOT / "tests" / "golden" / "format1-sample.jsonl"


def test_the_snippets_run(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(SAMPLE.read_bytes())
    reading, checking = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    said = [
        subprocess.check_output([sys.executable, "-c", text], cwd=tmp_path, text=True) for text in (reading, checking)
    ]
    assert len(said[0].splitlines()) == 17
    assert said[1] == "[]\n"


def test_the_header_of_the_page_is_a_header() -> None:
    (line,) = re.findall(r'^\{"format":"agentsh-log.*\}$', PAGE, re.MULTILINE)
    assert decode_header(line.encode() + b"\n").raw == SAMPLE.read_bytes().splitlines(keepends=True)[0]


def test_limits() -> None:
    assert f"**{MAX_LINE_BYTES:,} bytes**" in PAGE
    assert f"at most {END_BYTES} bytes each" in PAGE


def test_every_type_and_member_is_described() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.partition("## Event types")[2], re.MULTILINE))
    assert set(rows) == set(KINDS)
    for name, kind in KINDS.items():
        for member, field in kind.model_fields.items():
            if member != "type":
                shown = f"`{member}`" if field.is_required() else f"*`{member}`*"
                assert shown in rows[name], (name, member)


def test_sealed_segments_are_as_the_page_says() -> None:
    page = PAGE.partition("### Sealed segments")[2].partition("\n## ")[0]
    for magic in (DESCRIPTION_MAGIC, TABLE_MAGIC, FOOTER_MAGIC):
        assert f"0x{magic:08X}" in page
    assert FRAME_START.hex(" ").upper() in page
    assert f"{FRAME_BYTES >> 20} MiB of content each" in page
    assert f"once it has {SEGMENT_BYTES >> 20} MiB" in PAGE
    (line,) = re.findall(r"^\{\"format\":\"agentsh-seal.*$", page, re.MULTILINE)
    shown = list(json.loads(line))
    packed = Packer().end(Description(0, 1, 2, 3, "", (1,), b"{}\n"))
    size = 8 + int.from_bytes(packed[4:8], "little")
    assert list(json.loads(packed[8:size])) == shown


def test_archives_are_as_the_page_says() -> None:
    page = PAGE.partition("### Archives")[2].partition("\n## ")[0]
    for magic in (DESCRIPTION_MAGIC, PARITY_MAGIC):
        assert f"0x{magic:08X}" in page
    assert f"{BLOCK_BYTES} is written" in page
    assert f"a {BLOCKS_IN_A_GROUP}nd of N, at least {MIN_GROUPS}," in page
    (line,) = re.findall(r"^\{\"format\":\"agentsh-archive.*$", page, re.MULTILINE)
    about = archive.Description("", (archive.Member("events.jsonl", 1, ""),), {}, 0, 1, parity=True).packed()
    assert list(json.loads(about[8:])) == list(json.loads(line.replace("{…}", "{}")))


def test_parity_mends_by_the_page_alone() -> None:
    """A reader in a few lines, written from the page."""
    packed = packed_log()
    end = packed[-40:]
    mark, covered, block, groups, crc, own = struct.unpack("<16sQIIII", end)
    assert (mark, own) == (b"agentsh-parity/1", zlib.crc32(end[:36]))
    n = -(-covered // block)
    assert packed[covered:][:8] == struct.pack("<II", 0x184D2A51, 80 + groups * block + 4 * n)
    assert packed[covered + 8 :][:40] == end
    rest = packed[covered + 48 : -40]
    assert zlib.crc32(rest) == crc
    parity, sums = rest[: groups * block], struct.unpack(f"<{n}I", rest[groups * block :])
    blocks = [packed[at : min(at + block, covered)] for at in range(0, covered, block)]
    assert [zlib.crc32(data) for data in blocks] == list(sums)
    for lost in (0, 5, n - 1):
        slot = (lost - n) % groups * block
        found = int.from_bytes(parity[slot : slot + block], "little")
        for other in range(lost % groups, n, groups):
            found ^= int.from_bytes(blocks[other], "little") if other != lost else 0
        assert found.to_bytes(block, "little")[: len(blocks[lost])] == blocks[lost]
