"""A log of which nothing is left: every command says so, and `repair` makes a session of it that goes on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.homes import add, sid
from tests.cli.test_verify_repair_doctor import run


def emptied(log: Path) -> None:
    log.write_bytes(b"")


def only_its_header(log: Path) -> None:
    log.write_bytes(log.read_bytes().partition(b"\n")[0] + b"\n")


def half_its_header(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:40])


def garbage(log: Path) -> None:
    log.write_bytes(bytes(range(1, 250)) * 40)


def gone(log: Path) -> None:
    log.unlink()


@pytest.mark.parametrize("opened_first", [False, True])
@pytest.mark.parametrize("lose", [emptied, only_its_header, half_its_header, garbage, gone])
def test_it_is_begun_anew_and_goes_on(lose: Callable[[Path], None], opened_first: bool, tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = add(home, 1, 3)
    lose(log)
    (row,) = [json.loads(text) for text in run(home, "ls", "--json").out.splitlines()]
    verified = run(home, "verify", sid(1))
    doctor = run(home, "doctor").out
    damaged = lose in (garbage, gone)
    assert (row["state"], verified.code) == (("damaged", 1) if damaged else ("empty", 0)), "of one opinion"
    assert ("fail  session " in doctor) == damaged
    if opened_first:
        done = run(home, "resume", sid(1), "hello", "-p", "--model", "demo")
        assert (done.code, f"`agentsh repair {sid(1)}` begins it anew" in done.err) == (1, True), done.err
        assert done.err.count("\n") == 1
    done = run(home, "repair", sid(1), "--yes")
    assert (done.code, done.err) == (0, "")
    assert not done.out.startswith(("empty", "torn", "missing")), "in words"
    done = run(home, "resume", sid(1), "hello", "-p", "--model", "demo")
    assert done.code == 0, done.err
    assert run(home, "verify", sid(1)).code == 0
    assert "nothing to repair" in run(home, "repair", sid(1)).out
