"""Repositories that are not as most are: their user's are only read all the same, and the clone is a whole one."""

import os
from pathlib import Path

import pytest

from agentsh.workspace.git import GitFailed
from agentsh.workspace.git_branch import hand_over
from agentsh.workspace.git_history import HistoryPacker
from agentsh.workspace.provision import provision
from tests.workspace.test_clone import BRANCH, SESSION, everything, git, make, project, write

__all__ = ["project"]


def test_a_sparse_checkout_stays_one(tmp_path: Path, project: Path) -> None:
    """With an index that is sparse itself: reading it must not even set the times of objects."""
    git(project, "commit", "-q", "-a", "-m", "second")
    git(project, "sparse-checkout", "set", "--cone", "--sparse-index", "bin")
    before = everything(project)
    made = make(tmp_path, project)
    assert everything(project) == before
    assert not (made.path / "sub").exists()
    git(made.path, "checkout", "-q", "-f", "other")
    assert not (made.path / "sub").exists()
    assert git(made.path, "ls-files", "-t", "sub") == "S sub/deep/b.txt"


def test_a_filter_of_the_repository_alone(tmp_path: Path, project: Path) -> None:
    """It is not in the clone, since its program may be in the tree; unchanged files are unchanged all the same."""
    write(project, ".gitattributes", "*.up filter=up\n")
    git(project, "config", "filter.up.clean", "tr a-z A-Z")
    for name in ("same.up", "changed.up", "plain.txt"):
        old = write(project, name, "hello\n")
        os.utime(old, (1_700_000_000, 1_700_000_000))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "filtered")
    made = make(tmp_path, project)
    assert made.note == "left out of the workspace: the filter up of the repository's own configuration"
    assert git(made.path, "status", "--porcelain") == ""
    assert git(made.path, "show", "HEAD:same.up") == "HELLO"
    write(made.path, "plain.txt", "new\n")
    branch, commit = hand_over(made.path, SESSION, project, "work")
    assert git(project, "diff", "--stat", "--format=", "HEAD", commit) == (
        " plain.txt | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"
    )
    write(made.path, "changed.up", "hallo\n")
    with pytest.raises(GitFailed, match=r"changed\.up goes through the filter up"):
        hand_over(made.path, SESSION, project, "work")
    assert git(project, "rev-parse", branch) == commit


def test_a_broken_reference_and_odd_places(tmp_path: Path, project: Path) -> None:
    write(project, ".git/refs/heads/broken", "1" * 40 + "\n")
    made = make(tmp_path, project)
    assert made.note == "left out of the workspace: refs/heads/broken (its commit is missing)"
    assert git(made.path, "log", "--format=%s", "other") == "first"
    odd = tmp_path / 'two\nlines "quoted"\\'
    odd.mkdir()
    git(odd, "init", "-q", "--object-format=sha256")
    write(odd, "f")
    git(odd, "add", "-A")
    git(odd, "commit", "-q", "-m", "first")
    made = provision(tmp_path / "ws2" / SESSION, choice="auto", source=odd, homes=[])
    assert (made.kind, git(made.path, "status", "--porcelain")) == ("git", "")
    HistoryPacker(made.path)._run()
    assert git(made.path, "fsck", "--strict") == ""
    assert not (made.path / ".git" / "objects" / "info" / "alternates").exists()


def test_a_partial_clone(tmp_path: Path, project: Path) -> None:
    """Objects may be missing: what is there is packed, and no half pack is left where that cannot be."""
    write(project, "a.txt", "four\n")
    git(project, "commit", "-q", "-a", "-m", "second")
    git(project, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-local", f"file://{project}", str(partial))
    before = everything(partial)
    made = make(tmp_path, partial)
    HistoryPacker(made.path)._run()
    assert not (made.path / ".git" / "objects" / "info" / "alternates").exists()
    assert sorted(p.suffix for p in (made.path / ".git" / "objects" / "pack").iterdir()) == [".idx", ".keep", ".pack"]
    assert everything(partial) == before
    write(made.path, "a.txt", "five\n")
    git(made.path, "commit", "-q", "-a", "-m", "of the agent")
    hand_over(made.path, SESSION, partial, "work")
    assert git(partial, "log", "--format=%s", BRANCH).splitlines() == ["of the agent", "second", "first"]


def test_a_copy_of_a_repository_is_its_own(tmp_path: Path) -> None:
    """Nothing committed yet, so it is copied whole: no password is in it, and no way back to the user's tree."""
    unborn = tmp_path / "unborn"
    write(unborn, "sub/f")
    for place in (unborn, unborn / "sub"):
        git(place, "init", "-q")
        git(place, "remote", "add", "origin", "https://ana:secret@example.org/shop.git")
        git(place, "config", "core.worktree", str(place))
        git(place, "config", "http.extraheader", "AUTHORIZATION: secret")
        git(place, "config", "user.name", "Ana")
    (unborn / ".git" / "config").chmod(0o444)
    write(unborn, "f", "theirs\n")
    made = provision(tmp_path / "ws" / SESSION, choice="auto", source=unborn, homes=[])
    assert made.kind == "copy"
    for place in (made.path, made.path / "sub"):
        assert "secret" not in (place / ".git" / "config").read_text()
        assert git(place, "rev-parse", "--show-toplevel") == str(place)
        assert git(place, "config", "user.name") == "Ana"
    git(made.path, "add", "f")
    assert "secret" in (unborn / ".git" / "config").read_text()
