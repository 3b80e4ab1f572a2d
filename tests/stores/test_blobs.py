"""Blobs as files: durable before they are named, never trusted, healed by the next put."""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from agentsh.base.errors import BlobMissing, LogWriteFailed
from agentsh.stores.blobs import FileBlobs
from tests.log.disks import FaultyFiles, MemFiles

DATA = b"some bytes " * 1000


def path_of(root: Path, ref: str) -> Path:
    name = ref.removeprefix("sha256:")
    return root / name[:2] / f"{name}.zst"


def test_the_layout_and_the_frame(tmp_path: Path) -> None:
    ref = FileBlobs(tmp_path).put(DATA)
    packed = path_of(tmp_path, ref).read_bytes()
    assert zstandard.ZstdDecompressor().decompress(packed) == DATA
    assert zstandard.get_frame_parameters(packed).has_checksum
    assert sorted(p.name for p in tmp_path.rglob("*")) == sorted([path_of(tmp_path, ref).name, ref[7:9], "lock"])


@pytest.mark.parametrize("damage", [b"", b"garbage", b"(\xb5/\xfd" + b"\xff" * 40, None])
def test_a_damaged_blob_is_missing_until_it_is_put_again(tmp_path: Path, damage: bytes | None) -> None:
    ref = FileBlobs(tmp_path).put(DATA)
    path = path_of(tmp_path, ref)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] if damage is None else damage)
    blobs = FileBlobs(tmp_path)
    with pytest.raises(BlobMissing):
        blobs.get(ref)
    assert blobs.put(DATA) == ref
    assert blobs.get(ref) == DATA
    path.write_bytes(b"")
    assert blobs.put(DATA) == ref  # also by an object that wrote it before
    assert blobs.get(ref) == DATA


def test_every_flipped_bit_of_a_blob_is_noticed(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    data = os.urandom(40) + b"x" * 200
    ref = blobs.put(data)
    path = path_of(tmp_path, ref)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            path.write_bytes(bytes(flipped))
            with suppress(BlobMissing):
                assert blobs.get(ref) == data  # a bit that means nothing


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    ref = FileBlobs(tmp_path).put(DATA)
    before = path_of(tmp_path, ref).stat()
    blobs = FileBlobs(tmp_path)
    for _ in range(3):
        assert blobs.put(DATA) == ref
    after = path_of(tmp_path, ref).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_it_is_synced_before_it_has_its_name_and_the_name_before_put_returns() -> None:
    disk = MemFiles()
    files = FaultyFiles(disk)
    FileBlobs("/blobs", files=files).put(b"first")
    files.ops.clear()
    FileBlobs("/blobs", files=files).put(DATA)
    ops = [op for op in files.ops if op in ("write", "sync", "rename", "sync_dir")]
    assert ops[-4:] == ["write", "sync", "rename", "sync_dir"]


@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_every_operation_fails_in_turn(error: int, for_ever: bool) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = MemFiles()
        files = FaultyFiles(disk, n, error, for_ever=for_ever)
        blobs = FileBlobs("/blobs", files=files)
        try:
            ref = blobs.put(DATA)
            assert FileBlobs("/blobs", files=disk).get(ref) == DATA
        except LogWriteFailed:
            pass
        done = not files.hit
        assert disk.fds == {}, n
        assert FileBlobs("/blobs", files=disk).get(FileBlobs("/blobs", files=disk).put(DATA)) == DATA
    assert n > 8


def test_a_shared_lock_is_held_from_blob_to_event(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    with blobs.writing():
        blobs.put(DATA)
        with (tmp_path / "lock").open("r+b") as gc:
            with pytest.raises(BlockingIOError):
                fcntl.flock(gc, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(gc, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with (tmp_path / "lock").open("r+b") as gc:
        fcntl.flock(gc, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_two_names_are_never_confused(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    one, two = blobs.put(b"one"), blobs.put(b"two")
    path_of(tmp_path, one).write_bytes(path_of(tmp_path, two).read_bytes())
    with pytest.raises(BlobMissing):
        blobs.get(one)
