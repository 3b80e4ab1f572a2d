"""What the owner of a file has set on it stays when the file is written anew, and comes into a workspace."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.ports.workspace import Change
from agentsh.testing import MemoryBlobs
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.provision import provision
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_restore import Restorer
from tests.workspace.conftest import SESSION


def _takes_them(place: Path) -> bool:
    (place / "probe").touch()
    try:
        os.setxattr(place / "probe", "user.probe", b"1")
    except (AttributeError, OSError):
        return False
    return True


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not _takes_them(tmp_path):
        pytest.skip("this file system takes no extended attributes")
    root = tmp_path / "ws"
    root.mkdir()
    (root / "f").write_bytes(b"old")
    (root / "f").chmod(0o640)
    os.setxattr(root / "f", "user.mine", b"\0kept")
    return root


def _write(root: Path) -> None:
    LocalWorkspace(root, session=SESSION).write_bytes("f", b"new")


def _change(root: Path) -> None:
    LocalWorkspace(root, session=SESSION).change([Change("f", b"new"), Change("g", b"new")])


def _rewind(root: Path) -> None:
    blobs = MemoryBlobs()
    snapshotter = Snapshotter(str(root), blobs)
    snapshotter.take("start")
    target = dict(snapshotter.nodes)
    with open(root / "f", "wb") as file:
        file.write(b"changed")
    snapshotter.take("tool")
    Restorer(str(root), blobs, snapshotter.nodes, target).run(["f"])
    assert (root / "f").read_bytes() == b"old"


@pytest.mark.parametrize("rewrite", [_write, _change, _rewind])
def test_they_stay_with_a_file_that_is_written_anew(root: Path, rewrite: Callable[[Path], None]) -> None:
    inode = (root / "f").stat().st_ino
    rewrite(root)
    assert (root / "f").stat().st_ino != inode
    assert os.getxattr(root / "f", "user.mine") == b"\0kept"
    assert (root / "f").stat().st_mode & 0o777 == 0o640


def test_they_come_into_a_workspace(root: Path, tmp_path: Path) -> None:
    made = provision(tmp_path / "home" / "20261129-k3v9qd", choice="from", source=root, homes=[])
    assert os.getxattr(made.path / "f", "user.mine") == b"\0kept"
