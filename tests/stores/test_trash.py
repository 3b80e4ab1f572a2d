"""The trash: everything that belongs to a session goes there and comes back, whatever happens between."""

import errno
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.base.errors import SessionExists, SessionMissing
from agentsh.log.depths import remove_tree, tree_bytes
from agentsh.log.files import RealFiles
from agentsh.stores.trash import Trash
from tests.app.homes import add, sid
from tests.log.disks import FaultyFiles


def test_there_and_back(tmp_path: Path) -> None:
    log = add(tmp_path, 1)
    before = log.read_bytes()
    work = tmp_path / "workspaces" / sid(1)
    (work / "a.txt").write_text("work")
    where = Trash(str(tmp_path)).put(sid(1), why="rm", workspace=str(work))
    assert not log.parent.exists()
    assert not work.exists()
    assert (tmp_path / where / "session" / "events.jsonl").read_bytes() == before
    (found,) = Trash(str(tmp_path)).listed()
    assert (found.session, found.whole, found.has_workspace) == (sid(1), True, True)
    Trash(str(tmp_path)).restore(found)
    assert log.read_bytes() == before
    assert (work / "a.txt").read_text() == "work"
    assert list((tmp_path / "trash").iterdir()) == []


def test_the_same_id_twice(tmp_path: Path) -> None:
    trash = Trash(str(tmp_path))
    for _ in range(2):
        add(tmp_path, 1)
        trash.put(sid(1), why="rm", workspace=str(tmp_path / "workspaces" / sid(1)))
    assert len(trash.listed()) == 2
    trash.restore(trash.listed()[0])
    with pytest.raises(SessionExists):
        trash.restore(trash.listed()[0])


@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_fails_in_turn(tmp_path: Path, for_ever: bool) -> None:
    """The session is listed, or whole in the trash; doing it again brings it there, and back."""
    n, done = 0, False
    while not done:
        n += 1
        home = tmp_path / str(n)
        log = add_to(home)
        work = home / "workspaces" / sid(1)
        files = FaultyFiles(RealFiles(), n, errno.EIO, for_ever=for_ever)
        with suppress(OSError):
            Trash(str(home), files=files).put(sid(1), why="rm", workspace=str(work))
        done = not files.hit
        trash = Trash(str(home))
        if log.exists():
            trash.put(sid(1), why="rm", workspace=str(work))
        (found,) = trash.listed()
        assert found.whole
        assert found.has_workspace
        files = FaultyFiles(RealFiles(), n, errno.EIO, for_ever=for_ever)
        with suppress(OSError):
            Trash(str(home), files=files).restore(found)
        if not log.exists():
            (found,) = trash.listed()
            trash.restore(found)
        assert log.exists()
        assert (work / "a.txt").exists()
    assert n > 10


def add_to(home: Path) -> Path:
    home.mkdir()
    log = add(home, 1)
    (home / "workspaces" / sid(1) / "a.txt").write_text("work")
    return log


def test_what_is_not_ours_in_the_trash_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "trash" / "20261129T101010Z-something").mkdir(parents=True)
    (tmp_path / "trash" / "other").mkdir()
    os.mkdir(tmp_path / "trash" / f"20261129T101010Z-{sid(1)}")
    (found,) = Trash(str(tmp_path)).listed()
    assert not found.whole
    with pytest.raises(SessionMissing):
        Trash(str(tmp_path)).restore(found)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_removal_for_good_fails_at_every_operation(tmp_path: Path, error: int) -> None:
    """The session is listed or gone, never half there; another try ends it. A full disk does not stop it."""
    n, done = 0, False
    while not done:
        n += 1
        home = tmp_path / str(n)
        log = add_to(home)
        work = home / "workspaces" / sid(1)
        files = FaultyFiles(RealFiles(), n, error, for_ever=True)
        with suppress(OSError):
            Trash(str(home), files=files).remove(sid(1), workspace=str(work))
        done = not files.hit
        assert log.exists() == log.parent.exists()
        Trash(str(home)).remove(sid(1), workspace=str(work))
        assert [os.listdir(home / name) for name in ("sessions", "workspaces")] == [[], []]
    assert n > 3


def test_the_disk_has_no_room_for_a_word_about_it(tmp_path: Path) -> None:
    add(tmp_path, 1)
    files = FaultyFiles(RealFiles(), 1, errno.ENOSPC, for_ever=True, only=("write",))
    where = Trash(str(tmp_path), files=files).put(sid(1), why="rm", workspace=None)
    assert files.hit
    assert os.listdir(tmp_path / where) == ["session"]
    Trash(str(tmp_path)).restore(Trash(str(tmp_path)).listed()[0])
    assert (tmp_path / "sessions" / sid(1) / "events.jsonl").exists()


AS_AN_OWNER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []
"""Root may do anything with any directory; without that it is like everybody else with their own."""

OWNER = """
import os, sys
from datetime import timedelta
from agentsh.stores.collect import Collector
from agentsh.stores.trash import Trash
root, session, way = sys.argv[1:]
work = f"{root}/workspaces/{session}"
os.makedirs(f"{work}/mod/cache/deep")
os.makedirs(f"{work}/shut/in")
os.makedirs(f"{work}/empty")
for name in ("file", "mod/file", "mod/cache/deep/file", "shut/in/file"):
    open(f"{work}/{name}", "w").close()
os.symlink("/etc", f"{work}/mod/link")
modes = {"mod/cache/deep": 0o555, "mod/cache": 0o444, "mod": 0o555, "shut": 0, "empty": 0o111, "": 0o555}
for name, mode in modes.items():
    os.chmod(f"{work}/{name}", mode)
try:
    os.mkdir(f"{work}/more")
except PermissionError:
    pass
else:
    sys.exit("this process may do anything")
trash = Trash(root)
if way == "now":
    trash.remove(session, workspace=work)
    assert os.listdir(f"{root}/workspaces") == os.listdir(f"{root}/sessions") == [], os.listdir(root)
    sys.exit()
trash.put(session, why="rm", workspace=work)
trash.restore(trash.listed()[0])
assert os.stat(work).st_mode & 0o777 == 0o555
trash.put(session, why="rm", workspace=work)
Collector(root, older_than=timedelta(0)).collect(dry_run=False)
assert os.listdir(f"{root}/trash") == []
"""


@pytest.mark.skipif(bool(AS_AN_OWNER) and shutil.which("setpriv") is None, reason="root may do anything")
@pytest.mark.parametrize("way", ["now", "trash"])
def test_directories_that_nobody_may_write_go_all_the_same(tmp_path: Path, way: str) -> None:
    """As those in which Go keeps modules: one could not be removed, and after that `gc` did nothing any more."""
    add(tmp_path, 1)
    code = [*AS_AN_OWNER, sys.executable, "-c", OWNER, str(tmp_path), sid(1), way]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_removed_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that a container has made: it is told with its whole path, and the rest goes."""
    for name in ("a", "b", "c"):
        (tmp_path / "top" / name).mkdir(parents=True)
        (tmp_path / "top" / name / "file").write_text("x")
    stays = (tmp_path / "top" / "b" / "file").stat().st_ino
    unlink = os.unlink

    def refuses(path: str, *, dir_fd: int | None = None) -> None:
        if os.stat(path, dir_fd=dir_fd).st_ino == stays:
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuses)
    with pytest.raises(PermissionError) as caught:
        remove_tree(str(tmp_path / "top"))
    assert caught.value.filename == str(tmp_path / "top" / "b" / "file")
    assert sorted(path.name for path in (tmp_path / "top").iterdir()) == ["b"]


@pytest.mark.parametrize(("depth", "name"), [(1_100, "d")])
def test_directories_however_deep(tmp_path: Path, depth: int, name: str) -> None:
    """A command's loop makes them in a moment; to remove them ended in an internal error, and so did every `gc`."""
    top = tmp_path / "top"
    top.mkdir()
    inside = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=inside)
        deeper = os.open(name, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
    os.close(inside)
    assert tree_bytes(str(top)) == 0
    remove_tree(str(top))
    assert not top.exists()
