"""What stands in the place of a log, of a session or of a directory: told in one line by every command, never opened
blindly, and it stops no more than it must."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.homes import add, sid

SCRIPT = """
import contextlib, io, json, sys
from agentsh.cli.main import run
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
Said = tuple[int, str, str]


def run(home: Path, *commands: list[str], before: tuple[str, ...] = ()) -> list[Said]:
    """Run commands one after the other in one process; a pipe that somebody waits for would end it by the timeout."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTSH_", "OPENAI_"))}
    done = subprocess.run(
        [*before, sys.executable, "-c", SCRIPT], input=json.dumps(commands), capture_output=True, text=True,
        env=env | {"AGENTSH_HOME": str(home), "HOME": str(home.parent)}, timeout=50, check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return [(code, out, err) for code, out, err in map(json.loads, done.stdout.splitlines())]


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def a_device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        os.mkfifo(path)


KINDS: dict[str, Callable[[Path], None]] = {
    "a named pipe": os.mkfifo,
    "a directory": Path.mkdir,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a socket": a_socket,
    "a device": a_device,
}


def test_something_else_in_the_place_of_a_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    logs = {kind: add(home, n) for n, kind in enumerate(KINDS, 1)}
    for kind, log in logs.items():
        log.unlink()
        KINDS[kind](log)
    modes = {log: log.lstat().st_mode for log in logs.values()}
    ids = [log.parent.name for log in logs.values()]
    every = (["verify"], ["resume", "-p", "x"], ["repair", "--yes"])
    commands = [[words[0], i, *words[1:]] for i in ids for words in every]
    said = run(home, *commands, ["ls"], ["doctor"])
    rows, doctor = said[-2], said[-1]
    for n, kind in enumerate(KINDS):
        words = kind if os.geteuid() == 0 or kind != "a device" else "a named pipe"
        verify, resume, repair = said[3 * n : 3 * n + 3]
        assert (verify[0], resume[0], repair[0]) == (1, 5, 1), kind
        assert f"cannot be read: events.jsonl: {words}" in verify[1]
        assert "move it away" in verify[1]
        assert f"the log of session {ids[n]} is {words}" in resume[2]
        assert f"cannot repair session {ids[n]}: events.jsonl: {words}" in repair[2]
        assert len(resume[2].splitlines()) == len(repair[2].splitlines()) == 1
        assert [line.split()[2] for line in rows[1].splitlines() if ids[n] in line] == ["damaged"]
        assert f"{ids[n]}: cannot be read: events.jsonl: {words}" in doctor[1]
    assert (rows[0], doctor[0]) == (0, 1)
    assert {log: log.lstat().st_mode for log in logs.values()} == modes, "nothing was changed"


NO_MORE_THAN_OTHERS = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search", "--")
"""A root that may open only what its modes allow."""


@pytest.mark.parametrize("owner", ["mine", "of another user"])
def test_a_log_that_may_not_be_read(tmp_path: Path, owner: str) -> None:
    root = os.geteuid() == 0
    if (root and shutil.which("setpriv") is None) or (owner != "mine" and not root):
        pytest.skip("this takes root and setpriv(1)")
    home = tmp_path / "home"
    log = add(home, 1)
    log.chmod(0o600 if owner != "mine" else 0)
    if owner != "mine":
        os.chown(log, 65534, 65534)
    verify, resume, repair, rows, doctor = run(
        home, ["verify", sid(1)], ["resume", sid(1), "-p", "x"], ["repair", sid(1), "--yes"], ["ls"], ["doctor"],
        before=NO_MORE_THAN_OTHERS if root else (),
    )  # fmt: skip
    assert (verify[0], resume[0], repair[0], rows[0], doctor[0]) == (1, 5, 5, 0, 1)
    assert "cannot be read: events.jsonl: Permission denied; `agentsh doctor` looks at the permissions" in verify[1]
    assert "Permission denied" in resume[2]
    assert "Permission denied" in repair[2]
    assert len(resume[2].splitlines()) == len(repair[2].splitlines()) == 1
    assert "damaged" in rows[1]
    assert f"{sid(1)}: cannot be read" in doctor[1]
    assert ("of another user" in doctor[1]) == (owner != "mine")


@pytest.mark.parametrize("kind", ["a link", "a plain file"])
def test_a_session_that_is_no_directory(tmp_path: Path, kind: str) -> None:
    """One rule for all commands: it is listed as damaged, and is no session to any that opens one."""
    home = tmp_path / "home"
    place, elsewhere = add(home, 1).parent, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere) if kind == "a link" else place.write_bytes(b"x")
    before = sorted((p.name, p.lstat().st_mtime_ns) for p in elsewhere.iterdir())
    commands = ("verify", "resume", "repair", "show", "fork", "rm", "archive", "rename")
    last = {"rename": ["x"], "rm": ["--yes"], "repair": ["--yes"], "resume": ["-p", "x"]}
    said = run(
        home, *([name, sid(1), *last.get(name, [])] for name in commands), ["verify", "--all"], ["doctor"], ["ls"]
    )
    for name, (code, out, err) in zip(commands, said, strict=False):
        assert (name, code, out) == (name, 3, "")
        assert f"no session {sid(1)}: sessions/{sid(1)} is {kind}" in err
        assert len(err.splitlines()) == 1
    everything, doctor, rows = said[-3:]
    assert (everything[0], doctor[0], rows[0]) == (1, 1, 0)
    assert f"{sid(1)}  is no session: {kind}" in everything[1]
    assert f"{sid(1)}: is no session: {kind}" in doctor[1]
    assert "damaged" in rows[1]
    assert sorted((p.name, p.lstat().st_mtime_ns) for p in elsewhere.iterdir()) == before


def test_files_where_directories_belong(tmp_path: Path) -> None:
    """Checkpoints, quarantine and a workspace: told by verify and doctor; only the last one stops `resume`."""
    home = tmp_path / "home"
    for n in (1, 2):
        place = add(home, n).parent
        for name in ("checkpoints", "quarantine"):
            (place / name).write_bytes(b"x")
            (place / name).chmod(0o600)
    (home / "workspaces" / sid(2)).rmdir()
    (home / "workspaces" / sid(2)).write_bytes(b"x")
    verify, goes, stops, doctor = run(
        home, ["verify", "--all"], ["resume", sid(1), "-p", "x", "--model", "demo"],
        ["resume", sid(2), "-p", "x", "--model", "demo"], ["doctor"],
    )  # fmt: skip
    assert (verify[0], goes[0], stops[0], doctor[0]) == (0, 0, 1, 0)
    for out in (verify[1], doctor[1]):
        assert out.count("/checkpoints is a plain file where a directory belongs: no checkpoint is saved") == 2
        assert out.count("/quarantine is a plain file where a directory belongs") == 2
        assert f"workspaces/{sid(2)} is a plain file where a directory belongs" in out
    assert "is no directory, so the workspace is not there" in stops[2]


@pytest.mark.parametrize("name", ["sessions", "workspaces", "blobs", "trash", "index.db"])
def test_doctor_tells_of_a_home_with_something_else_in_its_place(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    add(home, 1)
    if name == "index.db":
        os.mkfifo(home / name, 0o600)
    else:
        shutil.rmtree(home / name, ignore_errors=True)
        (home / name).write_bytes(b"x")
    rows, doctor = run(home, ["ls"], ["doctor"])
    assert (rows[0], doctor[0]) == (int(name == "sessions"), int(name != "index.db"))
    assert f"{name} is {'a named pipe' if name == 'index.db' else 'a plain file'}" in doctor[1]


@pytest.mark.parametrize("what", ["a file", "not readable"])
def test_sessions_that_cannot_be_listed_are_not_none(tmp_path: Path, what: str) -> None:
    """`ls` and `verify --all` said that there were none, exit code 0, and `show` that there was no such session."""
    home = tmp_path / "home"
    add(home, 1)
    root = os.geteuid() == 0
    if what == "a file":
        (home / "sessions").rename(home / "elsewhere")
        (home / "sessions").write_text("x")
    elif root and shutil.which("setpriv") is None:
        pytest.skip("this takes setpriv(1)")
    else:
        (home / "sessions").chmod(0)
    said = run(
        home, ["ls"], ["verify", "--all"], ["show", sid(1)], ["search", "do"], ["gc"], ["doctor"],
        before=NO_MORE_THAN_OTHERS if root and what != "a file" else (),
    )  # fmt: skip
    (home / "sessions").chmod(0o700)
    why = "Not a directory" if what == "a file" else "Permission denied"
    for code, out, err in said[:4]:
        assert (code, out) == (1, "")
        assert err.startswith(f"agentsh: {home}/sessions cannot be listed: {why}")
        assert len(err.splitlines()) == 1
    assert said[4][0] == said[5][0] == 1
    assert f"{home}/sessions cannot be listed: {why}" in said[5][1]
