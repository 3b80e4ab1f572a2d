"""Every command on an archive with every kind of damage: what it says, with which exit code, and what is there then.

P2: the session lists, opens and takes the next message; the bad bytes are kept aside; one line tells.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsh.cli.main import run as agentsh
from tests.app.homes import add, sid
from tests.log.archives import bare, broken, flipped, shape

SESSION, OTHER = sid(1), sid(2)
NAME = "archive.jsonl.zst"
TURNS = 420
EVENTS = 1 + 3 * TURNS


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two archived sessions, the first of them with more than two blocks of zstd."""
    home = tmp_path_factory.mktemp("damaged") / "home"
    add(home, 1, turns=TURNS, words="walrus " * 20)
    add(home, 2)
    before = os.environ.get("AGENTSH_HOME")
    os.environ["AGENTSH_HOME"] = str(home)
    try:
        assert agentsh(["archive", SESSION, OTHER]) == 0
    finally:
        if before is None:
            del os.environ["AGENTSH_HOME"]
        else:
            os.environ["AGENTSH_HOME"] = before
    for index in home.glob("index.db*"):
        index.unlink()
    return home


@pytest.fixture
def home(archived: Path, tmp_path: Path) -> Path:
    place = tmp_path / "home"
    shutil.copytree(archived, place)
    return place


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    for name in [n for n in os.environ if n.startswith(("AGENTSH_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTSH_HOME", str(home))
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.chdir(home.parent)
    nothing = open(os.devnull)  # noqa: SIM115 - for the whole test
    monkeypatch.setattr("sys.stdin", nothing)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]

    def call(*words: str) -> Done:
        code = agentsh([*words])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        assert "internal error" not in err
        return Done(code, out, err)

    yield call
    nothing.close()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def log(home: Path, session: str = SESSION) -> Path:
    return home / "sessions" / session


Damage = Callable[[bytes, bytes], bytes]
"""Makes a damaged archive of a whole one; the second is that of another session."""

NOTHING_LOST: dict[str, Damage] = {
    "a bit of the description": lambda data, _: flipped(data, 60),
    "a bit of its size": lambda data, _: flipped(data, 5),
    "the frame's magic number": lambda data, _: flipped(data, shape(data)[0] + 1),
    "a bit in the middle": lambda data, _: flipped(data, sum(shape(data)) // 2),
    "the frame's checksum": lambda data, _: flipped(data, shape(data)[1] - 2),
    "a bit of the parity": lambda data, _: flipped(data, shape(data)[1] + 300),
    "the last byte": lambda data, _: flipped(data, len(data) - 1),
    "a page of NULs": lambda data, _: data[:4096] + bytes(4096) + data[8192:],
    "without parity": lambda data, _: data[: shape(data)[1]],
    "junk behind it": lambda data, _: data + bytes(70_000),
    "an old one, its description": lambda data, _: flipped(bare(data), 60),
    "an old one, the frame's header": lambda data, _: flipped(bare(data), shape(bare(data))[0] + 4),
    "an old one, its last byte missing": lambda data, _: bare(data)[:-1],
}
A_PART_LOST: dict[str, Damage] = {
    "two blocks of a group": lambda data, _: broken(bare(data), 300_000),
    "cut short": lambda data, _: data[: shape(data)[1] * 3 // 4],
    "an old one, and its description": lambda data, _: flipped(broken(bare(data), 300_000), 60),
}
ALL_LOST: dict[str, Damage] = {
    "no frame": lambda data, _: data[: shape(data)[0]],
    "empty": lambda *_: b"",
    "NULs": lambda data, _: bytes(len(data)),
    "text": lambda *_: b"hello\n" * 999,
}


def damage(home: Path, how: Damage) -> bytes:
    data = how((log(home) / NAME).read_bytes(), (log(home, OTHER) / NAME).read_bytes())
    (log(home) / NAME).write_bytes(data)
    return data


def kept(home: Path) -> list[bytes]:
    place = log(home) / "quarantine"
    return [path.read_bytes() for path in place.iterdir()] if place.is_dir() else []


def listed(run: Run) -> dict[str, object]:
    rows = [json.loads(text) for text in run("ls", "--all", "--json").out.splitlines()]
    (row,) = [row for row in rows if row["id"] == SESSION]
    return dict(row)


def events(run: Run, session: str = SESSION) -> list[int]:
    return [json.loads(text)["seq"] for text in run("replay", session, "--json").out.splitlines()]


def one_line(text: str) -> str:
    (found,) = text.splitlines()
    return found


def resume(run: Run) -> Done:
    return run("resume", SESSION, "-p", "go on", "--model", "demo")


def lines_of(done: Done, word: str) -> list[str]:
    return [text for text in done.err.splitlines() if word in text]


@pytest.mark.parametrize("how", NOTHING_LOST)
def test_damage_that_costs_nothing(run: Run, home: Path, how: str) -> None:
    data = damage(home, NOTHING_LOST[how])
    everything = list(range(1, EVENTS + 1))
    assert events(run) == everything
    assert f"{EVENTS}" in run("show", SESSION).out
    assert listed(run)["last_seq"] == EVENTS
    assert run("search", "walrus").code == 0
    found = run("verify", SESSION)
    assert (found.code, "every event reads all the same" in found.out) == (1, True)
    assert f"agentsh repair {SESSION}" in found.out
    assert run("doctor").code == 1
    forked = run("fork", SESSION)
    assert (forked.code, f"goes on from event {EVENTS}" in forked.out) == (0, True)
    assert run("gc", "--dry-run").code == 0
    assert (log(home) / NAME).read_bytes() == data  # none of them has changed it
    done = resume(run)
    assert done.code == 0
    assert lines_of(done, "recovered") == [
        "agentsh: recovered: the damaged archive of the session moved to quarantine"
    ]
    assert kept(home) == [data]
    assert run("verify", SESSION).code == 0
    assert events(run)[: len(everything)] == everything
    again = resume(run)
    assert (again.code, lines_of(again, "recovered"), kept(home)) == (0, [], [data])


@pytest.mark.parametrize("how", NOTHING_LOST)
@pytest.mark.parametrize("command", ["unarchive", "repair"])
def test_it_is_put_right_on_request(run: Run, home: Path, how: str, command: str) -> None:
    data = damage(home, NOTHING_LOST[how])
    done = run(command, SESSION)
    first, *others = done.out.splitlines()
    assert first == (
        f"{SESSION} is taken out of its archive: that was damaged, but all of it could be read "
        f"(kept: quarantine/{NAME})"
    )
    assert (done.code, done.err, len(others)) == (0, "", command == "repair")
    assert kept(home) == [data]
    assert run("verify", SESSION).code == 0
    assert len(events(run)) == EVENTS
    assert run("archive", SESSION).code == 0
    assert run("verify", SESSION).code == 0


@pytest.mark.parametrize("how", A_PART_LOST)
def test_damage_that_costs_a_part(run: Run, home: Path, how: str) -> None:
    data = damage(home, A_PART_LOST[how])
    left = events(run)
    assert left == list(range(1, len(left) + 1))
    assert 200 < len(left) < EVENTS
    assert run("show", SESSION).code == 0
    assert run("search", "walrus").code == 0
    found = run("verify", SESSION)
    assert (found.code, "the archive is damaged" in found.out) == (1, True)
    assert "put the archive back from a copy" in found.out
    assert f"agentsh repair {SESSION}" in found.out
    refused = run("fork", SESSION)
    assert (refused.code, f"agentsh repair {SESSION}" in one_line(refused.err)) == (1, True)
    assert run("gc").code == 1
    assert (log(home) / NAME).read_bytes() == data
    done = resume(run)
    assert done.code == 0
    told = one_line("\n".join(lines_of(done, "recovered")))
    assert "the damaged archive of the session moved to quarantine" in told
    assert data in kept(home)
    now = events(run)
    assert now[: len(left)] == left
    if "description" not in how:
        assert now[len(left)] == EVENTS + 1  # no number is used again
        assert "1 damaged place" in told
    again = resume(run)
    assert (again.code, lines_of(again, "recovered")) == (0, [])
    assert run("repair", SESSION, "--yes").code == 0
    assert run("verify", SESSION).code == 0
    assert events(run) == list(range(1, max(events(run)) + 1))


@pytest.mark.parametrize("how", A_PART_LOST)
def test_a_part_is_put_back_on_request(run: Run, home: Path, how: str) -> None:
    data = damage(home, A_PART_LOST[how])
    left = events(run)
    done = run("unarchive", SESSION)
    assert one_line(done.out) == (
        f"{SESSION} is taken out of its archive: that was damaged, and a part is lost (kept: quarantine/{NAME}); "
        f"`agentsh repair {SESSION}` tells what"
    )
    assert (done.code, done.err) == (1, "")
    assert events(run) == left
    assert kept(home) == [data]
    assert listed(run)["state"] == "damaged" or "description" in how
    repaired = run("repair", SESSION, "--yes")
    assert repaired.code == 0
    if "description" not in how:
        assert f"events {len(left) + 1} to {EVENTS} are lost" in repaired.out
    assert run("verify", SESSION).code == 0
    assert resume(run).code == 0


@pytest.mark.parametrize("how", ALL_LOST)
def test_where_nothing_is_left(run: Run, home: Path, how: str) -> None:
    data = damage(home, ALL_LOST[how])
    assert events(run) == []
    assert run("show", SESSION).code == 0
    assert run("verify", SESSION).code == 1
    assert run("fork", SESSION).code == 1
    for done, code in ((resume(run), 5), (run("unarchive", SESSION), 1)):
        assert (done.code, f"nothing of {NAME} unpacks" in one_line(done.err)) == (code, True)
        assert f"agentsh repair {SESSION}" in done.err
    assert (log(home) / NAME).read_bytes() == data  # as long as nobody asks for it, it stays where a copy may come
    repaired = run("repair", SESSION, "--yes")
    assert (repaired.code, "a part is lost" in repaired.out) == (0, True)
    assert data in kept(home)
    assert resume(run).code == 0
    assert run("verify", SESSION).code == 0


def test_the_archive_of_another_session_is_told_as_any_log_of_another_is(run: Run, home: Path) -> None:
    damage(home, lambda _, other: other)
    assert "belongs to another session" in run("verify", SESSION).out
    assert resume(run).code == 0


@pytest.mark.parametrize("how", [*A_PART_LOST, *ALL_LOST])
def test_one_that_is_thrown_away_comes_back_as_it_was(run: Run, home: Path, how: str) -> None:
    data = damage(home, (A_PART_LOST | ALL_LOST)[how])
    assert run("rm", SESSION, "--yes").code == 0
    assert run("restore", SESSION).code == 0
    assert (log(home) / NAME).read_bytes() == data


def test_saying_no_leaves_what_came_out_and_says_so(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(home, A_PART_LOST["cut short"])
    monkeypatch.setattr("agentsh.cli.repair._agreed", lambda: False)
    done = run("repair", SESSION)
    assert (done.code, done.out.splitlines()[-1]) == (1, "Nothing else was changed.")


def test_archiving_it_again_removes_nothing_that_it_has_lost(run: Run, home: Path) -> None:
    """Closed segments beside an archive are leftovers as long as it is whole."""
    left = log(home) / "000000-000000000001.jsonl"
    left.write_bytes(b"a leftover")
    damage(home, A_PART_LOST["cut short"])
    assert "already" in run("archive", SESSION).out
    assert left.read_bytes() == b"a leftover"
    run("unarchive", SESSION)
    assert b"a leftover" in kept(home)
