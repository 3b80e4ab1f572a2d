"""Verify and repair of logs that are part sealed, part closed, part open, part rescue: as good as of plain ones."""

from hashlib import sha256
from pathlib import Path

import pytest

from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_header
from agentsh.log.record import Header
from agentsh.log.seal import seal_closed
from agentsh.log.sealed import SealedFile
from agentsh.log.seekable import Packer, pieces
from agentsh.log.segment import closed_name
from agentsh.stores.marks import Marks
from agentsh.stores.session_check import Finding
from agentsh.stores.verify import Verifier
from tests.log.logs import SESSION, TS, header, lines
from tests.log.sealed_logs import unpacked
from tests.stores.test_repair import Place, bodies

FRAME = 700
"""Bytes of content of a frame: about four records."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a log of 100 records: two sealed segments, a closed one, a rescue of its last ten lines, 20 each."""
    place = Place(tmp_path / "sessions")
    before: str | None = None
    for ordinal, first in enumerate((1, 21, 41)):
        head = head_of(ordinal, first, before)
        data = head.raw + b"".join(lines(head, first, first + 19))
        place.put(data, closed_name(ordinal, first))
        before = sha256(data).hexdigest()
    rescue = header(3, 51, rescue=True)
    place.put(rescue.raw + b"".join(lines(rescue, 51, 100)))
    seal_closed(RealFiles(), str(place.directory), SESSION, below=2, min_bytes=0, frame_bytes=FRAME)
    assert sealed(place, 0).exists()
    assert sealed(place, 1).exists()
    assert (place.directory / closed_name(2, 41)).exists()
    return place


def head_of(ordinal: int, first: int, before: str | None) -> Header:
    return encode_header(
        SESSION, ordinal=ordinal, first_seq=first, nonce=f"{ordinal:016x}", created=TS, by="t", prev_sha256=before
    )


def sealed(place: Place, ordinal: int) -> Path:
    return place.directory / (closed_name(ordinal, ordinal * 20 + 1) + ".zst")


def verified(place: Place, *, jobs: int = 1, marks: Marks | None = None, incremental: bool = False) -> Finding:
    (found,) = Verifier(str(place.root), None, jobs=jobs, marks=marks, incremental=incremental).check([SESSION])
    return found


def flip(path: Path, at: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])


def hole(place: Place) -> None:
    """Change a byte in the middle of the second frame of the first segment."""
    flip(sealed(place, 0), sealed(place, 0).read_bytes().find(b"\x28\xb5\x2f\xfd", 1) + 40)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mixed_log_is_whole(place: Place, jobs: int) -> None:
    found = verified(place, jobs=jobs)
    assert (found.ok, found.records, found.last_seq) == (True, 100, 100)
    assert found.damages == ()


def test_sealed_segments_are_checked_the_quick_way(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rescue needs the ordinary way, which knows what supersedes what; without it nothing does."""
    place.log.unlink()
    head = head_of(3, 61, sha256((place.directory / closed_name(2, 41)).read_bytes()).hexdigest())
    place.put(head.raw + b"".join(lines(head, 61, 80)))
    monkeypatch.setattr("agentsh.stores.session_check._survey", None)
    found = verified(place)
    assert (found.ok, found.records) == (True, 80)
    assert found.checked_bytes > sealed(place, 0).stat().st_size + sealed(place, 1).stat().st_size


def test_every_flip_in_a_sealed_segment_is_seen(place: Place) -> None:
    """Each byte: frames, description, table. Readers get along with damage in the last two; `verify` tells it.

    A few bits of zstd's own format mean nothing: with one of them changed the content is still the same.
    """
    path = sealed(place, 0)
    whole = path.read_bytes()
    raw, idle = unpacked(whole), 0
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        found = verified(place)
        if found.ok:
            assert unpacked(path.read_bytes()) == raw, at
            idle += 1
            continue
        assert {d.kind for d in found.damages} <= {"sealed", "header"}, at
        assert found.records >= 80
    assert idle < 20
    path.write_bytes(whole)
    assert verified(place).ok


def test_a_sealed_segment_that_was_cut_short(place: Place) -> None:
    whole = sealed(place, 0).read_bytes()
    for size in (0, 1, 300, len(whole) // 2, len(whole) - 40, len(whole) - 1):
        sealed(place, 0).write_bytes(whole[:size])
        assert not verified(place).ok, size


def test_a_description_that_does_not_fit_its_content(place: Place) -> None:
    """Each frame and every line holds, but what is said of them is of another segment, or sends seekers astray."""
    raw = unpacked(sealed(place, 0).read_bytes())
    file = RealFiles()
    for change in ({"raw_sha256": "0" * 64}, {"last_seq": 19}, {"frames": "moved"}):
        packer, parts = Packer(), list(pieces([raw], FRAME))
        data = b"".join(packer.frame(part) for part in parts)
        fd = file.open(str(sealed(place, 0)), 0)
        try:
            about = SealedFile(file, fd).description
        finally:
            file.close(fd)
        assert about is not None
        moved = about._replace(frames=(1, *(n + 1 for n in about.frames[1:])))
        said = moved if "frames" in change else about._replace(**change)
        kept = sealed(place, 0).read_bytes()
        sealed(place, 0).write_bytes(data + packer.end(said))
        kinds = [d.kind for d in verified(place).damages]
        sealed(place, 0).write_bytes(kept)
        assert "sealed" in kinds, change


def test_another_sealed_segment_in_its_place(place: Place, tmp_path: Path) -> None:
    """It is whole in itself; only the hash in the next header tells."""
    other = Place(tmp_path / "other")
    head = head_of(0, 1, None)
    other.put(head.raw + b"".join(lines(head, 1, 20, behind=2)), closed_name(0, 1))
    second = head_of(1, 21, None)
    other.put(second.raw + b"".join(lines(second, 21, 40)))
    seal_closed(RealFiles(), str(other.directory), SESSION, below=1, min_bytes=0, frame_bytes=FRAME)
    sealed(place, 0).write_bytes(sealed(other, 0).read_bytes())
    place.log.unlink()
    last = head_of(3, 61, None)
    place.put(last.raw + b"".join(lines(last, 61, 62)))
    assert [(d.kind, d.where) for d in verified(place).damages] == [("chain", "000001:0")]


def test_marks_cover_sealed_segments(place: Place, tmp_path: Path) -> None:
    place.log.unlink()
    last = head_of(3, 61, None)
    place.put(last.raw + b"".join(lines(last, 61, 62)))
    marks = Marks(tmp_path / "verified.json")
    assert verified(place, marks=marks).checked_bytes > 0
    marks.save()
    again = verified(place, marks=Marks(tmp_path / "verified.json"), incremental=True)
    assert (again.ok, again.records, again.checked_bytes) == (True, 62, 0)
    with place.log.open("ab") as file:
        file.write(lines(last, 63, 63)[0])
    again = verified(place, marks=Marks(tmp_path / "verified.json"), incremental=True)
    assert (again.records, again.checked_bytes) == (63, len(lines(last, 63, 63)[0]))
    path = sealed(place, 1)  # sealed anew, as bytes that differ: another file
    data = path.read_bytes()
    path.rename(path.with_suffix(".old"))
    path.write_bytes(data[:200] + b"?" + data[201:])
    path.with_suffix(".old").unlink()
    assert not verified(place, marks=Marks(tmp_path / "verified.json"), incremental=True).ok


def test_repair_of_a_lost_frame_keeps_everything_else(place: Place) -> None:
    before = bodies(place.records())
    assert len(before) == 100
    hole(place)
    assert [d.kind for d in verified(place).damages] == ["sealed"]
    left = bodies(place.records())
    lost = set(before) - set(left)
    assert 0 < len(lost) < 8
    original = sealed(place, 0).read_bytes()
    done = place.repair()
    assert done is not None
    found = verified(place)
    assert (found.ok, found.remarks) == (True, ())
    after = bodies(place.records())
    assert {seq: after[seq] for seq in left} == left
    assert sorted(after) == list(range(1, 102)), "fillers for what is lost, and the report"
    assert original in place.kept()
    assert place.goes_on() == 102


def test_repair_begins_at_the_first_damaged_segment(place: Place) -> None:
    """What lies sealed before it stays as it is."""
    first = sealed(place, 0).read_bytes()
    data = sealed(place, 1).read_bytes()
    flip(sealed(place, 1), len(data) - 60)
    before = bodies(place.records())
    assert len(before) == 100
    assert place.repair() is not None
    assert sealed(place, 0).read_bytes() == first
    assert not sealed(place, 1).exists()
    after = bodies(place.records())
    assert {seq: after[seq] for seq in before} == before
    assert verified(place).ok


def test_repair_of_a_fork_of_sealed_segments(place: Place) -> None:
    """`upto_bytes` counts content, never the packed bytes."""
    raw = unpacked(sealed(place, 1).read_bytes())
    upto = raw.index(b'{"seq":31,')
    for name in (closed_name(2, 41), "events.jsonl"):
        (place.directory / name).unlink()
    parent = {"session": "20261129-parent", "upto_seq": 30, "upto_bytes": upto}
    head = encode_header(
        SESSION, ordinal=2, first_seq=31, nonce="f" * 16, created=TS, by="t", parent=parent,
    )  # fmt: skip
    own = lines(head, 31, 40)
    place.put(head.raw + b"".join(own[:4]) + b"?" + b"".join(own[4:]))
    before = bodies(place.records())
    assert sorted(before) == list(range(1, 41))
    assert place.repair() is not None
    assert verified(place).ok
    after = bodies(place.records())
    assert {seq: after[seq] for seq in before} == before
    assert place.goes_on() == 42
