"""Sessions in a git repository, and workspaces that are not where they were (B44 to B46, N200)."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell, of_type, stop, wait_for
from tests.workspace.histories import state_of
from tests.workspace.test_clone import everything, git, write

Serve = Callable[..., ScriptedServer]
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def sh(command: str) -> Any:
    return reply(calls=[call("shell", {"command": command})])


@pytest.fixture
def project(shell: Shell) -> Path:
    """The user stands in a subdirectory of a repository with work in progress."""
    root = shell.cwd
    git(root, "init", "-q", "-b", "main")
    write(root, "a.txt", "one\n")
    write(root, "pkg/b.txt", "b\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    write(root, "a.txt", "two\n")
    write(root, "new.txt", "n\n")
    shell.cwd = root / "pkg"
    return root


def test_a_session_in_a_repository_works_in_a_clone(shell: Shell, serve: Serve, project: Path) -> None:
    before = everything(project)
    commit = "git -c user.name=A -c user.email=a@b commit -qam agent"
    serve(sh(f"pwd; cat b.txt; echo 3 >> ../a.txt; {commit}; rm ../new.txt"), reply("one"), reply("two"), reply("x"))
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    (session,) = shell.ids
    ws = shell.workspace()
    origin = of_type(shell.events(), "session_init")[0]["workspace"]
    assert (origin["kind"], origin["origin"], origin["start"]) == ("git", str(project), "pkg")
    assert origin["base"] == git(project, "rev-parse", "HEAD")
    (result,) = of_type(shell.events(), "tool_result")
    assert f"{ws}/pkg\nb" in result["for_model"]
    assert git(ws, "log", "--format=%s", f"agentsh/{session}").splitlines() == ["agent", "first"]
    assert everything(project) == before

    rewound = shell.inside("rewind", session, "--to", "3")
    assert rewound.code == 0, rewound.err
    assert git(ws, "log", "--format=%s").splitlines() == ["first"]
    assert git(ws, "status", "--porcelain") == git(project, "status", "--porcelain")
    assert shell.inside("rewind", session, "--undo").code == 0
    assert git(ws, "log", "--format=%s").splitlines() == ["agent", "first"]
    assert git(ws, "fsck", "--connectivity-only") == ""

    child = shell.inside("fork", session, "--json").events[0]["id"]
    there = shell.workspace(child)
    assert git(there, "log", "--format=%s", f"agentsh/{child}").splitlines() == ["agent", "first"]
    shutil.rmtree(ws)  # N200: the workspace is gone
    done = shell.run("resume", session, "on", "-p")
    assert (done.code, done.text) == (0, "two\n"), done.err
    assert any("made again" in p["text"] for p in of_type(shell.events(session), "note"))
    assert git(ws, "log", "--format=%s").splitlines() == ["agent", "first"]
    assert (ws / "a.txt").read_text() == "two\n3\n"
    assert not (ws / "new.txt").exists()
    assert everything(project) == before


def test_n200_never_the_current_directory(shell: Shell, serve: Serve) -> None:
    serve(sh("echo 1 > f; mkdir -p d/e; chmod 700 f"), reply("one"), sh("pwd; cat f"), reply("two"))
    shell.run("new", "go", "-p", "--mode", "yolo", "--empty")
    ws = shell.workspace()
    before = state_of(ws)
    ws.rename(shell.home.parent / "moved")
    done = shell.run("resume", "--last", "go on", "-p")
    assert (done.code, done.text) == (0, "two\n"), done.err
    assert state_of(ws) == before
    assert f"{ws}\n1" in of_type(shell.events(), "tool_result")[-1]["for_model"]
    assert os.listdir(shell.cwd) == []


def test_b45_the_directory_of_an_in_place_session_is_gone(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    serve(sh("echo 1 > f"), reply("one"), sh("pwd"), reply("two"))
    place = tmp_path / "mine"
    place.mkdir()
    outside, shell.cwd = shell.cwd, place
    shell.run("new", "go", "-p", "--mode", "yolo", "--in-place")
    place.rename(tmp_path / "renamed")
    shell.cwd = outside
    done = shell.run("resume", "--last", "go on", "-p")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "--dir" in done.err
    made = shell.inside("fork", shell.ids[0], "--json")
    assert made.code == 0, "it can be forked all the same"
    assert (shell.workspace(made.events[0]["id"]) / "f").read_text() == "1\n"
    done = shell.run("resume", shell.ids[0], "go on", "-p", "--dir", str(tmp_path / "renamed"))
    assert (done.code, done.text) == (0, "two\n"), done.err
    assert [p["path"] for p in of_type(shell.events(shell.ids[0]), "workspace_moved")] == [str(tmp_path / "renamed")]


def test_b44_b46_a_renamed_project_and_its_worktrees(shell: Shell, serve: Serve, project: Path) -> None:
    serve(reply("one"), reply("two"), reply("three"))
    shell.run("new", "in the main tree", "-p")
    tree = project.parent / "feature"
    git(project, "worktree", "add", "-q", str(tree), "-b", "feature")
    shell.cwd = tree
    shell.run("new", "in the other tree", "-p")
    assert {row["project"] for row in shell.inside("ls", "--json").events} == {project.name}
    renamed = project.with_name("renamed")
    project.rename(renamed)
    shell.cwd = renamed
    assert len(shell.inside("ls", "--json").events) == 2
    first = next(s for s in shell.ids if "main tree" in str(shell.events(s)))
    done = shell.run("resume", first, "on", "-p")
    assert (done.code, done.text) == (0, "three\n"), done.err


def test_a_session_that_is_killed_leaves_the_repository_alone(shell: Shell, serve: Serve, project: Path) -> None:
    before = everything(project)
    serve(sh("sleep 60"))
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    wait_for(lambda: shell.ids and b"tool_started" in shell.log().read_bytes())
    stop(process)
    assert everything(project) == before
    assert subprocess.run(["git", "fsck"], cwd=shell.workspace(), capture_output=True, check=False).returncode == 0
