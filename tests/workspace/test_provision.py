"""A workspace is made whole or not at all, from nothing that is not meant to be copied."""

import os
import stat
from pathlib import Path
from typing import Any, Literal

import pytest

from agentsh.base.errors import WorkspaceError
from agentsh.workspace import provision as module
from agentsh.workspace.provision import Provisioned, provision

Choice = Literal["auto", "from", "empty", "in-place"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "project"
    (source / "src" / "empty").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "src" / "run.sh").write_text("#!/bin/sh\n")
    (source / "src" / "run.sh").chmod(0o755)
    (source / "inside").symlink_to("src/run.sh")
    (source / "dangling").symlink_to("/nowhere/at/all")
    (source / ".git" / "objects").mkdir(parents=True)
    (source / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (source / ".git" / "ignored.log").write_text("x")
    (source / ".gitignore").write_text("*.log\nbuild/\n")
    (source / "debug.log").write_text("x" * 1000)
    (source / "build").mkdir()
    (source / "build" / "out").write_text("x")
    (source / "node_modules" / "m").mkdir(parents=True)
    (source / "node_modules" / "m" / "i.js").write_text("x")
    os.mkfifo(source / "fifo")
    os.utime(source / "src" / "run.sh", ns=(1_000_000_000_000_000_000, 1_111_111_111_123_456_789))
    (source / "src" / "empty").chmod(0o711)
    os.utime(source / "src", ns=(1, 1_222_222_222_000_000_001))
    return source


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "home" / "workspaces" / "20261129-k3v9qd"


def make(target: Path, source: Path, choice: Choice = "auto", **more: Any) -> Provisioned:
    return provision(target, choice=choice, source=source, homes=more.pop("homes", []), **more)


def tree(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*")}


@pytest.mark.parametrize("choice", ["auto", "from"])
def test_copy(target: Path, source: Path, choice: Choice) -> None:
    made = make(target, source, choice)
    assert (made.kind, made.origin, made.path, made.note) == ("copy", str(source), target, None)
    assert tree(target) == {
        "a.txt", "src", "src/empty", "src/run.sh", "inside", "dangling", ".gitignore",
        ".git", ".git/HEAD", ".git/objects", ".git/ignored.log",
    }  # fmt: skip
    assert made.files == 5
    assert made.bytes == sum(p.stat().st_size for p in target.rglob("*") if p.is_file() and not p.is_symlink())
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert stat.S_IMODE(target.parent.stat().st_mode) == 0o700
    assert os.listdir(target.parent) == [target.name]


def test_links_modes_times_and_empty_directories_stay(target: Path, source: Path) -> None:
    make(target, source)
    assert os.readlink(target / "inside") == "src/run.sh"
    assert os.readlink(target / "dangling") == "/nowhere/at/all"
    assert stat.S_IMODE((target / "src" / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "src" / "empty").stat().st_mode) == 0o711
    assert (target / "src" / "run.sh").stat().st_mtime_ns == 1_111_111_111_123_456_789
    assert (target / "src").stat().st_mtime_ns == 1_222_222_222_000_000_001
    assert list((target / "src" / "empty").iterdir()) == []


def test_nothing_is_shared_with_the_source(target: Path, source: Path) -> None:
    make(target, source)
    for path in target.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert path.stat().st_nlink == 1
            assert not path.samefile(source / path.relative_to(target))


def test_a_pointer_to_a_repository_elsewhere_is_left_out(target: Path, source: Path, tmp_path: Path) -> None:
    (source / "sub").mkdir()
    (source / "sub" / ".git").write_text("gitdir: ../../elsewhere\n")
    (source / "other").mkdir()
    (source / "other" / ".git").symlink_to(tmp_path)
    made = make(target, source)
    assert not (target / "sub" / ".git").exists()
    assert not os.path.lexists(target / "other" / ".git")
    assert made.note is not None
    assert "sub/.git" in made.note
    assert "\n" not in made.note


def test_names_that_are_no_text(target: Path, source: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (source / name).write_text("x")
    (source / "Ж").mkdir()
    make(target, source)
    assert (target / name).read_text() == "x"
    assert (target / "Ж").is_dir()


def test_empty(target: Path, source: Path) -> None:
    made = make(target, source, "empty")
    assert (made.kind, made.origin, made.note, made.files) == ("empty", None, None, 0)
    assert list(target.iterdir()) == []
    assert stat.S_IMODE(target.stat().st_mode) == 0o700


def test_in_place(target: Path, source: Path) -> None:
    before = tree(source)
    made = make(target, source, "in-place")
    assert (made.kind, made.path) == ("in-place", source)
    assert made.note is not None
    assert str(source) in made.note
    assert tree(source) == before
    assert not target.exists()


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 4), ("MAX_BYTES", 20)])
def test_too_large(target: Path, source: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(module, limit, value)
    made = make(target, source)
    assert (made.kind, made.origin) == ("empty", None)
    assert list(target.iterdir()) == []
    assert made.note is not None
    assert "more than" in made.note
    assert "\n" not in made.note
    with pytest.raises(WorkspaceError, match="more than") as caught:
        make(target.with_name("other"), source, "from")
    assert caught.value.hint
    assert os.listdir(target.parent) == [target.name]


def test_ignored_files_do_not_count(target: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(source / "huge.log", "wb") as file:
        file.truncate(10**12)
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    assert make(target, source).kind == "copy"


@pytest.mark.parametrize("below", [True, False])
def test_home_directories_are_refused(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: bool
) -> None:
    user = tmp_path / "users" / "me"
    user.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    source = user.parent if below else user
    made = make(target, source)
    assert made.kind == "empty"
    assert made.note is not None
    assert "home director" in made.note
    with pytest.raises(WorkspaceError, match="home director"):
        make(target.with_name("other"), source, "from")
    (user / "project").mkdir()
    assert make(target.with_name("third"), user / "project").kind == "copy"


def test_the_root_is_refused(target: Path) -> None:
    made = make(target, Path("/"))
    assert made.kind == "empty"
    assert made.note is not None
    assert "root of the file system" in made.note


def test_what_belongs_to_other_sessions_is_never_copied(tmp_path: Path, source: Path) -> None:
    for name in ("sessions", "workspaces", "blobs"):
        (source / name / "20261129-000000").mkdir(parents=True)
        (source / name / "20261129-000000" / "f").write_text("x")
    (source / "src" / "sessions").mkdir()
    target = source / "workspaces" / "20261129-k3v9qd"
    made = make(target, source, homes=[source, tmp_path / "no-home"])
    assert made.kind == "copy"
    assert not {"sessions", "workspaces", "blobs"} & set(os.listdir(target))
    assert (target / "src" / "sessions").is_dir()
    assert sorted(os.listdir(source / "workspaces")) == ["20261129-000000", target.name]


def test_another_projects_sessions_directory_is_copied(target: Path, source: Path) -> None:
    (source / "sessions").mkdir()
    (source / "sessions" / "f").write_text("x")
    make(target, source, homes=[target.parent.parent])
    assert (target / "sessions" / "f").exists()


@pytest.mark.parametrize("what", ["absent", "a.txt"])
def test_from_needs_a_directory(target: Path, source: Path, what: str) -> None:
    with pytest.raises(WorkspaceError, match="--from") as caught:
        make(target, source / what, "from")
    assert caught.value.hint
    assert not target.exists()


def test_a_target_that_is_there_is_not_touched(target: Path, source: Path) -> None:
    target.mkdir(parents=True)
    (target / "work").write_text("x")
    for choice in ("auto", "empty"):
        with pytest.raises(WorkspaceError):
            make(target, source, "auto" if choice == "auto" else "empty")
    assert tree(target) == {"work"}


def test_a_failure_in_the_middle_leaves_nothing(target: Path, source: Path) -> None:
    (source / "src" / "locked").mkdir()
    (source / "src" / "locked" / "f").write_text("x")
    (source / "src" / "locked").chmod(0o555)

    def progress(done: int, total: int, size: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(target, source, progress=progress)
    assert os.listdir(target.parent) == []


def test_a_full_disk_is_told(target: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(WorkspaceError, match="no space left"):
        make(target, source)
    assert os.listdir(target.parent) == []


def test_progress(target: Path, source: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    made = make(target, source, progress=lambda *step: seen.append(step))
    assert [done for done, _, _ in seen] == [1, 2, 3, 4, 5]
    assert seen[-1] == (made.files, made.files, made.bytes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_left_out_and_told(target: Path, source: Path) -> None:
    (source / "a.txt").chmod(0)
    made = make(target, source)
    assert made.note is not None
    assert "1 file could not be read" in made.note
    assert not (target / "a.txt").exists()
