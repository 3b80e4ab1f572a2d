"""Trees that are deeper than Python calls, than a path is long, or that do not read: every command gets past them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.log.depths import discard_tree
from agentsh.testing.server import ScriptedServer, call, reply
from agentsh.workspace.provision import ABANDONED_S, PARTIAL
from tests.e2e.harness import Done, Shell, of_type
from tests.log.test_depths import deepen
from tests.workspace.test_clone import git, write

Serve = Callable[..., ScriptedServer]

LOOP = """\
mkdir deep && cd deep && i=0 some={name} && for n in 1 2 3 4 5 6; do some=$some/$some; done
while [ $i -lt 17 ]; do mkdir -p $some && cd $some || exit 9; i=$((i+1)); done
echo found > file && cd / && echo made"""
"""What a command does that makes a directory in the last one 1,088 times. Python calls a thousand deep."""

SHAPES = {"no stack holds it": "a", "no path reaches it": "eightchr"}


@pytest.fixture(params=list(SHAPES.values()), ids=list(SHAPES))
def name(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the name of each directory of a deep tree; nothing of it is left for others to clean up."""
    yield request.param
    for place in ("user", "project"):
        discard_tree(str(tmp_path / place))


def told(done: Done, code: int = 0, most: int = 800) -> str:
    """Return what a command said, none of it for programmers and no line longer than somebody reads."""
    said = done.text + done.err
    assert done.code == code, said[-3000:]
    assert "Traceback" not in said
    assert "internal error" not in said
    assert max(map(len, said.splitlines()), default=0) < most
    return said


@pytest.mark.parametrize("name", [SHAPES["no path reaches it"]], indirect=True)
def test_a_session_whose_command_digs(shell: Shell, serve: Serve, name: str) -> None:
    (shell.cwd / "kept").write_text("kept\n")
    dig = reply(calls=[call("shell", {"command": LOOP.format(name=name)})])
    seen = reply(calls=[call("shell", {"command": "pwd; ls; cat kept"})])
    serve(dig, reply("dug"), seen, reply("on"), reply("child"), reply("made again"))
    told(shell.run("new", "dig", "-p", "--mode", "yolo"))
    (session,) = shell.ids
    (result,) = of_type(shell.events(session), "tool_result")
    assert "made" in result["for_model"]
    at = len(shell.events(session))
    assert (shell.workspace(session) / "deep" / name).is_dir()
    assert told(shell.run("resume", session, "on", "-p", "--mode", "yolo")).endswith("on\n")
    assert (
        f"{shell.workspace(session)}\ndeep\nkept\nkept"
        in of_type(shell.events(session), "tool_result")[1]["for_model"]
    )

    assert "not in the workspace of the fork: deep/" in told(shell.run("fork", session, "--at", str(at)))
    (child,) = set(shell.ids) - {session}
    assert (shell.workspace(child) / "kept").read_text() == "kept\n"
    told(shell.run("resume", child, "hello", "-p"))
    assert "not looked into: deep/" in told(shell.run("rewind", session, "--to", "3"))
    told(shell.run("rewind", session, "--undo"))
    told(shell.run("diff", session))
    told(shell.run("apply", session, "--check"), most=4_000)  # it lists what it would make
    told(shell.run("archive", session))
    assert "0 damaged" in told(shell.run("verify", "--all"))
    told(shell.run("unarchive", session))
    discard_tree(str(shell.workspace(session)))
    told(shell.run("resume", session, "hello", "-p"))
    assert (shell.workspace(session) / "kept").read_text() == "kept\n"

    deepen(shell.workspace(session) / "again", 1_050, name)
    said = told(shell.run("rm", session), 2)
    assert "nowhere else" in said or "does not have like that" in said, "what nobody looked into is asked about too"
    told(shell.run("rm", session, "--yes"))
    told(shell.run("restore", session))
    told(shell.run("rm", session, "--yes"))
    told(shell.run("gc", "--older-than", "0"))
    told(shell.run("rm", child, "--yes", "--now"))
    assert [os.listdir(shell.home / place) for place in ("sessions", "workspaces", "trash")] == [[], [], []]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("kind", ["copy", "git", "untracked", "in place"])
def test_a_project_that_is_deep(shell: Shell, serve: Serve, name: str, kind: str) -> None:
    serve(reply("hello"), reply("again"))
    project = shell.cwd
    write(project, "kept", "kept\n")
    (project / os.fsdecode(b"caf\xe9")).mkdir()
    (project / os.fsdecode(b"caf\xe9") / os.fsdecode(b"\xfe")).write_text("no text")
    if kind in ("git", "untracked"):
        git(project, "init", "-q")
        git(project, "add", "kept")
        git(project, "commit", "-q", "-m", "first")
    deepen(project / "deep", 1_050, name, b"found\n")
    if kind == "git" and name == "a":
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "deep")
    said = told(shell.run("new", "hello", "-p", *(["--in-place"] if kind == "in place" else [])))
    (session,) = shell.ids
    if kind != "in place":
        there = shell.workspace(session)
        assert (there / "kept").read_text() == "kept\n"
        assert (there / os.fsdecode(b"caf\xe9") / os.fsdecode(b"\xfe")).read_text() == "no text"
        assert (there / Path("deep", *["a"] * 1_050, "file")).exists() == (name == "a")
        assert ("left out of the workspace: deep/" in said) == (name != "a"), said
        assert [path.name for path in there.parent.iterdir()] == [session], "nothing half-made"
    told(shell.run("resume", session, "again", "-p"))
    told(shell.run("doctor"))


AS_AN_OWNER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []


@pytest.mark.skipif(bool(AS_AN_OWNER) and shutil.which("setpriv") is None, reason="root may do anything")
def test_directories_that_do_not_read(shell: Shell) -> None:
    """One in the project is left out and told; one in a workspace is asked about, and no `rm` stumbles over it."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        from tests.e2e.harness import COMMAND

        return subprocess.run(
            [*AS_AN_OWNER, str(COMMAND), *words], cwd=shell.cwd, env=shell.env(AGENTSH_MODEL="demo"), text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=99, check=False,
        )  # fmt: skip

    write(shell.cwd, "shut/file", "x")
    write(shell.cwd, "kept", "kept\n")
    (shell.cwd / "shut").chmod(0)
    try:
        done = run("new", "hello", "-p")
        assert done.returncode == 0, done.stderr
        assert "left out of the workspace: shut (not readable)" in done.stderr
        (session,) = shell.ids
        mine = shell.workspace(session) / "mine"
        write(mine, "shut/file", "work")
        (mine / "shut").chmod(0)
        assert run("resume", session, "again", "-p").returncode == 0
        assert "not in the workspace of the fork: mine/shut" in run("fork", session).stdout
        asked = run("rm", session)
        assert (asked.returncode, "  mine/shut\n" in asked.stdout) == (2, True), asked.stdout + asked.stderr
        (child,) = set(shell.ids) - {session}
        assert run("rm", session, child, "--yes").returncode == 0
        done = run("gc", "--older-than", "0")
        assert done.returncode == 0, done.stderr
        assert os.listdir(shell.home / "trash") == []
    finally:
        (shell.cwd / "shut").chmod(0o700)


def test_a_half_made_workspace_that_is_deep_is_swept(shell: Shell, serve: Serve, name: str) -> None:
    serve(reply("hello"))
    left = shell.home / "workspaces" / f".20261129-aaaaaa{PARTIAL}0123abcd"
    deepen(left, 1_050, name)
    os.utime(left, (1, ABANDONED_S))
    told(shell.run("new", "hello", "-p"))
    assert os.listdir(shell.home / "workspaces") == shell.ids
