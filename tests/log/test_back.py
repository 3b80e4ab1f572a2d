"""A log from its end says what it says from its beginning."""

import pytest

from agentsh.log import back
from agentsh.log.back import newest_first
from agentsh.log.chain import LogScan
from agentsh.log.segment import OPEN_NAME, closed_name
from tests.log.disks import MemFiles
from tests.log.logs import DIR, LOG, SESSION, header, line, lines
from tests.log.sealed_logs import seal_all, three_segments


def backwards(disk: MemFiles) -> list[int]:
    scan = LogScan(disk, DIR, SESSION)
    found = [int(text[7 : text.index(b",")]) for text in newest_first(disk, scan)]
    scan.close()
    return found


@pytest.fixture(params=[1, 7, 300, 1 << 18])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("below", [0, 1, 2])
def test_over_segments_sealed_or_not(below: int) -> None:
    disk = three_segments()
    seal_all(disk, below=below)
    assert backwards(disk) == list(range(60, 0, -1))
    disk.put(LOG, disk.data(LOG)[:-1])
    assert backwards(disk) == list(range(60, 0, -1)), "without its last line end"


@pytest.mark.usefixtures("_blocks")
def test_damage_is_passed_over() -> None:
    disk = three_segments()
    data = disk.data(LOG).replace(b"text 50", b"text 5x") + b'{"seq":61,' + bytes(500)
    disk.put(LOG, data)
    assert backwards(disk) == [n for n in range(60, 0, -1) if n != 50]
    seal_all(disk)
    name = f"{DIR}/{closed_name(1, 21)}.zst"
    disk.nodes[name].data[100] ^= 1
    found = backwards(disk)
    assert found[:9] == list(range(60, 51, -1))
    assert found == sorted(set(found), reverse=True)
    disk.put(LOG, b"")
    assert backwards(disk)[0] == 40


def test_what_was_superseded_is_not_shown() -> None:
    disk = three_segments()
    disk.rename(LOG, f"{DIR}/{closed_name(2, 41)}")
    rescue = header(3, 55, rescue=True)
    disk.put(LOG, rescue.raw + b"".join(lines(rescue, 55, 57)))
    assert backwards(disk) == list(range(57, 0, -1))


def test_a_line_twice_or_late_is_shown_once_at_most() -> None:
    head = header()
    disk = MemFiles()
    text = lines(head, 1, 9)
    disk.put(
        f"{DIR}/{OPEN_NAME}",
        head.raw + b"".join([*text[:5], text[4], *text[5:], text[2], line(9, head.salt, text="another")]),
    )
    assert backwards(disk) == list(range(9, 0, -1))
