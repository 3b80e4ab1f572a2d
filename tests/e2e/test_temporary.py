"""The private temporary directory of a session whose process was killed: it goes, and that of a live one stays."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell, of_type, stop, wait_for

Serve = Callable[..., ScriptedServer]
WAITS = reply(calls=[call("shell", {"command": "echo left > /tmp/left || echo left > $TMPDIR/left; sleep 300"})])


@pytest.fixture
def tmp(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tmp"
    place.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def left(tmp: Path) -> list[Path]:
    return [path for path in tmp.iterdir() if path.name.startswith("agentsh-tmp-")]


def in_a_command(shell: Shell, tmp: Path, *words: str) -> "subprocess.Popen[bytes]":
    """Start something whose command has written a file to its temporary directory, and waits."""
    before = len(left(tmp))
    process = shell.start(*words, "-p", "--mode", "yolo")
    wait_for(lambda: len([path for path in left(tmp) if (path / "left").exists()]) > before, 40)
    return process


@pytest.mark.parametrize("way", ["resume", "rm", "rm --now", "gc"])
def test_what_a_killed_session_left_goes(shell: Shell, serve: Serve, tmp: Path, way: str) -> None:
    serve(WAITS, WAITS, reply("on"))
    killed = in_a_command(shell, tmp, "new", "one", "--empty")
    (session,) = shell.ids
    stop(killed)
    (dead,) = left(tmp)
    live = in_a_command(shell, tmp, "new", "two", "--empty")
    (alive,) = set(left(tmp)) - {dead}
    if way == "gc":
        done = shell.run("gc", "--dry-run")
        assert (done.code, "(5 bytes) would be removed" in done.text) == (0, True), done.text
        assert dead.exists()
        done = shell.run("gc")
        assert (done.code, "(5 bytes) removed" in done.text) == (0, True), done.text
        assert "temporary" not in shell.run("gc").text
    elif way == "resume":
        done = shell.run("resume", session, "on", "-p")
        assert (done.code, done.text) == (0, "on\n"), done.err
    else:
        done = shell.run(*way.split(), session, "--yes")
        assert done.code == 0, done.err
    assert left(tmp) == [alive]
    assert (alive / "left").exists()
    stop(live, 15)
    assert left(tmp) == [], "an end that is no kill leaves none"


def test_a_session_that_does_not_open_leaves_none(shell: Shell, serve: Serve, tmp: Path) -> None:
    serve(reply("one"))
    assert shell.run("new", "one", "--empty", "-p").code == 0
    (session,) = shell.ids
    for words in (["resume", session, "on", "-p", "--budget", "50"], ["new", "x", "--empty", "-p", "--budget", "50"]):
        done = shell.run(*words)
        assert done.code == 2, done.err
    assert left(tmp) == []
    assert len(of_type(shell.events(session), "opened")) == 0
    assert os.listdir(shell.home / "workspaces") == [session]
