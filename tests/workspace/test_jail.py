"""No path leads out of a workspace: every way that there is, tried on every operation."""

import ctypes
import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.workspace.jail import MAX_DEPTH, Jail, translated
from agentsh.workspace.local import LocalWorkspace
from tests.workspace.conftest import SECRET

MAX = 1_000_000
ROOT_USER = os.geteuid() == 0


@pytest.fixture
def tree(root: Path) -> Path:
    """Links of all kinds: those in `ok` stay inside, the others lead out, to nowhere or to no plain file."""
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "file.txt").write_bytes(b"inside")
    (root / "dir" / "file.txt").write_bytes(b"deeper")
    (root / "out_file").symlink_to(root.parent / "outside" / "secret")
    (root / "out_file_relative").symlink_to("../outside/secret")
    (root / "out_dir").symlink_to(root.parent / "outside")
    (root / "out_dir_relative").symlink_to("../outside")
    (root / "dir" / "sub" / "up").symlink_to("../../..")
    (root / "chain").symlink_to("chain2")
    (root / "chain2").symlink_to("dir/sub/up/outside")
    (root / "through_dots").symlink_to("dir/../../outside/secret")
    (root / "sneaky").symlink_to(f"{root}/../outside/secret")
    (root / "prefix").symlink_to(f"{root}-other/x")
    (root / "proc_root").symlink_to("/proc/self/root")
    (root / "proc_fd").symlink_to("/proc/self/fd/0")
    (root / "loop").symlink_to("loop2")
    (root / "loop2").symlink_to("loop")
    os.mkfifo(root / "fifo")
    (root / "to_fifo").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root)  # the whole path may be too long for a socket
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
    return root


ESCAPES = {
    "parent": "..",
    "parent file": "../outside/secret",
    "parent in the middle": "dir/../../outside/secret",
    "parent of something absent": "absent/../../outside/secret",
    "absolute": "{outside}/secret",
    "absolute through the root": "{root}/../outside/secret",
    "root of the file system": "/",
    "two slashes": "//etc/passwd",
    "a name with the same start": "{root}-other/x",
    "proc": "/proc/self/root{outside}/secret",
    "link to a file": "out_file",
    "relative link to a file": "out_file_relative",
    "link to a directory": "out_dir/secret",
    "relative link to a directory": "out_dir_relative/secret",
    "link of links": "chain/secret",
    "link in a link's target": "dir/sub/up/outside/secret",
    "dots in a link": "through_dots",
    "absolute dots in a link": "sneaky",
    "link to a name with the same start": "prefix",
    "link to proc root": "proc_root{outside}/secret",
    "link to a descriptor": "proc_fd",
    "loop": "loop",
    "loop as a directory": "loop/file",
    "fifo": "fifo",
    "link to a fifo": "to_fifo",
    "socket": "socket",
    "file as a directory": "file.txt/x",
    "NUL": "file\0.txt",
    "half a surrogate pair": "\ud800",
    "empty": "",
    "long name": "x" * 300,
    "long path": "x/" * 3_000 + "y",
    "deep path": "d/" * (MAX_DEPTH + 10) + "y",
}

OPERATIONS: dict[str, Callable[[LocalWorkspace, str], object]] = {
    "read": lambda w, p: w.read_bytes(p, max_bytes=MAX),
    "write": lambda w, p: w.write_bytes(p, b"changed"),
    "entries": lambda w, p: w.entries(p),
    "walk": lambda w, p: list(w.walk(p)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("attempt", ESCAPES)
def test_escape_is_refused(tree: Path, workspace: LocalWorkspace, attempt: str, operation: str) -> None:
    outside = tree.parent / "outside"
    path = ESCAPES[attempt].replace("{outside}", str(outside)).replace("{root}", str(tree))
    before = sorted(os.listdir(tree.parent))
    with pytest.raises(PathRefused) as caught:
        OPERATIONS[operation](workspace, path)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 300
    assert not workspace.exists(path) or attempt in ("fifo", "link to a fifo", "socket")
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET
    assert sorted(os.listdir(tree.parent)) == before
    assert not [name for name in os.listdir(tree) if name.startswith(".agentsh-")]


@pytest.mark.skipif(not ROOT_USER, reason="only root makes devices")
def test_device_is_refused(root: Path, workspace: LocalWorkspace) -> None:
    os.mknod(root / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for operation in OPERATIONS.values():
        with pytest.raises(PathRefused):
            operation(workspace, "null")


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("a", "dir/file.txt"),
        ("a", "./dir//file.txt"),
        ("a", "dir/sub/../file.txt"),
        ("a", "{root}/dir/file.txt"),
        ("dir/sub/a", "../file.txt"),
        ("dir/sub/a", "../../dir/file.txt"),
        ("a", "here/dir/file.txt"),
    ],
)
def test_links_that_stay_inside_work(tree: Path, workspace: LocalWorkspace, link: str, target: str) -> None:
    (tree / "here").symlink_to(".")
    (tree / link).symlink_to(target.replace("{root}", str(tree)))
    assert workspace.read_bytes(link, max_bytes=MAX) == b"deeper"
    workspace.write_bytes(link, b"new")
    assert (tree / link).is_symlink(), "the link itself stays"
    assert (tree / "dir" / "file.txt").read_bytes() == b"new"


def test_a_dangling_link_inside_is_written_through(root: Path, workspace: LocalWorkspace) -> None:
    (root / "link").symlink_to("made/there.txt")
    assert not workspace.exists("link")
    workspace.write_bytes("link", b"x")
    assert (root / "made" / "there.txt").read_bytes() == b"x"


def test_a_root_that_is_a_link_is_followed_and_both_spellings_are_inside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    (root / "f").write_bytes(b"x")
    jail = Jail(str(tmp_path / "alias"))
    for path in ("f", str(root / "f"), str(tmp_path / "alias" / "f")):
        assert jail.read(path, MAX) == b"x"
        assert jail.relative(path) == "f"


@pytest.mark.parametrize(
    ("path", "relative"),
    [(".", "."), ("./a//b/", "a/b"), ("a/../b", "b"), ("{root}", "."), ("{root}/Ä/б", "Ä/б"), ("~/x", "~/x")],
)
def test_relative_keeps_the_spelling(root: Path, workspace: LocalWorkspace, path: str, relative: str) -> None:
    assert workspace.relative(path.replace("{root}", str(root))) == relative


@pytest.mark.parametrize(
    "name", ["проект.txt", "e\u0301.txt", "\u00e9.txt", "a b", "-rf", "*", "\udcff\udc80", "\u202e", "a\nb"]
)
def test_any_name_works(root: Path, workspace: LocalWorkspace, name: str) -> None:
    workspace.write_bytes(f"dir/{name}", b"x")
    assert workspace.read_bytes(f"dir/{name}", max_bytes=1) == b"x"
    assert [e.path for e in workspace.entries("dir")] == [f"dir/{name}"]
    assert [e.path for e in workspace.walk()] == [f"dir/{name}"]
    assert os.listdir(os.fsencode(root / "dir")) == [os.fsencode(name)]


def test_a_hard_link_is_readable_and_a_write_breaks_it(root: Path, workspace: LocalWorkspace) -> None:
    secret = root.parent / "outside" / "secret"
    os.link(secret, root / "linked")
    assert workspace.read_bytes("linked", max_bytes=MAX) == SECRET
    workspace.write_bytes("linked", b"mine")
    assert secret.read_bytes() == SECRET
    assert (root / "linked").stat().st_ino != secret.stat().st_ino


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444, 0o4755])
def test_the_mode_of_a_file_stays(root: Path, workspace: LocalWorkspace, mode: int) -> None:
    (root / "f").write_bytes(b"old")
    (root / "f").chmod(mode)
    inode = (root / "f").stat().st_ino
    workspace.write_bytes("f", b"new")
    assert stat.S_IMODE((root / "f").stat().st_mode) == mode & 0o777
    assert (root / "f").stat().st_ino != inode


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_new_files_obey_the_umask(root: Path, workspace: LocalWorkspace, umask: int) -> None:
    before = os.umask(umask)
    try:
        workspace.write_bytes("new/f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "new" / "f").stat().st_mode) == 0o644 & ~umask
    assert stat.S_IMODE((root / "new").stat().st_mode) == 0o777 & ~umask


def test_nothing_is_left_of_a_write_that_fails(
    root: Path, workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_bytes(b"old")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolFailed, match="no space left") as caught:
        workspace.write_bytes("f", b"new")
    assert not isinstance(caught.value, PathRefused)
    assert os.listdir(root) == ["f"]
    assert (root / "f").read_bytes() == b"old"


@pytest.mark.skipif(ROOT_USER, reason="root may read everything")
def test_no_permission_is_refused(root: Path, workspace: LocalWorkspace) -> None:
    (root / "f").write_bytes(b"x")
    (root / "f").chmod(0)
    with pytest.raises(PathRefused, match="permission denied"):
        workspace.read_bytes("f", max_bytes=MAX)


def test_size_limit(root: Path, workspace: LocalWorkspace) -> None:
    (root / "f").write_bytes(b"12345")
    assert workspace.read_bytes("f", max_bytes=5) == b"12345"
    with pytest.raises(PathRefused, match="5 bytes, more than the limit of 4"):
        workspace.read_bytes("f", max_bytes=4)
    with open(root / "huge", "wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(PathRefused, match="more than the limit"):
        workspace.read_bytes("huge", max_bytes=MAX)


def test_directories_are_refused_as_files(root: Path, workspace: LocalWorkspace) -> None:
    (root / "dir").mkdir()
    for path in ("dir", ".", str(root)):
        with pytest.raises(PathRefused, match="is a directory"):
            workspace.read_bytes(path, max_bytes=MAX)
        with pytest.raises(PathRefused, match="is a directory"):
            workspace.write_bytes(path, b"")


def test_a_workspace_that_is_gone_says_so(root: Path, workspace: LocalWorkspace) -> None:
    root.rmdir()
    for operation in OPERATIONS.values():
        with pytest.raises(ToolFailed, match="workspace directory is gone"):
            operation(workspace, "f")
    assert not workspace.exists(".")


@given(st.integers(1, 140))
def test_every_error_of_the_system_is_translated(number: int) -> None:
    with pytest.raises(ToolFailed) as caught, translated("a\nb"):
        raise OSError(number, os.strerror(number))
    assert caught.value.message.startswith("a b: ")


def _swapping(path: Path, link: Path, stop: threading.Event) -> None:
    """Exchange two names for each other, each time in one step (renameat2 with RENAME_EXCHANGE)."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    while not stop.is_set():
        exchange(-100, os.fsencode(path), -100, os.fsencode(link), 2)


@pytest.fixture
def race(root: Path) -> Iterator[Path]:
    """`swapped` is a directory and a link to the outside in turns, as fast as a thread can do it."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("no renameat2")
    (root / "link").symlink_to(root.parent / "outside")
    (root / "swapped").mkdir()
    (root / "swapped" / "secret").write_bytes(b"inside")
    stop = threading.Event()
    thread = threading.Thread(target=_swapping, args=(root / "swapped", root / "link", stop))
    thread.start()
    yield root
    stop.set()
    thread.join()


def test_a_swapped_link_never_leads_out(race: Path, workspace: LocalWorkspace) -> None:
    outside = race.parent / "outside"
    end_s = time.monotonic() + 2
    count = done = 0
    while time.monotonic() < end_s and count < 3_000:
        count += 1
        try:
            assert workspace.read_bytes("swapped/secret", max_bytes=MAX) != SECRET
            workspace.write_bytes("swapped/secret", b"inside")
            workspace.write_bytes(f"swapped/new{count}", b"inside")
            assert "swapped/secret" in {e.path for e in workspace.entries("swapped")}
            done += 1
        except ToolFailed:
            continue
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET
    assert done
    assert done < count, "the race was never lost, so nothing was tried"


def test_no_descriptor_leaks(tree: Path, workspace: LocalWorkspace) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc")
    before = len(os.listdir("/proc/self/fd"))
    for path in [*ESCAPES.values(), "file.txt", "dir/file.txt"]:
        for operation in OPERATIONS.values():
            with suppress(ToolFailed):
                operation(workspace, path)
    assert len(os.listdir("/proc/self/fd")) == before
