"""Patches that other programs take, and changes that come back without overwriting anybody's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.testing import MemoryBlobs
from agentsh.workspace.applying import Plan, carry_out, plan
from agentsh.workspace.merging import hunks, merge
from agentsh.workspace.patch import patch_of
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_diff import FileChange, counted, file_changes
from agentsh.workspace.trees import Nodes
from tests.workspace.histories import History, state_of
from tests.workspace.test_clone import write

lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=9)


@given(lines, lines)
@settings(deadline=None)
def test_hunks_say_how_one_text_became_another(before: list[bytes], after: list[bytes]) -> None:
    made, at = [], 0
    for hunk in hunks(before, after):
        made += [*before[at : hunk.start], *hunk.new]
        at = hunk.end
    assert [*made, *before[at:]] == after


@given(lines, lines, lines)
@settings(deadline=None, max_examples=200)
def test_a_merge_keeps_both_or_nothing(before: list[bytes], ours: list[bytes], theirs: list[bytes]) -> None:
    assert merge(before, ours, before).lines == ours
    assert merge(before, before, theirs).lines == theirs
    assert merge(before, ours, ours).lines == ours
    both, other = merge(before, ours, theirs), merge(before, theirs, ours)
    assert (both.lines is None) == (other.lines is None) == bool(both.conflicts)
    assert both.lines == other.lines
    if both.lines is not None:
        gained = len(both.lines) - len(before)
        shared = set(hunks(before, ours)) & set(hunks(before, theirs))
        twice = sum(len(h.new) - (h.end - h.start) for h in shared)
        assert gained == len(ours) + len(theirs) - 2 * len(before) - twice


def test_changes_that_touch_are_a_conflict() -> None:
    before = [b"%d\n" % n for n in range(10)]
    ours = [*before[:4], b"ours\n", *before[5:]]
    assert merge(before, ours, [*before[:9], b"theirs\n"]).lines == [*ours[:9], b"theirs\n"]
    for n in (3, 4, 5):
        theirs = [*before[:n], b"theirs\n", *before[n + 1 :]]
        (hunk,) = merge(before, ours, theirs).conflicts
        assert str(hunk) == "@@ -5,1 +1 lines @@"


class Work:
    """A project, a session's workspace made from it, and what becomes of both."""

    def __init__(self, tmp_path: Path, files: dict[str, bytes]) -> None:
        self.mine, self.ws, self.blobs = tmp_path / "mine", tmp_path / "ws", MemoryBlobs()
        for place in (self.mine, self.ws):
            place.mkdir()
            for path, data in files.items():
                write(place, path, data)
        self.snapshotter = Snapshotter(str(self.ws), self.blobs)
        self.snapshotter.take("start")
        self.before: Nodes = dict(self.snapshotter.nodes)
        self.applied: Nodes | None = None

    def changes(self) -> list[FileChange]:
        self.snapshotter.take("tool")
        return file_changes(self.before, self.snapshotter.nodes)

    def plan(self) -> Plan:
        return plan(self.mine, self.blobs, self.changes(), self.snapshotter.nodes, self.since())

    def since(self) -> list[FileChange] | None:
        """The changes since the last `apply`, None before the first."""
        return None if self.applied is None else file_changes(self.applied, self.snapshotter.nodes)

    def state(self, place: Path) -> dict[str, tuple[str, int, bytes]]:
        return {path: (kind, mode, data) for path, (kind, mode, _, data) in state_of(place).items()}

    def apply(self) -> Plan:
        what = self.plan()
        assert not what.conflicts
        assert carry_out(self.mine, self.blobs, what) == []
        self.applied = dict(self.snapshotter.nodes)
        return what


def test_what_was_applied_is_no_change_of_the_users(tmp_path: Path) -> None:
    """A session goes on and is applied again: the same lines, a file that it made, one that it made and removed."""
    work = Work(tmp_path, {"a": b"1\n2\n3\n4\n5\n6\n", "gone": b"g\n"})
    write(work.ws, "a", b"1\nX\n3\n4\n5\n6\n")
    write(work.ws, "new", b"n\n")
    write(work.ws, "passing", b"p\n")
    (work.ws / "gone").unlink()
    work.apply()
    write(work.ws, "a", b"1\nY\n3\n4\n5\n6\n")
    write(work.ws, "new", b"newer\n")
    write(work.ws, "gone", b"again\n")
    (work.ws / "passing").unlink()
    write(work.mine, "a", b"1\nX\n3\n4\n5\nuser\n")
    assert work.apply().merged == ("a",)
    assert (work.mine / "a").read_bytes() == b"1\nY\n3\n4\n5\nuser\n"
    assert work.state(work.mine) == work.state(work.ws) | {"a": ("f", 0o644, b"1\nY\n3\n4\n5\nuser\n")}
    write(work.ws, "a", b"1\nZ\n3\n4\n5\n6\n")
    write(work.mine, "a", b"1\nmine\n3\n4\n5\nuser\n")
    assert [(c.path, c.hunks) for c in work.plan().conflicts] == [("a", ("@@ -2,1 +1 lines @@",))]
    for path in ("a", "gone"):
        write(work.mine, path, work.blobs.get(work.before[path].at))  # taken back by the user, to have it once more
    work.apply()
    assert work.state(work.mine) == work.state(work.ws)


def test_what_its_user_made_of_what_was_applied_is_in_nobodys_way(tmp_path: Path) -> None:
    """A line of it changed, a new file changed, one deleted: the session has nothing new there."""
    work = Work(tmp_path, {"a": b"1\n2\n3\n", "b": b"b\n", "gone": b"g\n"})
    write(work.ws, "a", b"1\nX\n3\n")
    write(work.ws, "b", b"session\n")
    write(work.ws, "new", b"n\n")
    (work.ws / "gone").unlink()
    work.apply()
    mine = {"a": b"1\nmine\n3\n", "new": b"n\nmine\n", "gone": b"mine\n"}
    for path, data in mine.items():
        write(work.mine, path, data)
    (work.mine / "b").unlink()
    assert work.apply().paths == []
    write(work.ws, "later", b"l\n")
    assert work.apply().paths == ["later"]
    assert {p.name: p.read_bytes() for p in work.mine.iterdir()} == mine | {"later": b"l\n"}
    write(work.ws, "new", b"newer\n")
    assert [c.path for c in work.plan().conflicts] == ["new"]


def test_modes_are_merged_too(tmp_path: Path) -> None:
    work = Work(tmp_path, {"text": b"1\n", "bin": b"\0\1"})
    for name in ("text", "bin"):
        (work.ws / name).chmod(0o755)
    write(work.mine, "text", b"1\n2\n", 0o640)
    write(work.mine, "bin", b"\0\2", 0o600)
    assert work.apply().merged == ("bin", "text")
    assert work.state(work.mine) == {"bin": ("f", 0o700, b"\0\2"), "text": ("f", 0o750, b"1\n2\n")}
    assert work.plan().paths == []


def test_a_file_for_a_directory_and_back(tmp_path: Path) -> None:
    files = {"file": b"f\n", "dir/sub/x": b"x\n", "old/deep/y": b"y\n", "half/z": b"z\n"}
    work = Work(tmp_path, files)
    for path in ("file", "dir", "old", "half"):
        shutil.rmtree(work.ws / path) if (work.ws / path).is_dir() else (work.ws / path).unlink()
    write(work.ws, "file/a/b", b"b\n")
    write(work.ws, "dir", b"d\n")
    write(work.mine, "half/mine", b"m\n")
    write(work.mine, "dir/sub/mine", b"m\n")
    before = state_of(work.mine)
    assert [c.path for c in work.plan().conflicts] == ["dir"]
    assert state_of(work.mine) == before
    (work.mine / "dir/sub/mine").unlink()
    work.apply()
    assert set(state_of(work.mine)) == {"file", "file/a", "file/a/b", "dir", "half", "half/mine"}


def test_everything_comes_over(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": b"1\n2\n", "b": b"\0bin", "gone/deep/c": b"c", "mode": b"m", "kind": b"k"})
    write(work.ws, "a", b"1\nTWO\n")
    write(work.ws, "b", b"\0other")
    shutil.rmtree(work.ws / "gone")
    (work.ws / "mode").chmod(0o755)
    (work.ws / "kind").unlink()
    (work.ws / "kind").symlink_to("a")
    write(work.ws, "new/dir/f", b"f")
    (work.ws / "new" / "dir").chmod(0o700)
    (work.ws / "hollow").mkdir()
    (work.mine / "a").chmod(0o600)
    before = state_of(work.mine)
    assert work.plan().conflicts == ()
    assert state_of(work.mine) == before, "a plan changes nothing"
    work.apply()
    here = work.mine
    assert (here / "a").read_bytes() == b"1\nTWO\n"
    assert (here / "a").stat().st_mode & 0o777 == 0o600, "the user's own mode stays"
    assert (here / "b").read_bytes() == b"\0other"
    assert not (here / "gone" / "deep" / "c").exists()
    assert (here / "mode").stat().st_mode & 0o777 == 0o755
    assert os.readlink(here / "kind") == "a"
    assert (here / "new" / "dir" / "f").read_bytes() == b"f"
    assert (here / "new" / "dir").stat().st_mode & 0o777 == 0o700
    assert (here / "hollow").is_dir()
    again = work.plan()
    assert (again.conflicts, again.paths) == ((), []), "twice is once"


def test_what_both_changed_in_different_places_is_merged(tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % n for n in range(30))
    work = Work(tmp_path, {"f": text})
    write(work.ws, "f", text.replace(b"line 3\n", b"agent\n"))
    write(work.mine, "f", text.replace(b"line 20\n", b"user\n"))
    assert work.apply().merged == ("f",)
    data = (work.mine / "f").read_bytes()
    assert data == text.replace(b"line 3\n", b"agent\n").replace(b"line 20\n", b"user\n")


@pytest.mark.parametrize(
    ("agent", "user", "why"),
    [
        (b"1\nagent\n3\n", b"1\nuser\n3\n", "same lines"),
        (b"1\nagent\n3\n", None, "deleted"),
        (None, b"1\nuser\n3\n", "changed it"),
        (b"1\n\0\n3\n", b"1\nuser\n3\n", "no text"),
    ],
)
def test_nothing_of_the_user_is_overwritten(
    tmp_path: Path, agent: bytes | None, user: bytes | None, why: str
) -> None:
    work = Work(tmp_path, {"f": b"1\n2\n3\n", "other": b"x"})
    for place, data in ((work.ws, agent), (work.mine, user)):
        (place / "f").unlink()
        if data is not None:
            write(place, "f", data)
    write(work.ws, "other", b"y")
    (conflict,) = work.plan().conflicts
    assert conflict.path == "f"
    assert why in conflict.why
    assert bool(conflict.hunks) == (why == "same lines")


def test_a_new_file_of_both_a_link_in_the_way_and_a_pipe(tmp_path: Path) -> None:
    work = Work(tmp_path, {"d/f": b"1"})
    write(work.ws, "new", b"agent")
    write(work.ws, "same", b"s")
    write(work.ws, "d/f", b"2")
    write(work.ws, "p", b"2")
    write(work.mine, "new", b"user")
    write(work.mine, "same", b"s")
    (work.mine / "d").rename(work.mine / "e")
    (work.mine / "d").symlink_to("e")
    os.mkfifo(work.mine / "p")
    what = work.plan()
    assert {c.path: c.why for c in what.conflicts} == {
        "new": "you have made one of that name too",
        "d/f": "a link or a file stands in its way",
        "p": "a link or a file stands in its way",
    }
    assert what.same == ("same",)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(6))
def test_the_patch_is_one_that_git_takes(tmp_path: Path, seed: int) -> None:
    (tmp_path / "ws").mkdir()
    history = History(tmp_path / "ws", seed)
    write(history.root, "no newline", b"a\nb")
    write(history.root, "s p a c e", b"a\n")
    history.snapshotter.take("tool")
    before = dict(history.snapshotter.nodes)
    copy = tmp_path / "copy"
    shutil.copytree(history.root, copy, symlinks=True)
    for _ in range(12):
        history.act()
    write(history.root, "no newline", b"a\nc\nb")
    write(history.root, "s p a c e", b"a\nb\n")
    write(history.root, 'quote"\n\té', b"x\n")
    history.snapshotter.take("tool")
    found = file_changes(before, history.snapshotter.nodes)
    blobs = history.blobs
    patches = [b"".join(patch_of(blobs, change)) for change in found]
    text = b"".join(patch for patch in patches if b"Binary files differ" not in patch)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"], cwd=copy, input=text, capture_output=True, check=False,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def seen(root: Path) -> dict[str, tuple[str, bool, bytes]]:
        binary = {c.path for c, patch in zip(found, patches, strict=True) if b"Binary" in patch}
        return {
            path: (kind, kind == "f" and bool(mode & 0o100), data)
            for path, (kind, mode, _, data) in state_of(root).items()
            if kind != "d"
            and not any(path == b or path.startswith(b + "/") or b.startswith(path + "/") for b in binary)
        }

    assert seen(copy) == seen(history.root)


def test_figures(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": b"1\n2\n3\n", "b": b"x\n"})
    write(work.ws, "a", b"1\ntwo\n3\nfour\n")
    (work.ws / "b").unlink()
    write(work.ws, "c", b"\0\0")
    found = work.changes()
    assert [(c.path, c.status) for c in found] == [("a", "M"), ("b", "D"), ("c", "A")]
    assert counted(work.blobs, found) == (2, 2)
