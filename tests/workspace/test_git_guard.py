"""What decides which programs git runs is found, held, and put back where it cannot be held."""

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from agentsh.app.paths import Home
from agentsh.app.sandboxes import guarded_files, make_workspace
from agentsh.app.settings import Settings
from agentsh.ports.snapshots import Step
from agentsh.testing import MemoryBlobs
from agentsh.workspace.git_guard import decides
from agentsh.workspace.git_watch import GitWatch
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.sandbox import probe
from agentsh.workspace.snapshot_thread import WorkspaceSnapshots

GIT = ["git", "-c", "user.name=a", "-c", "user.email=b", "-c", "init.defaultBranch=main", "-c", "init.templateDir="]
SESSION = f"guarded-{os.getpid()}"
"""Of this process: the end of a session kills what has its mark, in a test that runs beside this one too."""
WITH_BWRAP = pytest.mark.skipif(not probe("bwrap").works, reason="no bubblewrap")
WITH_LANDLOCK = pytest.mark.skipif(not probe("landlock").works, reason="no Landlock")
KINDS_HERE = [kind for kind in ("bwrap", "landlock") if probe(kind).works]
KINDS = [pytest.param("bwrap", marks=WITH_BWRAP), pytest.param("landlock", marks=WITH_LANDLOCK)]


def git(place: Path, *args: str) -> str:
    return subprocess.run([*GIT, *args], cwd=place, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(root: Path) -> Path:
    """As a clone of ours is: without a directory for hooks."""
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    assert not (root / ".git" / "hooks").exists()
    return root


def made(root: Path, kind: str, tmp_path: Path, *, in_place: bool = False) -> LocalWorkspace:
    settings = Settings.model_validate({"sandbox": {"kind": kind}})
    home = Home(tmp_path / "home", trusted=True)
    return make_workspace(root, session=SESSION, in_place=in_place, start=None, home=home, settings=settings)


def would_run(root: Path, mark: Path) -> bool:
    """Whether git, outside of a sandbox, runs what a command left."""
    subprocess.run([*GIT, "status"], cwd=root, capture_output=True, check=False)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "y"], cwd=root, capture_output=True, check=False)
    return mark.exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "line",
    [
        "mkdir -p .git/hooks; cd .git/hooks; printf '#!/bin/sh\\ntouch {mark}\\n' > pre-commit; chmod +x pre-commit",
        "cp -r .git e; git config -f e/config core.fsmonitor 'touch {mark}; false'; echo ../e > .git/commondir",
        "git config core.fsmonitor 'touch {mark}; false'",
        "cp -r .git e; git config -f e/config core.fsmonitor 'touch {mark}; false'; mv .git x; mv e .git",
        "cp -r .git e; git config -f e/config core.fsmonitor 'touch {mark}; false'; mv .git x; ln -s e .git",
        "cp -r .git e; git config -f e/config core.fsmonitor 'touch {mark}; false'; mv .git x; echo gitdir: e > .git",
        "mkdir -p a/b; mv .git a/b/x; git init -q .; git config core.fsmonitor 'touch {mark}; false'",
    ],
)
async def test_git_outside_runs_nothing_of_a_command(repository: Path, tmp_path: Path, kind: str, line: str) -> None:
    mark, control = tmp_path / "mark", tmp_path / "control"
    shutil.copytree(repository, control)
    await LocalWorkspace(control, session=SESSION).run(line.format(mark=mark), timeout_s=20, max_bytes=2_000)
    assert would_run(control, mark), "without a sandbox it works, else this shows nothing"
    mark.unlink()
    workspace = made(repository, kind, tmp_path)
    result = await workspace.run(line.format(mark=mark), timeout_s=20, max_bytes=2_000)
    assert not would_run(repository, mark), result.output
    assert git(repository, "log", "--format=%s").split() == ["y", "x"], "the repository is as it was"
    if kind == "landlock":
        assert result.undone
        assert "Put back" in result.put_back
    assert "user.name" not in git(repository, "config", "--list", "--local")
    await workspace.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_command_that_goes_on_is_ended(repository: Path, tmp_path: Path, kind: str) -> None:
    workspace = made(repository, kind, tmp_path)
    began = time.monotonic()
    line = "trap '' TERM; while :; do echo x > .git/commondir; sleep 0.01; done"
    result = await workspace.run(line, timeout_s=30, max_bytes=2_000)
    assert time.monotonic() - began < 5
    assert result.stopped
    assert not (repository / ".git" / "commondir").exists()
    assert (await workspace.run("git status", timeout_s=20, max_bytes=2_000)).exit == 0
    await workspace.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_git_works_as_ever(repository: Path, tmp_path: Path, kind: str) -> None:
    workspace = made(repository, kind, tmp_path)
    line = (
        "set -e; echo a > a; git add a; git -c user.name=x -c user.email=y commit -qm a; git checkout -qb other; "
        "git gc -q; git stash list; git log --oneline | wc -l"
    )
    result = await workspace.run(line, timeout_s=60, max_bytes=2_000)
    assert (result.exit, result.undone) == (0, ()), result.output
    if kind == "landlock":  # there git may write down what a branch follows; a mounted file is busy
        result = await workspace.run(
            "git branch --track new other; git branch -d main", timeout_s=60, max_bytes=2_000
        )
        assert (result.exit, result.undone) == (0, ()), result.output
        assert "branch.new.merge" in git(repository, "config", "--list", "--local")
    await workspace.close()


def test_what_the_user_changes_between_commands_is_right(repository: Path) -> None:
    watch = GitWatch(str(repository), holds=False)
    watch.begin()
    assert watch.end() == ()
    git(repository, "config", "user.name", "x")
    mark = watch.begin()
    assert watch.look(mark) is None
    assert watch.end() == ()
    assert "x" in git(repository, "config", "--local", "user.name")


@WITH_LANDLOCK
async def test_a_command_cancelled_as_it_begins_is_not_watched_for_ever(repository: Path, tmp_path: Path) -> None:
    workspace, open_before = made(repository, "landlock", tmp_path), len(os.listdir("/proc/self/fd"))
    for beats in range(4):
        tasks = [asyncio.create_task(workspace.run("sleep 9", timeout_s=20, max_bytes=2_000)) for _ in range(2)]
        for _ in range(beats):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    git(repository, "config", "user.name", "x")
    result = await workspace.run("true", timeout_s=20, max_bytes=2_000)
    assert result.undone == ()
    assert git(repository, "config", "--local", "user.name") == "x\n"
    assert len(os.listdir("/proc/self/fd")) <= open_before + 1
    await workspace.close()


def test_no_link_leads_the_undoing_out(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    hooks = repository / ".git" / "hooks"
    hooks.mkdir()
    (hooks / "pre-push").write_text("theirs")
    watch = GitWatch(str(repository), holds=False)
    mark = watch.begin()
    hooks.rename(repository / "away")
    hooks.symlink_to(outside)
    assert watch.look(mark) is not None
    assert set(watch.end()) == {".git/hooks", ".git/hooks/pre-push"}
    assert (outside / "secret").exists()
    assert (hooks / "pre-push").read_text() == "theirs"
    assert os.listdir(outside) == ["secret"]


def test_what_is_there_to_be_held(repository: Path) -> None:
    (repository / "sub" / "deeper").mkdir(parents=True)
    git(repository / "sub" / "deeper", "init", "-q")
    (repository / "worktree").mkdir()
    (repository / "worktree" / ".git").write_text("gitdir: /elsewhere\n")
    module = repository / ".git" / "modules" / "m"
    (module / "objects").mkdir(parents=True)
    (module / "config").touch()
    found = decides(str(repository), in_place=False)
    inner = (repository / ".git", repository / "sub" / "deeper" / ".git", module)
    assert {str(place / name) for place in inner for name in ("config", "hooks")} < set(found)
    assert str(repository / "worktree" / ".git") in found


def test_in_place_what_the_configuration_names_is_held_and_asked_about(repository: Path, tmp_path: Path) -> None:
    for name in (".githooks/pre-commit", "tools/clean.sh", ".husky/_/h", "src/main.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).touch()
    git(repository, "config", "core.hooksPath", ".githooks")
    git(repository, "config", "filter.x.clean", "sh tools/clean.sh %f")
    git(repository, "config", "include.path", "../.gitconfig")
    (repository / ".gitconfig").write_text("[core]\n\tfsmonitor = ./tools/clean.sh\n\thooksPath = .husky/_\n")
    assert guarded_files(repository, Settings(), in_place=False) == frozenset()
    wanted = {".githooks", ".husky", "tools/clean.sh", ".gitconfig"}
    assert guarded_files(repository, Settings(), in_place=True) == wanted
    assert {str(repository / name) for name in wanted} < set(decides(str(repository), in_place=True))


@WITH_BWRAP
async def test_hooks_that_are_in_the_project_cannot_be_changed(repository: Path, tmp_path: Path) -> None:
    (repository / ".githooks").mkdir()
    git(repository, "config", "core.hooksPath", ".githooks")
    workspace = made(repository, "bwrap", tmp_path, in_place=True)
    result = await workspace.run("echo x > .githooks/pre-commit; mv .githooks y", timeout_s=20, max_bytes=2_000)
    assert result.exit != 0
    assert not list((repository / ".githooks").iterdir())
    await workspace.close()


@WITH_BWRAP
async def test_links_cannot_be_turned(repository: Path, tmp_path: Path) -> None:
    theirs = repository / "githooks"
    theirs.mkdir()
    (repository / ".git" / "hooks").symlink_to("../githooks")
    workspace = made(repository, "bwrap", tmp_path, in_place=True)
    line = "echo x > githooks/pre-commit; rm .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit"
    result = await workspace.run(line, timeout_s=20, max_bytes=2_000)
    assert result.undone == (".git/hooks",)
    assert (repository / ".git" / "hooks").readlink() == Path("../githooks")
    assert not list(theirs.iterdir())
    assert workspace.guards
    await workspace.close()
    (repository / ".git").rename(tmp_path / "elsewhere")
    (repository / ".git").symlink_to(tmp_path / "elsewhere")
    workspace = made(repository, "bwrap", tmp_path, in_place=True)
    assert not workspace.guards, "so that it is asked"
    await workspace.close()


@WITH_LANDLOCK
async def test_in_place_landlock_does_not_hold_it_and_says_so(repository: Path, tmp_path: Path) -> None:
    workspace = made(repository, "landlock", tmp_path, in_place=True)
    assert not workspace.guards
    own = made(repository, "landlock", tmp_path)
    assert own.guards
    for each in (workspace, own):
        await each.close()


@WITH_LANDLOCK
async def test_what_only_looks_or_names_whom_is_left(repository: Path, tmp_path: Path) -> None:
    """Who commits, and which submodules there are; but nothing that hides behind such a name."""
    workspace = made(repository, "landlock", tmp_path)
    line = (
        "set -e; git config user.name N; git config user.email n@n; git config pull.rebase false; "
        "git init -q new; cd new; git -c user.name=x -c user.email=y commit -q --allow-empty -m n; cd ..; "
        "git -c protocol.file.allow=always submodule add -q ./new sub; git commit -qm sub; git log --format=%an -1"
    )
    result = await workspace.run(line, timeout_s=60, max_bytes=2_000)
    assert (result.exit, result.stopped, result.undone) == (0, None, ()), result.output
    assert result.output.endswith("N\n")
    line = "git config submodule.sub.update $'!touch x; .url\\n'"
    result = await workspace.run(line, timeout_s=60, max_bytes=2_000)
    assert result.undone == (".git/config",)
    await workspace.close()


@WITH_LANDLOCK
async def test_what_the_user_allowed_and_what_agentsh_does_is_no_doing_of_a_job(
    repository: Path, tmp_path: Path
) -> None:
    """Beside a job: an approved command outside of the sandbox, a file tool, a rewind (`taken_over`)."""
    workspace = made(repository, "landlock", tmp_path)
    line = "until [ -e go ]; do sleep 0.05; done; sleep 0.1; echo to the end"
    job = asyncio.create_task(workspace.run(line, timeout_s=60, max_bytes=2_000))
    await asyncio.sleep(0.2)
    approved = "git config core.pager cat; mkdir -p .git/hooks; sleep 0.2; echo x > .git/hooks/pre-push"
    assert (await workspace.run(approved, timeout_s=20, max_bytes=99, outside_sandbox=True)).exit == 0
    workspace.write_bytes(".git/hooks/post-commit", b"written")
    with workspace.taken_over():
        (repository / ".git" / "hooks" / "pre-commit").write_text("as it was")
        await asyncio.sleep(0.1)
    (repository / "go").touch()
    result = await job
    assert (result.exit, result.output, result.stopped, result.undone) == (0, "to the end\n", None, ())
    assert git(repository, "config", "core.pager") == "cat\n"
    assert set(os.listdir(repository / ".git" / "hooks")) == {"pre-push", "post-commit", "pre-commit"}
    await workspace.close()


@WITH_LANDLOCK
async def test_a_rewind_beside_a_job_takes_the_configuration_back(repository: Path, tmp_path: Path) -> None:
    workspace = made(repository, "landlock", tmp_path)
    shots = WorkspaceSnapshots(str(repository), MemoryBlobs(), git="own", around=workspace.taken_over)
    (first,) = await shots.before(look=True)
    line = "until [ -e go ]; do sleep 0.05; done; sleep 0.1; echo to the end"
    job = asyncio.create_task(workspace.run(line, timeout_s=60, max_bytes=2_000))
    await workspace.run("git config core.pager cat", timeout_s=20, max_bytes=99, outside_sandbox=True)
    (second,) = await shots.after(None)
    winding = await shots.plan([Step(1, first.ref, "start"), Step(3, second.ref, "tool")], 2)
    assert ".git/config" in winding.paths
    await shots.wind(winding)
    await asyncio.sleep(0.1)
    (repository / "go").touch()
    result = await job
    assert (result.output, result.stopped, result.undone) == ("to the end\n", None, ())
    assert "pager" not in (repository / ".git" / "config").read_text()
    await shots.close()
    await workspace.close()


def test_what_a_job_did_before_others_come_is_undone_and_told(repository: Path) -> None:
    watch = GitWatch(str(repository), holds=False)
    mark = watch.begin()
    (repository / ".git" / "commondir").write_text("../evil")
    with watch.others():
        assert not (repository / ".git" / "commondir").exists()
        git(repository, "config", "core.pager", "cat")
    assert watch.look(mark) is not None
    assert watch.end() == (".git/commondir",)
    assert git(repository, "config", "core.pager") == "cat\n"


async def test_a_command_that_is_cancelled_as_it_begins_leaves_nothing_behind(
    repository: Path, tmp_path: Path
) -> None:
    """Else all that the user changes later would be undone."""
    workspace = made(repository, KINDS_HERE[-1], tmp_path) if KINDS_HERE else pytest.skip("no sandbox")
    for turns in range(4):
        task = asyncio.create_task(workspace.run("true", timeout_s=20, max_bytes=99))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert workspace._git is not None
    assert workspace._git._running == 0
    await workspace.close()
