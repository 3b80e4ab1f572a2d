"""A file in wait becomes a blob, whatever its directory is, and is gone where it cannot."""

import errno
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from agentsh.log.files import FileSystem
from agentsh.stores.blob_room import ROOMS, Room, Rooms, sweep
from agentsh.stores.blobs import FileBlobs
from agentsh.testing.disks import SimDisk
from tests.log.disks import FaultyFiles

BLOBS = "/blobs"
PATH = "/blobs/ab/name.zst"
PACKED = b"packed " * 500


def disk_with(*directories: str) -> SimDisk:
    disk = SimDisk()
    for directory in (BLOBS, *directories):
        disk.mkdir(directory)
    disk.sync_dir("/")
    disk.sync_dir(BLOBS)
    return disk


@pytest.mark.parametrize("directories", [(), ("/blobs/ab",)])
def test_it_survives_any_power_cut_once_it_is_the_blob(directories: tuple[str, ...]) -> None:
    disk = disk_with(*directories)
    Room(disk, BLOBS).become(PATH, PACKED)
    assert disk.tree() == {PATH: PACKED}
    for dice in (None, *(Random(seed) for seed in range(20))):
        after = disk.after_cut(dice)
        assert after.tree()[PATH] == PACKED
        sweep(after, BLOBS)
        assert after.tree() == {PATH: PACKED}


class MadeMeanwhile(SimDisk):
    """Another process makes the directory, with something in it, right before we do."""

    def rename(self, source: str, target: str) -> None:
        if target == "/blobs/ab":
            self.mkdir(target)
            raise OSError(errno.ENOTEMPTY, "not empty")
        super().rename(source, target)


def test_a_directory_that_somebody_else_makes_meanwhile() -> None:
    disk = MadeMeanwhile()
    disk.mkdir(BLOBS)
    Room(disk, BLOBS).become(PATH, PACKED)
    assert disk.tree() == {PATH: PACKED}


@pytest.mark.parametrize("directories", [(), ("/blobs/ab",)])
@pytest.mark.parametrize("fail_at", range(1, 20))
def test_whichever_operation_fails_there_is_the_blob_or_nothing(directories: tuple[str, ...], fail_at: int) -> None:
    disk = disk_with(*directories)
    files: FileSystem = FaultyFiles(disk, fail_at, errno.EIO)
    try:
        Room(files, BLOBS).become(PATH, PACKED)
    except OSError:
        pass
    else:
        assert disk.tree()[PATH] == PACKED
    sweep(disk, BLOBS)
    assert disk.tree() in ({}, {PATH: PACKED})


class Unable(SimDisk):
    """A file system that allocates nothing ahead."""

    asked = 0

    def reserve(self, fd: int, start: int, size: int) -> None:
        self.asked += 1
        raise OSError(errno.ENOTSUP, "not supported")


def test_a_file_system_that_knows_no_such_thing_is_asked_once() -> None:
    disk = Unable()
    disk.mkdir(BLOBS)
    rooms = Rooms(disk, BLOBS)
    rooms.want(1)
    rooms.refill()
    assert (disk.asked, rooms.take(1), disk.tree()) == (1, None, {})


def test_they_are_kept_as_long_as_a_writer_wants_them() -> None:
    disk = disk_with()
    rooms = Rooms(disk, BLOBS)
    for more, there in ((1, ROOMS), (1, ROOMS), (-1, ROOMS), (-1, 0)):
        rooms.want(more)
        assert len(disk.subdirs(BLOBS)) == there


class Flaky(SimDisk):
    """Somebody else has the lock, or a descriptor is missing, the first time."""

    wrong: OSError | None = OSError(errno.EMFILE, "too many open files")

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        wrong, self.wrong = self.wrong, None
        if wrong is not None:
            raise wrong
        return super().lock(fd, exclusive=exclusive, wait=wait)


def test_what_may_go_by_is_tried_again() -> None:
    disk = Flaky()
    disk.mkdir(BLOBS)
    rooms = Rooms(disk, BLOBS)
    rooms._wanted = 1  # without the sweep, which would take the error
    rooms.refill()
    assert disk.subdirs(BLOBS) == []
    rooms.refill()
    assert len(disk.subdirs(BLOBS)) == ROOMS


class Locked(SimDisk):
    """Whoever sweeps has the lock of what we have just made."""

    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        return False


def test_a_room_without_its_lock_is_none() -> None:
    disk = Locked()
    disk.mkdir(BLOBS)
    rooms = Rooms(disk, BLOBS)
    rooms.want(1)
    assert (rooms.take(1), disk.tree(), disk.subdirs(BLOBS)) == (None, {}, [])


MAKER = """
import sys
from agentsh.log.files import RealFiles
from agentsh.stores.blobs import FileBlobs

class Paused(RealFiles):
    fd = -2

    def pause(self):
        print("here", flush=True)
        sys.stdin.readline()

    def open(self, path, flags):
        ours = path.endswith("/blob")
        if ours and sys.argv[2] == "open":
            self.pause()
        fd = super().open(path, flags)
        if ours:
            self.fd = fd
        return fd

    def lock(self, fd, **how):
        if fd == self.fd and sys.argv[2] == "lock":
            self.pause()
        return super().lock(fd, **how)

FileBlobs(sys.argv[1], files=Paused()).keep_room(1)
print("made", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("before", ["open", "lock"])
def test_another_process_does_not_sweep_what_is_half_made(tmp_path: Path, before: str) -> None:
    blobs = tmp_path / "blobs"
    command = [sys.executable, "-c", MAKER, str(blobs), before]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdin is not None
        assert maker.stdout is not None
        for _ in range(ROOMS):
            assert maker.stdout.readline() == "here\n"
            here = FileBlobs(blobs)
            here.keep_room(1)
            here.keep_room(-1)
            maker.stdin.write("\n")
            maker.stdin.flush()
        assert maker.stdout.readline() == "made\n"
        assert len(list(blobs.glob(f".room-{maker.pid}-*/blob"))) == ROOMS
        here = FileBlobs(blobs)
        here.keep_room(1)
        assert len(list(blobs.glob(f".room-{maker.pid}-*/blob"))) == ROOMS, "it lives"
        here.keep_room(-1)
        maker.kill()
    here = FileBlobs(blobs)
    here.keep_room(1)
    assert list(blobs.glob(f".room-{maker.pid}-*")) == []
    here.keep_room(-1)
