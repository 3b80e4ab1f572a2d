"""A clone for a session: everything that the user has right now, and nothing of theirs is ever changed."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from agentsh.base.errors import WorkspaceError
from agentsh.workspace.git_history import HistoryPacker, base_packs
from agentsh.workspace.provision import Provisioned, provision
from tests.workspace.histories import State, state_of

SESSION = "20261129-k3v9qd"
BRANCH = f"agentsh/{SESSION}"


def git(place: Path, *args: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    fixed = {
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0",
        "GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "Ana",
        "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_ALLOW_PROTOCOL": "file",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *args], cwd=place, env={**env, **fixed}, capture_output=True,
        check=True,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def write(root: Path, path: str, data: bytes | str = b"x\n", mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    file.chmod(mode)
    return file


def everything(root: Path) -> dict[str, tuple[int, int, str]]:
    """Each file of a repository, `.git` and all, with mode, mtime and hash."""
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        data = os.readlink(path) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            data = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(root))] = (info.st_mode, info.st_mtime_ns, data)
    return found


def work_tree(root: Path) -> State:
    return {path: row for path, row in state_of(root).items() if ".git" not in path.split("/")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with all sorts of things staged, changed, deleted, untracked and ignored."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, "a.txt", "one\n")
    write(root, "bin/run.sh", "#!/bin/sh\n", 0o755)
    write(root, "sub/deep/b.txt", "b\n")
    write(root, "gone.txt")
    write(root, "crlf.txt", b"a\r\nb\r\n")
    write(root, ".gitattributes", "*.txt text eol=lf\n*.psd filter=lfs diff=lfs merge=lfs -text\n")
    write(root, "art.psd", f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n")
    write(root, os.fsdecode(b"caf\xe9"))
    (root / "link").symlink_to("a.txt")
    (root / "away").symlink_to("/etc/hostname")
    write(root, ".gitignore", "*.log\nbuild/\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    git(root, "branch", "other")
    git(root, "tag", "v1")
    write(root, "stashed.txt", "s\n")
    git(root, "stash", "push", "-q", "-u")
    write(root, "a.txt", "two\n")
    git(root, "add", "a.txt")
    write(root, "a.txt", "three\n")
    write(root, "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    (root / "gone.txt").unlink()
    write(root, "untracked/u.txt", "u\n", 0o600)
    write(root, "debug.log")
    write(root, "build/out.o")
    (root / "empty" / "inner").mkdir(parents=True)
    (root / "sub" / "hollow").mkdir(mode=0o711)
    os.utime(root / "sub" / "deep" / "b.txt", ns=(1, 1_111_111_111_123_456_789))
    return root


def make(tmp_path: Path, source: Path) -> Provisioned:
    return provision(tmp_path / "ws" / SESSION, choice="auto", source=source, homes=[tmp_path / "home"])


def test_the_clone_holds_what_the_user_has(tmp_path: Path, project: Path) -> None:
    before = everything(project)
    made = make(tmp_path, project)
    assert (made.kind, made.origin, made.start, made.note) == ("git", str(project), None, None)
    assert made.base == git(project, "rev-parse", "HEAD")
    wanted = work_tree(project)
    for ignored in ("debug.log", "build", "build/out.o"):
        del wanted[ignored]
    assert work_tree(made.path) == wanted
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert os.listdir(made.path.parent) == [SESSION]
    assert git(made.path, "status", "--porcelain=v1", "-z") == git(project, "status", "--porcelain=v1", "-z")
    assert git(made.path, "diff", "--cached") == git(project, "diff", "--cached")
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == BRANCH
    assert everything(project) == before, "nothing of the user's has changed, not even a time stamp"


def test_references_and_settings(tmp_path: Path, project: Path) -> None:
    git(project, "remote", "add", "origin", "https://ana:secret@example.org/shop.git")
    git(project, "config", "user.name", 'Ana "quoted" \\ back')
    git(project, "config", "core.fsmonitor", "/bin/false")
    git(project, "config", "alias.x", "!touch /tmp/never")
    write(project, ".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n", 0o755)
    made = make(tmp_path, project)
    refs = git(made.path, "for-each-ref", "--format=%(refname)").splitlines()
    assert refs == [f"refs/heads/{BRANCH}", "refs/heads/main", "refs/heads/other", "refs/tags/v1"], "no stash"
    assert git(made.path, "config", "remote.origin.url") == "https://example.org/shop.git"
    assert git(made.path, "config", "user.name") == 'Ana "quoted" \\ back'
    assert git(made.path, "config", "core.fsmonitor") == "false"
    assert "alias" not in git(made.path, "config", "--local", "--list")
    git(made.path, "commit", "-q", "-m", "of the agent")
    assert git(project, "rev-parse", "HEAD") == made.base
    assert git(project, "for-each-ref", "--format=%(refname)", "refs/heads").splitlines() == [
        "refs/heads/main", "refs/heads/other",
    ]  # fmt: skip


def test_it_starts_in_the_same_subdirectory(tmp_path: Path, project: Path) -> None:
    made = make(tmp_path, project / "sub" / "deep")
    assert (made.kind, made.start) == ("git", "sub/deep")
    assert (made.path / "a.txt").read_text() == "three\n"


def test_submodules_and_nested_repositories(tmp_path: Path, project: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    write(library, "lib.py", "1\n")
    git(library, "add", "-A")
    git(library, "commit", "-q", "-m", "lib")
    git(project, "submodule", "add", "-q", str(library), "libs/one")
    write(project, "libs/one/lib.py", "changed\n")
    write(project, "libs/one/new.py", "new\n")
    nested = project / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    write(nested, "n.txt", "n\n")
    git(nested, "add", "-A")
    git(nested, "commit", "-q", "-m", "nested")
    unborn = project / "unborn"
    unborn.mkdir()
    git(unborn, "init", "-q")
    write(unborn, "u.txt", "u\n")
    before = everything(project), everything(library)
    made = make(tmp_path, project)
    here = made.path
    assert (here / "libs" / "one" / "lib.py").read_text() == "changed\n"
    assert (here / "libs" / "one" / "new.py").read_text() == "new\n"
    assert (here / "unborn" / "u.txt").read_text() == "u\n"
    for place in ("libs/one", "nested"):
        assert (here / place / ".git").is_dir(), "its own, not a pointer into the user's"
        assert git(here / place, "rev-parse", "HEAD") == git(project / place, "rev-parse", "HEAD")
        assert git(here / place, "status", "--porcelain") == git(project / place, "status", "--porcelain")
    assert git(here, "status", "--porcelain") == git(project, "status", "--porcelain")
    git(here / "libs" / "one", "commit", "-q", "-a", "-m", "of the agent")
    packer = HistoryPacker(here)
    packer.start()
    packer.wait()
    assert (everything(project), everything(library)) == before
    assert not list(here.rglob("alternates"))
    assert git(here / "nested", "log", "--format=%s") == "nested"


def test_the_history_becomes_its_own(tmp_path: Path, project: Path) -> None:
    before = everything(project)
    made = make(tmp_path, project)
    alternates = made.path / ".git" / "objects" / "info" / "alternates"
    assert alternates.is_file()
    packer = HistoryPacker(made.path)
    packer.start()
    packer.wait()
    assert not alternates.exists()
    assert not (made.path / ".git" / "agentsh").exists()
    (name,) = base_packs(made.path)
    assert everything(project) == before
    project.rename(tmp_path / "moved away")
    assert git(made.path, "fsck", "--strict") == ""
    assert git(made.path, "show", ":a.txt") == "two", "what was staged is there too"
    git(made.path, "commit", "-q", "-a", "-m", "agent")
    git(made.path, "gc", "-q", "--prune=now")
    assert base_packs(made.path) == [name], "it is never packed again"
    assert git(made.path, "log", "--format=%s").splitlines() == ["agent", "first"]
    again = HistoryPacker(made.path)
    again.start()
    again.close()
    assert base_packs(made.path) == [name]


def test_a_packer_that_is_stopped_leaves_the_clone_as_it_is(tmp_path: Path, project: Path) -> None:
    made = make(tmp_path, project)
    packer = HistoryPacker(made.path)
    packer._stopped = True
    packer.start()
    packer.close()
    assert (made.path / ".git" / "objects" / "info" / "alternates").is_file()
    assert git(made.path, "log", "--format=%s") == "first"


def test_a_linked_worktree_a_detached_head_and_a_shallow_repository(tmp_path: Path, project: Path) -> None:
    git(project, "commit", "-q", "-a", "-m", "second")
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~1")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{project}", str(shallow))
    for n, (place, head) in enumerate(((tmp_path / "tree", "first"), (shallow, "second"))):
        before = everything(place), everything(project)
        target = tmp_path / f"ws{n}" / SESSION
        made = provision(target, choice="auto", source=place, homes=[])
        assert made.kind == "git"
        assert git(target, "log", "--format=%s", "-1") == head
        assert git(target, "status", "--porcelain") == git(place, "status", "--porcelain")
        assert (target / ".git").is_dir()
        packer = HistoryPacker(target)
        packer.start()
        packer.wait()
        assert not (target / ".git" / "objects" / "info" / "alternates").exists()
        assert git(target, "fsck") == ""
        assert (everything(place), everything(project)) == before


def test_conflicts_a_sparse_checkout_and_what_is_only_intended(tmp_path: Path, project: Path) -> None:
    git(project, "commit", "-q", "-a", "-m", "mine")
    git(project, "checkout", "-q", "other")
    write(project, "a.txt", "theirs\n")
    git(project, "commit", "-q", "-a", "-m", "theirs")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", "-q", "main")
    write(project, "later.txt")
    git(project, "add", "-N", "later.txt")
    made = make(tmp_path, project)
    assert git(made.path, "status", "--porcelain") == git(project, "status", "--porcelain")
    assert git(made.path, "ls-files", "-u") == git(project, "ls-files", "-u")

    git(project, "reset", "-q", "--hard")
    git(project, "sparse-checkout", "set", "--no-cone", "/bin/")
    target = tmp_path / "ws2" / SESSION
    provision(target, choice="auto", source=project, homes=[])
    assert git(target, "status", "--porcelain") == git(project, "status", "--porcelain")
    assert not (target / "a.txt").exists()


def test_a_split_index(tmp_path: Path, project: Path) -> None:
    git(project, "update-index", "--split-index")
    made = make(tmp_path, project)
    assert git(made.path, "status", "--porcelain") == git(project, "status", "--porcelain")


def test_a_tracked_file_that_became_something_else(tmp_path: Path, project: Path) -> None:
    (project / "a.txt").unlink()
    os.mkfifo(project / "a.txt")
    (project / "sub" / "deep" / "b.txt").unlink()
    (project / "sub" / "deep").rmdir()
    (project / "sub" / "deep").symlink_to("/etc")
    made = make(tmp_path, project)
    assert not os.path.lexists(made.path / "a.txt")
    assert os.readlink(made.path / "sub" / "deep") == "/etc"


def test_a_homes_own_directories_are_left_out(tmp_path: Path, project: Path) -> None:
    write(project, "sessions/x/events.jsonl")
    write(project, "workspaces/x/file")
    made = provision(project / "workspaces" / SESSION, choice="auto", source=project, homes=[project])
    assert made.kind == "git"
    assert not (made.path / "sessions").exists()
    assert not (made.path / "workspaces").exists()


def test_what_is_not_cloned(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing committed yet, an ignored directory, no git: a plain copy as ever."""
    unborn = tmp_path / "unborn"
    unborn.mkdir()
    git(unborn, "init", "-q")
    write(unborn, "f")
    assert provision(tmp_path / "a" / SESSION, choice="auto", source=unborn, homes=[]).kind == "copy"
    ignored = provision(tmp_path / "b" / SESSION, choice="auto", source=project / "build", homes=[])
    assert (ignored.kind, [p.name for p in ignored.path.iterdir()]) == ("copy", ["out.o"])
    monkeypatch.setenv("HOME", str(project))
    assert provision(tmp_path / "c" / SESSION, choice="auto", source=project / "sub", homes=[]).kind == "copy"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert provision(tmp_path / "d" / SESSION, choice="auto", source=project, homes=[]).kind == "copy"


def test_a_clone_that_fails_leaves_nothing(tmp_path: Path, project: Path) -> None:
    (project / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(WorkspaceError) as failed:
        make(tmp_path, project)
    assert "\n" not in failed.value.message
    assert os.listdir(tmp_path / "ws") == []


def test_progress(tmp_path: Path, project: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    target = tmp_path / "ws" / SESSION
    made = provision(target, choice="from", source=project, homes=[], progress=lambda *state: seen.append(state))
    assert seen[-1] == (made.files, made.files, made.bytes)
