"""Verification sees what is wrong, reads all unless told not to, and says the same with any number of processes."""

import json
import os
import stat
from pathlib import Path

import pytest

from agentsh.app.verifying import headline
from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, checkpoint_name, write_checkpoint
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event
from agentsh.log.lease import take
from agentsh.log.pin import pin
from agentsh.log.record import Draft
from agentsh.log.segment import closed_name
from agentsh.log.store import Damage
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.marks import Marks
from agentsh.stores.session_check import Finding
from agentsh.stores.verify import Verifier
from tests.log.logs import SESSION, TS, header, line, lines

HEAD = header()
LINES = lines(HEAD, 1, 40)
WHOLE = HEAD.raw + b"".join(LINES)


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    place = tmp_path / "sessions"
    place.mkdir()
    return place


def put(sessions: Path, data: bytes, name: str = "events.jsonl", session: str = SESSION) -> Path:
    (sessions / session).mkdir(exist_ok=True)
    path = sessions / session / name
    path.write_bytes(data)
    return path


def verified(sessions: Path, marks: Marks | None = None, *, incremental: bool = False, jobs: int = 1) -> Finding:
    blobs = str(sessions.parent / "blobs")
    (found,) = Verifier(str(sessions), blobs, jobs=jobs, marks=marks, incremental=incremental).check([SESSION])
    return found


def test_a_whole_log(sessions: Path) -> None:
    put(sessions, WHOLE)
    found = verified(sessions)
    assert found.ok
    assert (found.records, found.last_seq, found.bytes) == (40, 40, len(WHOLE))
    assert found.remarks == ()


def test_every_flip_is_seen(sessions: Path) -> None:
    """Damage at each byte is told, but for the last line, where it cannot be told from a tear."""
    path = put(sessions, WHOLE)
    for at in range(0, len(WHOLE) - len(LINES[-1]), 7):
        path.write_bytes(WHOLE[:at] + bytes([WHOLE[at] ^ 4]) + WHOLE[at + 1 :])
        assert not verified(sessions).ok, at


def test_many_processes_say_the_same(sessions: Path) -> None:
    ids = [f"20261129-{n:06}" for n in range(40)]
    for n, session in enumerate(ids):
        head = header(session=session)
        data = head.raw + b"".join(lines(head, 1, 30))
        put(sessions, data if n % 3 else data[:900] + b"?" + data[901:], session=session)
    with_blob(sessions)[0].unlink()
    ids.append(SESSION)
    blobs, marks = str(sessions.parent / "blobs"), [Marks(sessions.parent / f"marks{n}") for n in range(2)]
    one, two = (list(Verifier(str(sessions), blobs, jobs=n + 1, marks=marks[n]).check(ids)) for n in range(2))
    assert one == two
    assert [marks[0].of(session) for session in ids] == [marks[1].of(session) for session in ids]
    again = Verifier(str(sessions), blobs, jobs=2, marks=marks[1], incremental=True).check(ids)
    assert [bool(f.checked_bytes) for f in again] == [n % 3 == 0 for n in range(40)] + [True]
    assert [f.session for f in one] == ids
    assert [f.ok for f in one] == [bool(n % 3) for n in range(40)] + [False]


def test_stretches_join(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment is cut into pieces for processes; a line that is missing just there is missed."""
    monkeypatch.setattr("agentsh.log.check.STRETCH_BYTES", 1000)
    put(sessions, WHOLE)
    assert verified(sessions, jobs=2).ok
    for hole in range(1, 39):
        put(sessions, HEAD.raw + b"".join(LINES[:hole] + LINES[hole + 1 :]))
        assert [d.kind for d in verified(sessions).damages] == ["gap"], hole


def test_segments_and_the_hash_of_the_one_before(sessions: Path) -> None:
    from hashlib import sha256

    from agentsh.log.frame import encode_header

    first = HEAD.raw + b"".join(LINES[:20])
    second = encode_header(
        SESSION, ordinal=1, first_seq=21, nonce="1" * 16, created=TS, by="t", prev_sha256=sha256(first).hexdigest()
    )
    put(sessions, first, closed_name(0, 1))
    put(sessions, second.raw + b"".join(lines(second, 21, 30)))
    assert verified(sessions).ok
    other = [*LINES[:19], line(20, HEAD.salt, dur=19, text="text XX")]
    put(sessions, HEAD.raw + b"".join(other), closed_name(0, 1))
    assert [(d.kind, d.where) for d in verified(sessions).damages] == [("chain", "000001:0")]


def test_a_torn_end_is_no_damage_and_none_at_all_while_somebody_writes(sessions: Path) -> None:
    put(sessions, WHOLE + b'{"seq":41,')
    found = verified(sessions)
    assert (found.ok, found.remarks, found.torn_bytes) == (True, ("torn",), 10)
    lease = take(RealFiles(), str(sessions / SESSION), SESSION)
    found = verified(sessions)
    assert (found.ok, found.remarks) == (True, ())
    assert found.holder is not None
    assert found.holder.pid == os.getpid()
    lease.release()


def test_a_log_that_cannot_be_read(sessions: Path) -> None:
    (sessions / SESSION).mkdir()
    (sessions / SESSION / "events.jsonl").mkdir()
    found = verified(sessions)
    assert not found.ok
    (sessions / SESSION / "events.jsonl").rmdir()
    assert verified(sessions).remarks == ("empty", "missing")
    (sessions / SESSION).rmdir()
    assert verified(sessions).problem


def test_a_lock_that_is_no_file(sessions: Path) -> None:
    put(sessions, WHOLE)
    (sessions / SESSION / "lock").mkdir()
    assert [d.kind for d in verified(sessions).damages] == ["lock"]


def with_blob(sessions: Path) -> tuple[Path, str]:
    ref = FileBlobs(sessions.parent / "blobs").put(b"a long text" * 1000)
    text = {"blob": ref, "bytes": 11000, "head": "a", "tail": "t"}
    put(sessions, WHOLE + encode_event(Draft("note", TS, {"text": text}), seq=41, dur=40, salt=HEAD.salt))
    name = ref.removeprefix("sha256:")
    return sessions.parent / "blobs" / name[:2] / f"{name}.zst", ref


def test_blobs_are_there_and_right(sessions: Path) -> None:
    path, ref = with_blob(sessions)
    assert verified(sessions).ok
    whole = path.read_bytes()
    for data in (b"", whole[:-3], whole[:20] + b"?" + whole[21:], None):
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        found = verified(sessions)
        assert [(d.kind, d.where, d.after_seq) for d in found.damages] == [("blob", ref, 41)]
    (without,) = Verifier(str(sessions), None).check([SESSION])
    assert without.ok


def test_text_that_looks_like_a_blob_is_none(sessions: Path) -> None:
    text = json.dumps({"blob": "sha256:" + "0" * 64})
    put(sessions, WHOLE + line(41, HEAD.salt, dur=40, text=text))
    assert verified(sessions).ok


class TestIncremental:
    """Only what no earlier pass covered is read; the marks are a cache."""

    @pytest.fixture
    def marks(self, tmp_path: Path) -> Path:
        return tmp_path / "verified.json"

    def again(self, sessions: Path, path: Path, *, incremental: bool = True) -> Finding:
        marks = Marks(path)
        found = verified(sessions, marks, incremental=incremental)
        marks.save()
        return found

    def test_what_is_new_is_read_and_no_more(self, sessions: Path, marks: Path) -> None:
        log = put(sessions, HEAD.raw + b"".join(LINES[:30]))
        assert self.again(sessions, marks, incremental=False).checked_bytes == log.stat().st_size - len(HEAD.raw)
        assert stat.S_IMODE(marks.stat().st_mode) == 0o600
        found = self.again(sessions, marks)
        assert (found.checked_bytes, found.records, found.last_seq) == (0, 30, 30)
        with log.open("ab") as file:
            file.write(b"".join(LINES[30:]))
        found = self.again(sessions, marks)
        assert (found.checked_bytes, found.records, found.last_seq) == (sum(map(len, LINES[30:])), 40, 40)
        assert self.again(sessions, marks).checked_bytes == 0

    def test_damage_in_what_is_new(self, sessions: Path, marks: Path) -> None:
        log = put(sessions, HEAD.raw + b"".join(LINES[:30]))
        self.again(sessions, marks)
        with log.open("ab") as file:
            file.write(b"".join(LINES[31:]))
        for _ in range(2):  # and it is told again
            assert [d.kind for d in self.again(sessions, marks).damages] == ["gap"]

    @pytest.mark.parametrize("grown", [b"", LINES[30]])
    def test_a_file_that_was_written_over_is_read_again(self, sessions: Path, marks: Path, grown: bytes) -> None:
        log = put(sessions, HEAD.raw + b"".join(LINES[:30]))
        self.again(sessions, marks)
        data = log.read_bytes()
        with log.open("r+b") as file:
            file.write(data[:-30] + b"?" + data[-29:] + grown)
        os.utime(log, ns=(1, 1))
        found = self.again(sessions, marks)
        assert found.checked_bytes > 3000
        assert found.damages or found.remarks

    def test_another_file_of_the_same_size_and_time(self, sessions: Path, marks: Path) -> None:
        log = put(sessions, WHOLE)
        self.again(sessions, marks)
        when = log.stat().st_mtime_ns
        other = log.with_name("other")
        other.write_bytes(WHOLE[:900] + b"?" + WHOLE[901:])
        os.utime(other, ns=(when, when))
        other.rename(log)
        assert not self.again(sessions, marks).ok

    def test_a_closed_segment_keeps_its_mark(self, sessions: Path, marks: Path) -> None:
        log = put(sessions, WHOLE)
        self.again(sessions, marks)
        log.rename(log.with_name(closed_name(0, 1)))
        second = header(1, 41)
        put(sessions, second.raw + b"".join(lines(second, 41, 42)))
        found = self.again(sessions, marks)
        assert (found.ok, found.records) == (True, 42)
        assert found.checked_bytes == sum(map(len, lines(second, 41, 42)))

    @pytest.mark.parametrize(
        "rubbish",
        [b"", b"{", b"[]", b'{"version":1,"sessions":[]}', b'{"version":1,"sessions":{"a":{"0":["x"]}}}', None],
    )
    def test_rubbish_for_marks(self, sessions: Path, marks: Path, rubbish: bytes | None) -> None:
        put(sessions, WHOLE)
        if rubbish is None:
            marks.mkdir()
        else:
            marks.write_bytes(rubbish)
        assert self.again(sessions, marks).checked_bytes > 0
        assert self.again(sessions, marks).ok

    def test_a_missing_blob_is_told_again(self, sessions: Path, marks: Path) -> None:
        path, _ = with_blob(sessions)
        path.unlink()
        for _ in range(2):
            assert [d.kind for d in self.again(sessions, marks).damages] == ["blob"]


def test_checkpoints_are_counted_and_useless_ones_named(sessions: Path) -> None:
    put(sessions, WHOLE)
    place, files = sessions / SESSION, RealFiles()
    for seq in (10, 20, 30):
        offset = WHOLE.index(LINES[seq - 1])
        anchor = Anchor(seq, 0, offset, LINES[seq - 1][-11:-3].decode())
        write_checkpoint(files, str(place), Checkpoint(anchor, SESSION, "r", b"state"))
    assert pin(files, str(place), SESSION, 20) is not None
    found = verified(sessions)
    assert (found.ok, found.checkpoints, found.useless) == (True, 4, ())
    assert "; 4 checkpoints" in headline(found)
    (place / "checkpoints" / checkpoint_name(10)).write_bytes(b"rubbish")
    put(sessions, HEAD.raw + b"".join(LINES[:25]))  # the one at 30 is ahead of the log now
    end = (place / "events.jsonl").stat().st_size
    found = verified(sessions)
    assert found.damages == (Damage(f"000000:{end}", "gap", 0, 25, rot=True),)
    assert found.useless == (f"checkpoints/{checkpoint_name(10)}",), "the other one proves that there was more"
    assert found.useless[0] in headline(found)
    foreign = Checkpoint(Anchor(40, 0, 1, "00000000"), "20261129-zzzzzz", "r", b"state")
    write_checkpoint(files, str(place), foreign)
    (place / "checkpoints" / checkpoint_name(30)).unlink()
    found = verified(sessions)
    assert found.ok, "another session's proves nothing"
    assert f"checkpoints/{checkpoint_name(40)}" in found.useless
