"""A real full disk under commands that write a log in another form: nothing is lost, and nothing half-made stays.

Every room is tried, page by page, from none to where the command comes to its end: each failure is told in one line
with what to do, leaves what was there byte for byte, and is forgotten once there is room.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.log.segment import closed_name
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from tests.app.homes import add, events, log_of, sid
from tests.crash.test_full_disk import PAGE, agentsh, disk_of, leave

SIZE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on a disk of 1 MiB."""
    yield from disk_of(tmp_path / "disk", SIZE)


def content(home: Path) -> dict[str, bytes]:
    """Return every file of the sessions but for what only informs."""
    top = home / "sessions"
    return {
        str(path.relative_to(top)): path.read_bytes()
        for path in sorted(top.rglob("*")) if path.is_file() and path.name != "lock"
    }  # fmt: skip


def lines(home: Path, session: str) -> list[bytes]:
    store = JsonlStore(home / "sessions", FileBlobs(home / "blobs"))
    assert [d.kind for d in store.damages(session) if not d.harmless] == []
    return [record.raw for record in store.read(session)]


def told(said: str) -> str:
    """Return the one line that a user reads."""
    assert "Traceback" not in said
    assert "internal error" not in said
    found = [line for line in said.splitlines() if line.startswith("agentsh:")]
    assert len(found) == 1, said
    return found[0]


def through_every_room(home: Path, words: list[str], same: Callable[[], object], step: int = PAGE) -> int:
    """Run a command with more and more room until it succeeds; return how often it did not.

    same: what has to be as before after each failure.
    """
    before = same()
    for failures, free in enumerate(range(0, SIZE, step)):
        ballast = leave(home, free)
        done = agentsh(home, *words)
        said = done.stderr.decode()
        if done.returncode == 0:
            ballast.unlink()
            return failures
        assert done.returncode == 1, said
        line = told(said)
        assert "No space left" in line, line
        assert "room" in line or "free" in line, line
        assert same() == before, f"with {free} bytes free"
        ballast.unlink()
    raise AssertionError("it never succeeds")


def test_archiving_and_taking_it_back(disk: Path) -> None:
    log = add(disk, 1, 40, words="some words " * 60)
    was, read = log.read_bytes(), lines(disk, sid(1))
    assert through_every_room(disk, ["archive", sid(1)], lambda: content(disk)) > 0
    assert not log.exists()
    assert lines(disk, sid(1)) == read
    assert through_every_room(disk, ["unarchive", sid(1)], lambda: content(disk)) > 3
    assert log.read_bytes() == was


def test_forking(disk: Path) -> None:
    add(disk, 1, 40, words="some words " * 60)
    read = lines(disk, sid(1))

    def same() -> object:
        return content(disk), os.listdir(disk / "workspaces"), os.listdir(disk / "sessions")

    assert through_every_room(disk, ["fork", sid(1)], same) > 0
    (child,) = {path.name for path in (disk / "sessions").iterdir()} - {sid(1)}
    assert lines(disk, child)[: len(read)] == read


def test_repairing(disk: Path) -> None:
    log = add(disk, 1, 40, words="some words " * 60)
    data = bytearray(log.read_bytes())
    data[5_000] ^= 4
    log.write_bytes(data)
    assert through_every_room(disk, ["repair", sid(1), "--yes"], lambda: content(disk)) > 3
    assert len(lines(disk, sid(1))) > 100
    assert bytes(data) in content(disk).values(), "the original is kept"


@pytest.fixture
def larger(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on a disk of 6 MiB."""
    yield from disk_of(tmp_path / "larger", 6 << 20)


@pytest.mark.parametrize("what", ["sealing", "a checkpoint"])
def test_what_is_done_beside_a_session_waits_for_room(larger: Path, what: str) -> None:
    """The session opens, answers and closes all the same; the next one that has room does it."""
    (larger / "agentsh.toml").write_text("[checkpoint]\nevery_events = 1\n" if what == "a checkpoint" else "")
    log = add(larger, 1, 1)
    dice, drafts = random.Random(4), events(sid(1), larger / "workspaces" / sid(1), 150)
    for _, payload in drafts[1::3]:
        payload["text"] = dice.randbytes(6_000).hex()  # which packs to a half
    log.write_bytes(log_of(sid(1), drafts))
    read = lines(larger, sid(1))
    if what == "sealing":  # an opening finds a segment that was closed, and begins the next
        log.rename(log.with_name(closed_name(0, 1)))

    def made() -> list[str]:
        return [name for name in content(larger) if name.endswith(".jsonl.zst" if what == "sealing" else ".ckpt.zst")]

    def unsealed(raw: bytes) -> bytes:
        """Return a line without its crc, which is another one in another segment."""
        return raw.rpartition(b',"crc"')[0]

    without = 0
    rooms = (60_000, 150_000, 600_000, 2_400_000) if what == "sealing" else (0, PAGE, 3 * PAGE, 2_400_000)
    for free in rooms:
        ballast = leave(larger, free)
        done = agentsh(larger, "resume", sid(1), "hello", "-p", "--model", "demo")
        said = done.stderr.decode()
        assert "Traceback" not in said
        assert "internal error" not in said
        assert (done.returncode, "free some space" in said) in ((0, False), (1, True)), said
        ballast.unlink()
        assert [unsealed(raw) for raw in lines(larger, sid(1))[: len(read)]] == [unsealed(raw) for raw in read]
        assert [name for name in content(larger) if not name.endswith((".jsonl", ".zst", "workspace.stat"))] == []
        without += not made()
    assert without > 0
    assert done.returncode == 0
    assert made() != []
