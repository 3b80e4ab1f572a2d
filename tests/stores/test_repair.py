"""Repair loses nothing that reads, keeps the original, happens at one instant, and leaves a log that is whole."""

import asyncio
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.app.repairing import WORDS
from agentsh.base.errors import LogWriteFailed, SessionHeld
from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, write_checkpoint
from agentsh.log.files import FileSystem
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.lease import take
from agentsh.log.record import Draft, Header, Record
from agentsh.log.repair import Plan, Repaired
from agentsh.log.segment import closed_name
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.repair import repairing
from agentsh.stores.session_check import Finding
from agentsh.stores.verify import Verifier
from tests.log.disks import FaultyFiles, UnsyncedFiles
from tests.log.logs import SESSION, TS, header, line, lines

HEAD = header()
LINES = lines(HEAD, 1, 40)
WHOLE = HEAD.raw + b"".join(LINES)


class Place:
    """A directory of sessions with one in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / SESSION
        self.directory.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        return self.directory / "events.jsonl"

    def put(self, data: bytes, name: str = "events.jsonl") -> None:
        (self.directory / name).write_bytes(data)

    def verify(self) -> Finding:
        (found,) = Verifier(str(self.root), None).check([SESSION])
        return found

    def repair(self, files: FileSystem | None = None) -> tuple[Plan, Repaired] | None:
        with repairing(str(self.root), SESSION, WORDS, files=files or UnsyncedFiles()) as repairer:
            plan = repairer.plan()
            return None if plan is None else (plan, repairer.repair(plan))

    def records(self) -> list[Record]:
        return list(self.store().read(SESSION))

    def store(self) -> JsonlStore:
        return JsonlStore(self.root, FileBlobs(self.root.parent / "blobs"), files=UnsyncedFiles())

    def kept(self) -> list[bytes]:
        place = self.directory / "quarantine"
        return [p.read_bytes() for p in sorted(place.iterdir())] if place.is_dir() else []

    def goes_on(self) -> int:
        """Open it as `resume` does and append; return the seq."""

        async def work() -> int:
            opened = await self.store().open(SESSION)
            assert not opened.recovery
            try:
                (record,) = await opened.log.append([Draft("note", TS, {"text": "on"})])
                return record.seq
            finally:
                await opened.log.close()

        return asyncio.run(work())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "sessions")


def bodies(records: list[Record]) -> dict[int, bytes]:
    return {r.seq: r.raw[:-19] for r in records}


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


DAMAGES: dict[str, bytes] = {
    "crc": flipped(WHOLE, 3000),
    "header": flipped(WHOLE, 100),
    "no header": b"rubbish\n" + b"".join(LINES),
    "gap": HEAD.raw + b"".join(LINES[:9] + LINES[12:]),
    "first lines": HEAD.raw + b"".join(LINES[5:]),
    "doubled": HEAD.raw + b"".join(LINES[:10] + LINES[2:10] + LINES[10:]),
    "bom": b"\xef\xbb\xbf" + WHOLE,
    "crlf": WHOLE.replace(b"\n", b"\r\n"),
    "blank": WHOLE.replace(b"\n", b"\n\n"),
    "nul": WHOLE[:2000] + bytes(1728) + WHOLE[2000:],
    "nul tail": WHOLE + bytes(1728),
    "torn": WHOLE[:-50],
    "unended": WHOLE[:-1],
    "glued": HEAD.raw + b"".join(LINES[:20]) + LINES[20][:40] + b"".join(LINES[21:]),
    "dur": HEAD.raw + b"".join(LINES[:9]) + line(10, HEAD.salt, dur=3) + b"".join(LINES[10:]),
    "foreign": HEAD.raw + b"".join(LINES[:9]) + header(7).raw + b"".join(LINES[9:]),
    "nothing reads": random.Random(1).randbytes(5000),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_each_kind_of_damage(place: Place, name: str) -> None:
    place.put(DAMAGES[name])
    before = bodies(place.records())
    found = place.verify()
    assert not found.ok or found.remarks, "verify sees it"
    done = place.repair()
    assert done is not None
    assert DAMAGES[name] in place.kept(), "the original is kept, byte for byte"
    assert place.verify()[5:7] == ((), ()), "verify calls it whole"
    after = bodies(place.records())
    if name != "dur":
        assert {seq: body for seq, body in after.items() if seq in before} == before, "what read is unchanged"
    assert set(after) == set(range(1, max(after) + 1))
    assert place.records()[-1].payload["text"].startswith("repaired: ")
    lost = {r.seq for r in place.records() if "lost" in r.payload["text"]} - {max(after)}
    assert lost == set(range(1, max(before, default=0))) - set(before)
    data = place.log.read_bytes()
    assert place.repair() is None, "a second time there is nothing to do"
    assert place.log.read_bytes() == data
    assert place.goes_on() == max(after) + 1
    assert place.verify().ok


def test_lines_that_come_too_late_are_put_in_their_place(place: Place) -> None:
    many = lines(HEAD, 1, 200)
    place.put(HEAD.raw + b"".join(many[:9] + many[10:150] + many[9:10] + many[150:]))
    assert {"gap", "late"} == {d.kind for d in place.verify().damages}
    assert place.repair() is not None
    assert [r.raw[:-19] for r in place.records()[:200]] == [text[:-19] for text in many]
    assert place.verify().ok


def test_a_whole_log_is_left_alone(place: Place) -> None:
    place.put(WHOLE)
    assert place.repair() is None
    assert place.log.read_bytes() == WHOLE
    assert place.kept() == []


def opened(seq: int, epoch: int, salt: int, dur: int) -> bytes:
    return encode_event(Draft("opened", TS, {"epoch": epoch}), seq=seq, dur=dur, salt=salt)


def test_of_two_writers_the_later_one_goes_on_and_the_other_is_kept(place: Place) -> None:
    mine = [line(seq, HEAD.salt, dur=19, text=f"mine {seq}") for seq in range(21, 30)]
    yours = [opened(21, 2, HEAD.salt, 20), *(line(s, HEAD.salt, dur=20, text=f"yours {s}") for s in range(22, 26))]
    mixed = [mine[0], mine[1], yours[0], yours[1], mine[2], yours[2], *mine[3:], *yours[3:]]
    place.put(HEAD.raw + b"".join([*LINES[:20], *mixed]))
    done = place.repair()
    assert done is not None
    records = place.records()
    assert [r.payload.get("text") for r in records[21:25]] == [f"yours {s}" for s in range(22, 26)]
    assert [r.seq for r in records] == list(range(1, 27))
    assert b"".join(mine) in place.kept()
    assert [(b.first, b.last, b.lines) for b in done[0].salvage.branches] == [(21, 29, 9)]
    assert "another program" in records[-1].payload["text"]
    assert place.verify().ok
    assert place.goes_on() == 27


def test_of_two_writers_of_one_epoch_the_longer_one_goes_on(place: Place) -> None:
    mine = [line(seq, HEAD.salt, dur=20, text=f"mine {seq}") for seq in range(21, 24)]
    yours = [line(seq, HEAD.salt, dur=20, text=f"yours {seq}") for seq in range(21, 30)]
    place.put(HEAD.raw + b"".join([*LINES[:20], *mine, *yours]))
    assert place.repair() is not None
    assert [r.payload["text"] for r in place.records()[20:29]] == [f"yours {s}" for s in range(21, 30)]
    assert b"".join(mine) in place.kept()


def three_segments(session: str = SESSION) -> dict[str, bytes]:
    heads = [header(0, 1, session=session), header(1, 21, session=session), header(2, 31)]
    ranges = [(1, 20), (21, 30), (31, 40)]
    data = [h.raw + b"".join(lines(h, *r)) for h, r in zip(heads, ranges, strict=True)]
    return {closed_name(0, 1): data[0], closed_name(1, 21): data[1], "events.jsonl": data[2]}


def test_segments_before_the_damage_are_not_touched(place: Place) -> None:
    parts = three_segments()
    parts[closed_name(1, 21)] = flipped(parts[closed_name(1, 21)], 900)
    for name, data in parts.items():
        place.put(data, name)
    os.link(place.directory / closed_name(1, 21), place.root.parent / "a fork")
    first = (place.directory / closed_name(0, 1)).stat()
    before = bodies(place.records())
    assert place.repair() is not None
    assert sorted(p.name for p in place.directory.glob("*.jsonl")) == [closed_name(0, 1), "events.jsonl"]
    assert (place.directory / closed_name(0, 1)).stat().st_ino == first.st_ino
    assert (place.root.parent / "a fork").read_bytes() == parts[closed_name(1, 21)]
    after = bodies(place.records())
    assert {s: b for s, b in after.items() if s in before} == before
    assert place.verify().ok
    assert place.repair() is None
    assert place.goes_on() == 42


@pytest.mark.parametrize("same", [True, False])
def test_a_lost_segment_is_filled_in_where_a_later_place_is_damaged_too(place: Place, same: bool) -> None:
    """What bad bytes may have held excuses no gap before them: a repair began behind that one, and left it."""
    rescue = header(3, 41)
    parts = {**three_segments(), closed_name(3, 41): rescue.raw + b"".join(lines(rescue, 41, 60))}
    parts[closed_name(2, 31)] = parts.pop("events.jsonl")
    parts["events.jsonl"] = parts.pop(closed_name(3, 41))
    del parts[closed_name(1, 21)]
    hit = closed_name(2, 31) if same else "events.jsonl"
    parts[hit] = parts[hit][:900] + bytes(3000) + parts[hit][1000:]
    for name, data in parts.items():
        place.put(data, name)
    assert "gap" in {d.kind for d in place.verify().damages}
    before = bodies(place.records())
    assert place.repair() is not None
    assert place.verify().ok
    assert place.repair() is None
    after = bodies(place.records())
    assert before.items() <= after.items()
    assert list(after) == list(range(1, 62))
    place.goes_on()


@pytest.mark.parametrize("hit", [0, 1, 2])
def test_a_fork_stays_a_fork(place: Place, hit: int) -> None:
    parent = three_segments("20261128-parent")
    names = [closed_name(0, 1), closed_name(1, 21)]
    data = [parent[names[0]], parent[names[1]]]
    upto = len(data[1]) - len(data[1].splitlines(keepends=True)[-1])
    own = encode_header(
        SESSION, ordinal=2, first_seq=30, nonce="f" * 16, created=TS, by="test 1",
        parent={"session": "20261128-parent", "upto_seq": 29, "upto_bytes": upto},
    )  # fmt: skip
    data.append(own.raw + b"".join(lines(own, 30, 35)))
    data[hit] = flipped(data[hit], 600)
    for name, text in zip([*names, "events.jsonl"], data, strict=True):
        place.put(text, name)
    before = bodies(place.records())
    assert len(place.verify().damages) == 1
    assert place.repair() is not None
    assert place.verify()[5:7] == ((), ())
    after = bodies(place.records())
    assert {s: b for s, b in after.items() if s in before} == before
    assert set(after) == set(range(1, 37))
    assert place.repair() is None
    assert place.goes_on() == 37


def test_it_refuses_while_somebody_has_the_session(place: Place) -> None:
    place.put(DAMAGES["crc"])
    lease = take(UnsyncedFiles(), str(place.directory), SESSION)
    with pytest.raises(SessionHeld):
        place.repair()
    lease.release()
    assert place.log.read_bytes() == DAMAGES["crc"]


@pytest.mark.parametrize("for_ever", [False, True])
def test_the_disk_fails_at_every_step(place: Place, for_ever: bool) -> None:
    """Wherever it stops, what read before reads, the original is there, and another try ends well.

    A checkpoint of the open segment keeps its place in the log all the while, or gets it back from the other try.
    """
    parts = three_segments()
    parts[closed_name(1, 21)] = flipped(parts[closed_name(1, 21)], 900)
    last = parts["events.jsonl"].splitlines(keepends=True)[5]
    anchor = Anchor(35, 2, parts["events.jsonl"].index(last), last[-11:-3].decode())
    n = 0
    while True:
        n += 1
        shutil.rmtree(place.directory)
        place.directory.mkdir()
        for name, data in parts.items():
            place.put(data, name)
        write_checkpoint(UnsyncedFiles(), str(place.directory), Checkpoint(anchor, SESSION, "r", b"state"))
        before = bodies(place.records())
        steps = ("link", "rename", "unlink", "write", "sync", "sync_dir", "mkdir")
        disk = FaultyFiles(UnsyncedFiles(), n, only=steps, for_ever=for_ever)
        with suppress(LogWriteFailed):
            place.repair(disk)
        after = bodies(place.records())
        assert {s: b for s, b in after.items() if s in before} == before, n
        place.repair()
        found = place.verify()
        assert (found.ok, found.checkpoints, found.useless) == (True, 1, ()), n
        assert [p.name for p in (place.directory / "checkpoints").iterdir()] == ["000000000035.ckpt.zst"], n
        assert parts[closed_name(1, 21)] in place.kept()
        after = bodies(place.records())
        assert {s: b for s, b in after.items() if s in before} == before, n
        if not disk.hit:
            break
    assert n > 12


def test_random_damage_and_repair(place: Place) -> None:
    dice = random.Random(11)
    for _ in range(60):
        parts = three_segments()
        for _ in range(dice.randint(1, 4)):
            name = dice.choice(list(parts))
            data = bytearray(parts[name])
            at, size = dice.randrange(len(data)), dice.choice([1, 3, 50, 400])
            piece = data[at : at + size]
            match dice.randrange(4):
                case 0:
                    data[at : at + size] = dice.randbytes(len(piece))
                case 1:
                    del data[at : at + size]
                case 2:
                    data[at:at] = piece
                case _:
                    data[at : at + size] = bytes(len(piece))
            parts[name] = bytes(data)
        shutil.rmtree(place.directory)
        place.directory.mkdir()
        for name, text in parts.items():
            place.put(text, name)
        before = bodies(place.records())
        place.repair()
        assert place.verify()[5:7] == ((), ())
        after = bodies(place.records())
        assert {s: b for s, b in after.items() if s in before} == before
        assert place.repair() is None


def test_a_header_is_a_header(place: Place) -> None:
    place.put(DAMAGES["header"])
    place.repair()
    from agentsh.log.frame import decode_header

    again: Header = decode_header(place.log.read_bytes().splitlines(keepends=True)[0])
    assert (again.rescue, again.first_seq, again.session) == (True, 1, SESSION)


@pytest.mark.parametrize("kept", [0, 25])
def test_an_end_that_a_checkpoint_knew_of_is_filled_in(place: Place, kept: int) -> None:
    place.put(WHOLE)
    anchor = Anchor(30, 0, WHOLE.index(LINES[29]), LINES[29][-11:-3].decode())
    write_checkpoint(UnsyncedFiles(), str(place.directory), Checkpoint(anchor, SESSION, "r", b"state"))
    place.put(HEAD.raw + b"".join(LINES[:kept]))
    assert [d.kind for d in place.verify().damages] == ["gap"]
    done = place.repair()
    assert done is not None
    assert done[0].salvage.lost == ((kept + 1, 30),)
    assert [r.seq for r in place.records()] == list(range(1, 32))
    assert (place.verify().ok, place.repair()) == (True, None)
