"""Walking leaves out what nobody works on, in order, without following links."""

from pathlib import Path

import pytest

from agentsh.base.errors import PathRefused
from agentsh.workspace.local import LocalWorkspace


def make(root: Path, *paths: str, **texts: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    for path, text in texts.items():
        (root / path).write_text(text)


def walked(workspace: LocalWorkspace, path: str = ".") -> list[str]:
    return [entry.path for entry in workspace.walk(path)]


def test_walk_is_sorted_by_whole_path(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "b", "a/z", "a.b", "a/b/c", "a-b")
    assert walked(workspace) == sorted(["b", "a/z", "a.b", "a/b/c", "a-b"])


def test_git_and_caches_are_left_out(root: Path, workspace: LocalWorkspace) -> None:
    make(root, ".git/config", "x/.git", "node_modules/a/b.js", "p/__pycache__/c.pyc", ".venv/x", "target/x", "keep")
    assert walked(workspace) == ["keep", "target/x"]


def test_gitignore_nested_and_negated(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "a.log", "keep.log", "sub/a.log", "sub/b.log", "build/x", "sub/build/y", "top", "sub/top")
    (root / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/top\n")
    (root / "sub" / ".gitignore").write_text("!b.log\n")
    assert walked(workspace) == [".gitignore", "keep.log", "sub/.gitignore", "sub/b.log", "sub/top"]
    assert walked(workspace, "sub") == ["sub/.gitignore", "sub/b.log", "sub/top"]


def test_an_ignored_directory_that_is_asked_for_is_shown(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "build/x.log", "build/y", "node_modules/a/i.js")
    (root / ".gitignore").write_text("build/\n*.log\n")
    assert walked(workspace, "build") == ["build/x.log", "build/y"]
    assert walked(workspace, "node_modules") == ["node_modules/a/i.js"]


def test_a_cache_can_be_brought_back(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "node_modules/a")
    (root / ".gitignore").write_text("!node_modules\n")
    assert walked(workspace) == [".gitignore", "node_modules/a"]


def test_a_broken_gitignore_hides_nothing_else(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "a.log", "b")
    (root / ".gitignore").write_bytes(b"!\n*.log\n\xff\n[\n/**/!\n")
    assert walked(workspace) == [".gitignore", "b"]


def test_links_are_named_but_not_followed(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "dir/a")
    (root / "link").symlink_to("dir")
    (root / "self").symlink_to(".")
    (root / "out").symlink_to(root.parent / "outside")
    assert [(e.path, e.kind) for e in workspace.walk()] == [
        ("dir/a", "file"),
        ("link", "link"),
        ("out", "link"),
        ("self", "link"),
    ]


def test_a_file_walks_to_itself(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "dir/a")
    (entry,) = workspace.walk("dir/a")
    assert (entry.path, entry.kind, entry.size) == ("dir/a", "file", 1)
    with pytest.raises(PathRefused):
        list(workspace.walk("dir/b"))


def test_entries_tell_kind_and_size(root: Path, workspace: LocalWorkspace) -> None:
    make(root, "dir/a", "f")
    (root / "l").symlink_to("f")
    assert [(e.path, e.kind, e.size) for e in workspace.entries(".")] == [
        ("dir", "directory", 0),
        ("f", "file", 1),
        ("l", "link", 0),
    ]
    assert [e.path for e in workspace.entries("dir")] == ["dir/a"]
