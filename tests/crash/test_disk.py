"""The simulated disk forgets what it may forget, and nothing else."""

from random import Random

from agentsh.log.files import APPEND, CREATE
from agentsh.testing.disks import SimDisk


def disk_with(data: bytes) -> tuple[SimDisk, int]:
    disk = SimDisk()
    disk.mkdir("/d")
    disk.sync_dir("/")
    fd = disk.open("/d/f", CREATE)
    disk.write(fd, data)
    disk.sync(fd)
    disk.sync_dir("/d")
    return disk, fd


def after_cuts(disk: SimDisk, count: int = 300) -> list[dict[str, bytes]]:
    return [disk.after_cut(Random(seed)).tree() for seed in range(count)]


def test_what_is_synced_stays_and_what_is_not_comes_in_every_shape() -> None:
    disk, fd = disk_with(b"a" * 600)
    disk.write(fd, b"b" * 2_000)
    found = {tree["/d/f"] for tree in after_cuts(disk)}
    assert all(data.startswith(b"a" * 600) for data in found)
    assert {b"a" * 600, b"a" * 600 + b"b" * 2_000, b"a" * 600 + bytes(2_000)} <= found  # none, all, size without data
    assert any(0 < data.count(b"b") < 2_000 and data.endswith(b"b") and b"\0" in data for data in found)  # sectors
    disk.sync(fd)
    assert {tree["/d/f"] for tree in after_cuts(disk)} == {b"a" * 600 + b"b" * 2_000}


def test_at_its_worst_a_cut_takes_all_that_nobody_synced() -> None:
    disk, fd = disk_with(b"a")
    disk.write(fd, b"b")
    disk.open("/d/g", CREATE)
    disk.rename("/d/f", "/d/h")
    assert disk.after_cut(None).tree() == {"/d/f": b"a"}
    disk.sync(fd)
    assert disk.after_cut(None).tree() == {"/d/f": b"ab"}
    disk.sync_dir("/d")
    assert disk.after_cut(None).tree() == {"/d/g": b"", "/d/h": b"ab"}


def test_writes_during_a_sync_are_not_durable() -> None:
    disk, fd = disk_with(b"a")
    disk.write(fd, b"b")
    upto = disk.unsynced(fd)
    disk.write(fd, b"c")
    disk.sync(fd, upto)
    assert {tree["/d/f"][:2] for tree in after_cuts(disk)} == {b"ab"}
    assert b"ab" in {tree["/d/f"] for tree in after_cuts(disk)}


def test_a_cut_back_may_not_have_happened() -> None:
    disk, fd = disk_with(b"abc")
    disk.truncate(fd, 1)
    assert {b"a", b"abc"} <= {tree["/d/f"] for tree in after_cuts(disk)} <= {b"a", b"ab", b"abc"}


def test_names_come_and_go_each_by_itself() -> None:
    disk, _ = disk_with(b"x")
    disk.rename("/d/f", "/d/g")
    disk.open("/d/h", CREATE)
    assert {tuple(tree) for tree in after_cuts(disk)} == {("/d/f",), ("/d/g",), ("/d/f", "/d/h"), ("/d/g", "/d/h")}
    disk.sync_dir("/d")
    assert {tuple(tree) for tree in after_cuts(disk)} == {("/d/g", "/d/h")}


def test_a_move_to_another_directory_never_leaves_a_file_without_a_name() -> None:
    disk, _ = disk_with(b"x")
    disk.mkdir("/e")
    disk.sync_dir("/")
    disk.rename("/d/f", "/e/f")
    assert {tuple(tree) for tree in after_cuts(disk)} == {("/d/f",), ("/e/f",), ("/d/f", "/e/f")}
    disk.sync_dir("/d")
    assert {tuple(tree) for tree in after_cuts(disk)} == {("/d/f",), ("/e/f",), ("/d/f", "/e/f")}
    disk.sync_dir("/e")
    disk.sync_dir("/d")
    assert {tuple(tree) for tree in after_cuts(disk)} == {("/e/f",)}


def test_a_failed_sync_drops_the_data_and_the_next_one_says_that_all_is_well() -> None:
    disk, fd = disk_with(b"a")
    disk.write(fd, b"b")
    disk.fail_sync(fd, evict=False)
    disk.sync(fd)
    assert disk.read(fd, 9, 0) == b"ab"
    assert {tree["/d/f"] for tree in after_cuts(disk)} == {b"a"}


def test_a_killed_process_loses_its_locks_and_nothing_else() -> None:
    disk, fd = disk_with(b"a")
    disk.write(fd, b"b")
    assert disk.lock(fd, exclusive=True, wait=False)
    other = disk.open("/d/f", APPEND)
    assert not disk.lock(other, exclusive=True, wait=False)
    disk.kill()
    other = disk.open("/d/f", APPEND)
    assert disk.lock(other, exclusive=True, wait=False)
    assert disk.tree() == {"/d/f": b"ab"}
