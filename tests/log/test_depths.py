"""Trees that no path reaches and no stack of calls holds."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.log.depths import discard_tree, remove_tree, tree_bytes, walk


def deepen(top: Path, depth: int, name: str, data: bytes = b"x") -> Path:
    """Make directories below one another in `top`, and a file in the last."""
    top.mkdir(parents=True, exist_ok=True)
    inside = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=inside)
        deeper = os.open(name, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    file = os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=inside)
    os.write(file, data)
    os.close(file)
    os.close(inside)
    return top


@pytest.mark.parametrize(("depth", "name"), [(1_100, "d"), (40, "x" * 250)])
def test_a_tree_however_deep_with_few_descriptors(tmp_path: Path, depth: int, name: str) -> None:
    for side in ("left", "right"):
        deepen(tmp_path / "top" / side, depth, name, b"12345")
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 16, was[1]))
    try:
        assert tree_bytes(str(tmp_path / "top")) == 10
        remove_tree(str(tmp_path / "top"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, was)
    assert len(os.listdir("/dev/fd")) == taken
    assert list(tmp_path.iterdir()) == []


def test_a_walk_goes_as_deep_as_a_path_and_tells_of_the_rest(tmp_path: Path) -> None:
    deepen(tmp_path / "top", 1_100, "d")
    found = list(walk(str(tmp_path / "top")))
    assert (len(found), found[-1][2]) == (1_101, ["file"])
    deepen(tmp_path / "long", 40, "x" * 250)
    failed: list[OSError] = []
    assert 10 < len(list(walk(str(tmp_path / "long"), failed=failed.append))) < 20
    assert ["too long" in str(error) for error in failed] == [True]
    remove_tree(str(tmp_path / "long"))
    remove_tree(str(tmp_path / "top"))


def test_a_walk_is_that_of_the_library(tmp_path: Path) -> None:
    for name in ("b/c/d", "a/x", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "e")
    (tmp_path / "a" / "lost").symlink_to("nowhere")
    for follow in (False, True):
        mine = [(place, sorted(a), sorted(b)) for place, a, b in walk(str(tmp_path), follow=follow)]
        theirs = [(place, sorted(a), sorted(b)) for place, a, b in os.walk(tmp_path, followlinks=follow)]
        assert mine == theirs
    for _, inside, _ in walk(str(tmp_path)):
        assert "d" not in inside, "it was taken out above"
        inside[:] = [name for name in inside if name not in ("c",)]


def test_a_link_is_never_gone_through(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "alias").symlink_to(tmp_path / "kept")
    for path in ("alias", "kept/file", "nothing"):
        with pytest.raises(OSError, match=path):
            remove_tree(str(tmp_path / path))
        discard_tree(str(tmp_path / path))
    remove_tree(str(tmp_path / "top"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["alias", "file", "kept"]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path / "top")
    os.makedirs(place + b"/d\xff/\xfe")
    open(place + b"/d\xff/caf\xe9", "wb").close()
    assert tree_bytes(str(tmp_path / "top")) == 0
    remove_tree(str(tmp_path / "top"))
    assert list(tmp_path.iterdir()) == []


MOUNTS = """
import subprocess, sys
from agentsh.log.depths import discard_tree, remove_tree
top, other = sys.argv[1:]
subprocess.run(["mount", "--bind", other, f"{top}/a/mnt"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", f"{top}/a/tmp"], check=True)
open(f"{top}/a/tmp/file", "w").close()
try:
    remove_tree(top)
except OSError as error:
    print(error.filename, error.strerror.partition(",")[0])
discard_tree(top)
print(open(f"{top}/a/tmp/file").read() == "", oct(__import__("os").stat(f"{top}/a/mnt").st_mode & 0o777))
"""


def test_what_is_mounted_inside_is_somebody_elses(tmp_path: Path) -> None:
    """A bind mount is of the same file system, so that only the mount itself tells; its mode stays too."""
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no namespace for mounts here")
    for name in ("other", "top/a/mnt", "top/a/tmp", "top/b"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("other/kept", "top/a/goes", "top/b/goes"):
        (tmp_path / name).touch()
    (tmp_path / "other").chmod(0o555)
    command = [*alone, sys.executable, "-c", MOUNTS, str(tmp_path / "top"), str(tmp_path / "other")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    told, kept = done.stdout.splitlines()
    assert told in [f"{tmp_path}/top/a/{name} something is mounted there" for name in ("mnt", "tmp")]
    assert kept == "True 0o555"
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["other", "other/kept", "top", "top/a", "top/a/mnt", "top/a/tmp"]


MOVES = """
import os, sys
from agentsh.log import depths
top, away = sys.argv[1:]
rmdir, moved = os.rmdir, []
def moves(name, *, dir_fd=None):
    if not moved and name == "d":
        moved.append(os.rename(f"{top}/d/d", f"{away}/d"))
    rmdir(name, dir_fd=dir_fd)
os.rmdir = moves
try:
    depths.remove_tree(top)
except OSError as error:
    print(error.strerror)
"""


def test_what_is_renamed_meanwhile_leads_nowhere_else(tmp_path: Path) -> None:
    """A command that moves a directory up while it is emptied would have the wrong ones removed from there."""
    deepen(tmp_path / "top", 4, "d")
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "kept").touch()
    command = [sys.executable, "-c", MOVES, str(tmp_path / "top"), str(tmp_path / "away")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "it was moved while it was gone through\n"
    assert (tmp_path / "away" / "kept").exists()
