"""Archives: what comes out is what went in, and no fault at any moment loses it."""

import errno
import gc
import importlib.util
import os
import resource
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import zstandard

from agentsh.log.archive import NEW, Unarchivable, archive
from agentsh.log.archived import ArchivedFiles, archive_damage, reading
from agentsh.log.chain import LogScan
from agentsh.log.files import RealFiles
from agentsh.log.packed import NAME, compressor, describe, is_archived, verified
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.log.unarchive import Taken, settle, unarchive
from agentsh.testing.disks import SimDisk
from tests.log.archives import packed_log
from tests.log.disks import FaultyFiles, MemFiles, PowerCut
from tests.log.logs import DIR, SESSION
from tests.log.sealed_logs import seal_all, three_segments

FIRST, SECOND = closed_name(0, 1), closed_name(1, 21)
ALL = list(range(1, 61))
FACTS = {"summary": {"title": "修复 \u202e"}}

CUTS = 12
"""At each place: each keeps another part of what was not synced."""


def log_on(files: MemFiles | SimDisk) -> dict[str, bytes]:
    """Put a log with a sealed, a closed and an open segment on a disk; return its content by plain name."""
    source = three_segments()
    content = {name: source.data(f"{DIR}/{name}") for name in (FIRST, SECOND, OPEN_NAME)}
    seal_all(source, below=1)
    names = {
        FIRST + SEALED: source.data(f"{DIR}/{FIRST}{SEALED}"),
        SECOND: content[SECOND],
        OPEN_NAME: content[OPEN_NAME],
    }
    if isinstance(files, SimDisk):
        files.mkdir("/sessions")
        files.mkdir(DIR)
        files.sync_dir("/")
        files.sync_dir("/sessions")
    for name, data in names.items():
        if isinstance(files, MemFiles):
            files.put(f"{DIR}/{name}", data)
            continue
        fd = files.open(f"{DIR}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        files.write(fd, data)
        files.sync(fd)
        files.close(fd)
        files.sync_dir(DIR)
    return content


def seqs(files: MemFiles | SimDisk) -> list[int]:
    scan = LogScan(files, DIR, SESSION)
    found = [entry[0] for entry in scan.entries()]
    assert scan.damages == []
    scan.close()
    return found


def whole(files: MemFiles | SimDisk) -> None:
    """The log is all there, in one form or the other, and comes out of either to the byte."""
    if is_archived(files, DIR):
        assert verified(files, f"{DIR}/{NAME}") is not None
        unarchive(files, DIR)
    assert seqs(files) == ALL


def test_what_comes_out_is_what_went_in() -> None:
    disk = MemFiles()
    content = log_on(disk)
    told = archive(disk, DIR, SESSION, FACTS)
    assert sorted(disk.listdir(DIR)) == [NAME]
    assert describe(disk, f"{DIR}/{NAME}") == told
    assert told.facts == FACTS
    assert told.raw_bytes == sum(map(len, content.values()))
    packed = disk.data(f"{DIR}/{NAME}")
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    assert reader.read() == content[FIRST] + content[SECOND] + content[OPEN_NAME]  # what `zstd -dc` prints
    unarchive(disk, DIR)
    assert {name: disk.data(f"{DIR}/{name}") for name in disk.listdir(DIR)} == content
    assert disk.fds == {}


@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_of_archiving_fails_in_turn(for_ever: bool) -> None:
    """Also where the power goes and takes all that was not synced; doing it again brings it to its end."""
    n, done = 0, False
    while not done:
        n += 1
        disk = PowerCut()
        log_on(disk)
        files = FaultyFiles(disk, n, errno.EIO, for_ever=for_ever)
        with suppress(OSError):
            archive(files, DIR, SESSION, FACTS)
        done = not files.hit
        assert disk.fds == {}, n
        for after in (*disk.left(), disk):
            whole(after)
            archive(after, DIR, SESSION, FACTS)
            assert after.listdir(DIR) == [NAME], n
            whole(after)
    assert n > 30


@pytest.mark.parametrize("for_ever", [False, True])
def test_every_operation_of_taking_back_fails_in_turn(for_ever: bool) -> None:
    n, done = 0, False
    while not done:
        n += 1
        disk = PowerCut()
        content = log_on(disk)
        archive(disk, DIR, SESSION, FACTS)
        files = FaultyFiles(disk, n, errno.ENOSPC, for_ever=for_ever)
        with suppress(OSError):
            unarchive(files, DIR)
        done = not files.hit
        assert disk.fds == {}, n
        for after in (*disk.left(), disk):
            if not is_archived(after, DIR):
                assert seqs(after) == ALL, n
            settle(after, DIR)  # what opening does
            assert {name: after.data(f"{DIR}/{name}") for name in after.listdir(DIR)} == content, n
    assert n > 20


@pytest.mark.parametrize("back", [False, True])
def test_power_cuts_that_keep_any_part_of_what_was_not_synced(back: bool) -> None:
    """At each operation in turn, also the last ones, which few cuts at random would hit."""
    dice, n, done = Random(7), 0, False
    while not done:
        n += 1
        disk = SimDisk()
        log_on(disk)
        if back:
            archive(disk, DIR, SESSION, FACTS)
        files = FaultyFiles(disk, n, errno.EIO, for_ever=True)
        with suppress(OSError):
            unarchive(files, DIR) if back else archive(files, DIR, SESSION, FACTS)
        done = not files.hit
        disk.kill()
        for _ in range(CUTS):
            after = disk.after_cut(dice)
            whole(after)
            whole(after.after_cut(dice))


def test_damage_anywhere_is_found_and_all_of_it_comes_back_all_the_same() -> None:
    disk = MemFiles()
    content = log_on(disk)
    archive(disk, DIR, SESSION, FACTS)
    packed = disk.data(f"{DIR}/{NAME}")
    dice = Random(3)
    for place in [*range(9), *(dice.randrange(len(packed)) for _ in range(120)), len(packed) - 1]:
        damaged = MemFiles()
        data = bytearray(packed)
        data[place] ^= 1 << dice.randrange(8)
        damaged.put(f"{DIR}/{NAME}", bytes(data))
        assert verified(damaged, f"{DIR}/{NAME}") is None, place
        assert unarchive(damaged, DIR) == Taken(NAME, True), place
        assert {name: damaged.data(f"{DIR}/{name}") for name in content} == content, place
        assert damaged.data(f"{DIR}/quarantine/{NAME}") == data


def test_a_log_with_damage_goes_in_and_comes_out_as_it_is() -> None:
    disk = MemFiles()
    content = log_on(disk)
    bad = bytearray(content[SECOND])
    bad[900] ^= 4
    disk.put(f"{DIR}/{SECOND}", bytes(bad))
    disk.put(f"{DIR}/{OPEN_NAME}", content[OPEN_NAME] + b'{"seq":61,"ts"')
    archive(disk, DIR, SESSION, {})
    unarchive(disk, DIR)
    assert disk.data(f"{DIR}/{SECOND}") == bad
    assert disk.data(f"{DIR}/{OPEN_NAME}").endswith(b'{"seq":61,"ts"')


def test_a_sealed_segment_that_does_not_unpack_stops_archiving() -> None:
    disk = MemFiles()
    log_on(disk)
    data = bytearray(disk.data(f"{DIR}/{FIRST}{SEALED}"))
    data[200] ^= 1
    disk.put(f"{DIR}/{FIRST}{SEALED}", bytes(data))
    with pytest.raises(Unarchivable):
        archive(disk, DIR, SESSION, {})
    assert sorted(disk.listdir(DIR)) == [FIRST + SEALED, SECOND, OPEN_NAME]


def test_a_stale_archive_beside_an_open_segment_is_never_the_log() -> None:
    """Taking back died before its last step, and a session went on: what it wrote must not be forgotten."""
    disk = MemFiles()
    content = log_on(disk)
    archive(disk, DIR, SESSION, {})
    stale = disk.data(f"{DIR}/{NAME}")
    unarchive(disk, DIR)
    disk.put(f"{DIR}/{NAME}", stale)
    disk.put(f"{DIR}/{NAME}{NEW}", b"half")
    assert not is_archived(disk, DIR)
    assert seqs(disk) == ALL
    settle(disk, DIR)
    assert NAME not in disk.listdir(DIR)
    assert disk.data(f"{DIR}/{OPEN_NAME}") == content[OPEN_NAME]


def test_readers_see_the_segments_and_what_is_left_of_a_damaged_archive(tmp_path: Path) -> None:
    source = MemFiles()
    log_on(source)
    for name in source.listdir(DIR):
        (tmp_path / name).write_bytes(source.data(f"{DIR}/{name}"))
    archive(RealFiles(), str(tmp_path), SESSION, {})
    (tmp_path / FIRST).write_bytes(b"a leftover")
    files = reading(RealFiles(), str(tmp_path))
    scan = LogScan(files, str(tmp_path), SESSION)
    assert [entry[0] for entry in scan.entries()] == ALL
    assert (scan.damages, archive_damage(files)) == ([], ())
    scan.close()
    packed = (tmp_path / NAME).read_bytes()
    for size, kind in ((len(packed) - 30, "scratch"), (900, "archive"), (0, "archive")):
        (tmp_path / NAME).write_bytes(packed[:size])
        (damage,) = archive_damage(reading(RealFiles(), str(tmp_path)))
        assert (damage.kind, damage.harmless, damage.rot) == (kind, kind == "scratch", True)


def test_no_room_to_unpack_it_leaves_no_file_open(tmp_path: Path) -> None:
    directory = tmp_path / SESSION
    directory.mkdir()
    (directory / NAME).write_bytes(packed_log())
    opened, was = len(os.listdir("/dev/fd")), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, was[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            ArchivedFiles(RealFiles(), str(directory))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    gc.collect()  # tells of a file that nobody closed
    assert len(os.listdir("/dev/fd")) == opened


def test_long_distance_matching_finds_what_a_window_would_not() -> None:
    """A megabyte of noise that comes again behind eight others costs nothing the second time."""
    disk = MemFiles()
    noise = Random(1).randbytes(1 << 20).hex().encode()
    other = Random(2).randbytes(4 << 20).hex().encode()
    disk.put(f"{DIR}/{OPEN_NAME}", noise + b"\n" + other + b"\n" + noise + b"\n")
    archive(disk, DIR, SESSION, {})
    assert len(disk.data(f"{DIR}/{NAME}")) < (len(noise) + len(other)) * 0.6


def test_at_least_four_fifths_are_saved(tmp_path: Path) -> None:
    """On the corpus of the benches, 8 MB of it; 67 MB save 88 %."""
    spec = importlib.util.spec_from_file_location("segments", Path(__file__).parents[2] / "benches" / "segments.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.fill(tmp_path / bench.SESSION, 1, 8 << 20)
    told = archive(RealFiles(), str(tmp_path / bench.SESSION), bench.SESSION, {})
    assert (tmp_path / bench.SESSION / NAME).stat().st_size <= 0.2 * told.raw_bytes


def test_an_archive_finds_what_was_said_long_before() -> None:
    """Long-distance matching: without it a text that comes again behind 32 MiB of others is packed anew."""
    dice = Random(1)
    text, others = (dice.randbytes(size).hex().encode() for size in (1 << 19, 16 << 20))
    squeezer = compressor(2 * len(text) + len(others))
    squeezer.compress(text + others)
    squeezer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    again = squeezer.compress(text) + squeezer.flush()
    assert len(again) < len(text) / 50
