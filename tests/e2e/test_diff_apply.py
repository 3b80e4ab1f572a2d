"""`diff` and `apply` as commands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell
from tests.workspace.test_clone import everything, git, write

Serve = Callable[..., ScriptedServer]


def sh(command: str) -> Any:
    return reply(calls=[call("shell", {"command": command})])


def test_from_a_copy_and_back(shell: Shell, serve: Serve) -> None:
    write(shell.cwd, "a.txt", "1\n2\n3\n4\n5\n")
    write(shell.cwd, "old.txt", "x\n")
    serve(
        sh("sed -i s/2/TWO/ a.txt; rm old.txt; mkdir d; echo n > d/new.txt"), reply("one"),
        sh("sed -i s/TWO/two/ a.txt; echo more >> d/new.txt"), reply("two"),
    )  # fmt: skip
    shell.run("new", "go", "-p", "--mode", "yolo")
    (session,) = shell.ids
    shell.workspace().joinpath("mine").write_text("not the agent's\n")
    assert [(c["path"], c["status"]) for c in shell.run("diff", session, "--json").events] == [
        ("a.txt", "M"), ("d/new.txt", "A"), ("old.txt", "D"),
    ]  # fmt: skip
    assert "3 files changed, +2 -2" in shell.inside("diff", session, "--stat").text
    assert shell.inside("diff", session, "--at", "3").text == ""
    patch = shell.inside("diff", session)
    assert "-2\n+TWO\n" in patch.text
    assert "\x1b" not in patch.text

    write(shell.cwd, "a.txt", "1\nuser\n3\n4\n5\n")
    refused = shell.run("apply", session)
    assert refused.code == 1
    assert "conflict: a.txt" in refused.text
    assert "@@ -2,1 +1 lines @@" in refused.text
    assert (shell.cwd / "old.txt").exists(), "all or nothing"
    write(shell.cwd, "a.txt", "1\n2\n3\n4\nuser\n")
    assert shell.inside("apply", session, "--check").code == 0
    assert (shell.cwd / "old.txt").exists()
    done = shell.inside("apply", session)
    assert (done.code, "merged with your changes: a.txt" in done.text) == (0, True), done.text
    assert (shell.cwd / "a.txt").read_text() == "1\nTWO\n3\n4\nuser\n"
    assert not (shell.cwd / "old.txt").exists()
    assert (shell.cwd / "d" / "new.txt").read_text() == "n\n"
    assert not (shell.cwd / "mine").exists()
    assert "0 paths changed" in shell.inside("apply", session).text
    child = shell.inside("fork", session, "--json").events[0]["id"]
    noted = [shell.home / "sessions" / one / "applied.json" for one in (session, child)]
    assert json.loads(noted[0].read_bytes()) == json.loads(noted[1].read_bytes())
    assert [file.stat().st_mode & 0o777 for file in noted] == [0o600, 0o600]

    assert shell.run("resume", session, "on", "-p").code == 0
    again = shell.inside("apply", session)
    assert (again.code, "merged with your changes: a.txt" in again.text) == (0, True), again.text
    assert (shell.cwd / "a.txt").read_text() == "1\ntwo\n3\n4\nuser\n"
    assert (shell.cwd / "d" / "new.txt").read_text() == "n\nmore\n"

    elsewhere = shell.cwd.parent / "elsewhere"
    elsewhere.mkdir()
    assert shell.inside("apply", session, "--to", str(elsewhere)).code == 1, "there is nothing to change there"
    assert list(elsewhere.iterdir()) == []
    assert shell.inside("apply", session, "--to", str(elsewhere / "no")).code == 2
    assert shell.inside("apply", session, "--branch").code == 2


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_branch_to_merge(shell: Shell, serve: Serve) -> None:
    root: Path = shell.cwd
    git(root, "init", "-q", "-b", "main")
    write(root, "a.txt", "1\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    serve(sh("echo 2 >> a.txt; echo n > new.txt"), reply("one"))
    shell.run("new", "do it", "-p", "--mode", "yolo")
    (session,) = shell.ids
    before = everything(root)
    done = shell.inside("apply", session, "--branch")
    assert done.code == 0, done.err
    after = {path: row for path, row in everything(root).items() if not path.startswith(".git/")}
    assert after == {path: row for path, row in before.items() if not path.startswith(".git/")}
    assert git(root, "log", "--format=%s", f"agentsh/{session}").splitlines() == ["do it", "first"]
    git(root, "merge", "-q", f"agentsh/{session}")
    assert (root / "a.txt").read_text() == "1\n2\n"
    assert (root / "new.txt").read_text() == "n\n"
    assert git(shell.workspace(), "status", "--porcelain") == " M a.txt\n?? new.txt"
    assert git(shell.workspace(), "for-each-ref", "refs/agentsh") == ""


def test_a_branch_runs_nothing_that_the_session_named(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    """A filter in the configuration of a repository that the session made, or of its clone, runs in no sandbox."""
    root: Path = shell.cwd
    git(root, "init", "-q", "-b", "main")
    write(root, "a.txt", "1\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    ran = tmp_path / "ran"
    name = "-c user.name=s -c user.email=s@localhost"
    serve(
        sh(
            f"git init -q sub && echo 1 > sub/f && git -C sub add . && git {name} -C sub commit -qm s && git add sub"
            f" && git {name} commit -qm with && echo '* filter=e' > sub/.gitattributes"
            f" && git -C sub config filter.e.clean 'touch {ran}; cat' && touch -d yesterday sub/f"
            " && printf '[submodule \"n\"]\\n\\tpath = sub\\n\\turl = x\\n\\tignore = none\\n' > .gitmodules"
        ),
        reply("one"),
    )
    assert shell.run("new", "do it", "-p", "--mode", "yolo").code == 0
    (session,) = shell.ids
    ran.unlink(missing_ok=True)
    done = shell.inside("apply", session, "--branch")
    assert done.code == 0, done.err
    assert not ran.exists()
    assert git(root, "ls-tree", f"agentsh/{session}", "sub").startswith("160000 commit ")

    workspace = shell.workspace()
    git(workspace, "config", "filter.x.clean", f"touch {ran}; cat")
    write(workspace, ".gitattributes", "* filter=x\n")
    done = shell.inside("apply", session, "--branch")
    assert done.code != 0
    assert "filter.x.clean" in done.err
    assert not ran.exists()


def test_in_place_and_empty(shell: Shell, serve: Serve) -> None:
    serve(sh("echo 1 > f"), reply("one"), sh("echo 2 > g"), reply("two"))
    shell.run("new", "go", "-p", "--mode", "yolo", "--in-place")
    done = shell.inside("apply", "--", shell.ids[0])
    assert (done.code, "in place" in done.err) == (2, True)
    shell.run("new", "go", "-p", "--mode", "yolo", "--empty")
    last = next(s for s in shell.ids if '"empty"' in str(shell.log(s).read_text()))
    refused = shell.inside("apply", last)
    assert (refused.code, f"`agentsh apply {last} --to PATH`" in refused.err) == (2, True), "`/apply` has no `--to`"
    target = shell.cwd / "out"
    target.mkdir()
    assert shell.inside("apply", last, "--to", str(target)).code == 0
    assert (target / "g").read_text() == "2\n"


def test_a_copy_that_was_pulled_holds_no_snapshots_and_says_so(shell: Shell, tmp_path: Path) -> None:
    """Its files are where it was copied from; what needs them says that, and what goes on without them."""
    assert shell.run("new", "create a small project", "-p", "--model", "demo", "--empty").code == 0
    (session,) = shell.ids
    place = f"file://{tmp_path / 'copies'}"
    assert shell.run("push", session, "--to", place).code == 0
    shutil.rmtree(shell.home)
    assert shell.run("pull", session, "--from", place).code == 0
    for words in (["diff"], ["apply", "--to", str(tmp_path)], ["rewind", "--to", "5"], ["fork"]):
        done = shell.inside(words[0], session, *words[1:])
        assert (done.code, done.err.count("\n")) == (1, 1), done.err
        assert "a copy that `pull` brings holds no snapshots" in done.err
    refused = shell.run("resume", session, "list the files", "-p")
    assert (refused.code, f"`agentsh resume {session} --dir PATH`" in refused.err) == (1, True), refused.err
    (tmp_path / "new").mkdir()
    assert shell.run("resume", session, "list the files", "-p", "--dir", str(tmp_path / "new")).code == 0
    assert shell.inside("rewind", session, "--to", "5", "--what", "conversation").code == 0
