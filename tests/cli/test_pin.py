"""`agentsh pin`: the session as it is now stays, by hard link, whatever becomes of its log; and it comes back."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.catalog import find
from agentsh.app.paths import find_homes
from agentsh.app.pinning import pin_session
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of
from tests.app.homes import add, sid
from tests.cli.test_verify_repair_doctor import Done, run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    add(place, 1, 5)
    return place


def pins(home: Path) -> list[Path]:
    return sorted((home / "sessions" / sid(1) / "checkpoints").glob("*.pin"))


def resumed(home: Path) -> Done:
    return run(home, "resume", sid(1), "hello", "-p", "--model", "demo", "--dir", str(home))


def test_it_costs_nothing_is_made_once_and_outlives_the_log(home: Path) -> None:
    log = home / "sessions" / sid(1) / "events.jsonl"
    assert run(home, "pin", sid(1), "--list").out == ""
    first = run(home, "pin", sid(1))
    assert (first.code, first.err) == (0, "")
    assert run(home, "pin", sid(1)).out == first.out, "nothing has come since"
    (place,) = pins(home)
    (segment,) = place.glob("*.jsonl")
    assert segment.samefile(log)
    (listed,) = [json.loads(row) for row in run(home, "pin", sid(1), "--list", "--json").out.splitlines()]
    assert (listed["path"], f"{listed['seq']:012}.pin") == (str(place), place.name)
    pinned = log.read_bytes()
    assert resumed(home).code == 0
    assert run(home, "pin", sid(1)).code == 0
    assert len(pins(home)) == 2, "more has come: another"

    log.unlink()  # somebody puts an older copy in the place of the log
    log.write_bytes(pinned[: len(pinned) // 2])
    assert run(home, "verify", sid(1)).code == 1
    assert run(home, "repair", sid(1), "--yes").code == 0
    newest = pins(home)[-1]
    kept = b"".join(path.read_bytes() for path in newest.glob("*.jsonl"))
    assert kept.startswith(pinned)
    assert b"hello" in kept

    log.unlink()
    for path in newest.glob("*.jsonl"):  # as the page about the format says
        shutil.copy(path, log.parent)
    assert run(home, "verify", sid(1)).code == 0
    assert "hello" in run(home, "replay", sid(1), "--format", "text").out
    assert resumed(home).code == 0
    assert run(home, "verify", sid(1)).code == 0


def test_it_is_let_go_and_the_log_stays(home: Path) -> None:
    run(home, "pin", sid(1))
    (place,) = pins(home)
    assert run(home, "pin", sid(1), "--remove", "3").code == 1
    assert run(home, "pin", sid(1), "--remove", str(int(place.name.split(".")[0]))).code == 0
    assert pins(home) == []
    assert run(home, "verify", sid(1)).code == 0


def test_what_cannot_be_pinned_is_said(home: Path) -> None:
    assert run(home, "pin", "nope").code == 3
    assert run(home, "pin", sid(1), "--list", "--remove", "3").code == 2
    assert run(home, "archive", sid(1)).code == 0
    done = run(home, "pin", sid(1))
    assert (done.code, "agentsh unarchive" in done.err) == (5, True)


def test_one_at_a_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would take each other's links for leftovers: one was made, and called whole, without the log."""
    directory, link, held = str(home / "sessions" / sid(1)), os.link, []

    def linked(*args: Any, **kwargs: Any) -> None:
        held.append(holder_of(RealFiles(), directory) is not None)
        link(*args, **kwargs)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setenv("AGENTSH_HOME", str(home))
    made = pin_session(find(find_homes(home, os.environ), sid(1)))
    assert len(held) == len(os.listdir(made.place)) == 2
    assert all(held)
