"""`gc`: every reference counts, wherever it stands; what cannot be read stops it; nothing young goes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from agentsh.base.errors import LogError
from agentsh.log.files import RealFiles
from agentsh.log.record import Draft
from agentsh.log.seal import seal_closed
from agentsh.stores.archiving import archive_session
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.collect import Collector, Garbage
from agentsh.stores.trash import Trash
from tests.stores.copies import SESSION, TS, Machine, long_text

MONTH = timedelta(days=30)
OLD_S = 90_000


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, "", segment_bytes=2_000)
    machine.begin()
    return machine


def collect(machine: Machine, *, dry_run: bool = False, older_than: timedelta = MONTH, at_s: float = 0) -> Garbage:
    collector = Collector(str(machine.root), older_than=older_than, now=lambda: time.time() + at_s)
    return collector.collect(dry_run=dry_run)


def blobs(machine: Machine) -> set[str]:
    return {p.stem for p in (machine.root / "blobs").glob("*/*.zst")}


def aged(machine: Machine) -> None:
    for path in (machine.root / "blobs").glob("*/*"):
        os.utime(path, (time.time() - OLD_S,) * 2)


def orphan(machine: Machine, text: bytes = b"nobody names this") -> str:
    return FileBlobs(machine.root / "blobs").put(text).removeprefix("sha256:")


def test_only_what_nothing_refers_to_goes_and_only_when_it_is_old(machine: Machine) -> None:
    machine.write(long_text(1))
    named, lost = blobs(machine), orphan(machine)
    assert collect(machine).blobs == 0  # young
    aged(machine)
    told = collect(machine, dry_run=True)
    assert (told.blobs, told.kept_blobs) == (1, 1)
    assert blobs(machine) == {*named, lost}
    assert collect(machine) == told
    assert blobs(machine) == named
    assert collect(machine).blobs == 0


Place = Callable[[Machine], object]


def sealed(machine: Machine) -> None:
    machine.write("x" * 900, turns=6)
    seal_closed(RealFiles(), str(machine.directory), SESSION, below=2, min_bytes=0)
    assert len(list(machine.directory.glob("*.zst"))) >= 2  # the session itself may have sealed one


def archived(machine: Machine) -> None:
    sealed(machine)
    archive_session(str(machine.root / "sessions"), SESSION, dict)


def mended(machine: Machine) -> None:
    """The byte is one of the frame, which does not unpack as it is."""
    archived(machine)
    path = machine.directory / "archive.jsonl.zst"
    data = path.read_bytes()
    at = data.index(b"\x28\xb5\x2f\xfd") + 6
    path.write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :])


def mended_in_quarantine(machine: Machine) -> None:
    mended(machine)
    (machine.directory / "quarantine").mkdir(exist_ok=True)
    path = machine.directory / "archive.jsonl.zst"
    path.rename(machine.directory / "quarantine" / "archive.1.jsonl.zst")


def trashed(machine: Machine) -> None:
    archived(machine)
    Trash(str(machine.root)).put(SESSION, why="rm", workspace=None)


def arriving(machine: Machine) -> None:
    (machine.root / "incoming").mkdir()
    machine.directory.rename(machine.root / "incoming" / SESSION)


def aside(machine: Machine) -> None:
    (machine.directory / "quarantine").mkdir()
    (machine.directory / "events.jsonl").rename(machine.directory / "quarantine" / "old")


def elsewhere(machine: Machine) -> None:
    moved = machine.root / "another disk" / SESSION
    moved.parent.mkdir()
    machine.directory.rename(moved)
    machine.directory.symlink_to(moved)
    (moved / "again").symlink_to(moved)


def all_elsewhere(machine: Machine) -> None:
    moved = machine.root / "another disk"
    (machine.root / "sessions").rename(moved)
    (machine.root / "sessions").symlink_to(moved)


def checkpointed(machine: Machine, session: str = "of another log") -> None:
    from agentsh.log.chain import Anchor
    from agentsh.log.checkpoint import Checkpoint, write_checkpoint

    (name,) = blobs(machine)
    state = f'{{"system_prompt":{{"blob":"sha256:{name}"}}}}'.encode()
    (machine.directory / "events.jsonl").unlink()
    write_checkpoint(RealFiles(), str(machine.directory), Checkpoint(Anchor(1, 0, 0, "0" * 8), session, "r", state))


@pytest.mark.parametrize(
    "where",
    [
        sealed,
        archived,
        mended,
        mended_in_quarantine,
        trashed,
        arriving,
        aside,
        checkpointed,
        elsewhere,
        all_elsewhere,
    ],
)
def test_a_reference_counts_wherever_it_stands(machine: Machine, where: Place) -> None:
    machine.write(long_text(1))
    (named,) = blobs(machine)
    where(machine)
    lost = orphan(machine)
    aged(machine)
    assert collect(machine).blobs == 1
    assert named in blobs(machine)
    assert lost not in blobs(machine)


def test_a_snapshot_holds_what_its_manifest_names(machine: Machine) -> None:
    content = orphan(machine, b"a file of the workspace")
    inner = orphan(machine, f'{{"a.py":"sha256:{content}"}}'.encode())
    machine.write("a")
    ref = orphan(machine, f'{{"dir":"sha256:{inner}","snapshot":"sha256:{inner}"}}'.encode())

    async def snapshot() -> None:
        opened = await machine.store.open(SESSION)
        await opened.log.append([Draft("snapshot_taken", TS, {"snapshot": f"sha256:{ref}", "files": 1, "bytes": 2})])
        await opened.log.close()

    import asyncio

    asyncio.run(snapshot())
    aged(machine)
    assert collect(machine).blobs == 0


def test_the_trash_keeps_for_a_month_and_then_its_blobs_go_too(machine: Machine) -> None:
    machine.write(long_text(1))
    (machine.root / "workspaces" / SESSION).mkdir(parents=True)
    where = Trash(str(machine.root)).put(SESSION, why="rm", workspace=str(machine.root / "workspaces" / SESSION))
    aged(machine)
    assert collect(machine, at_s=29 * 86_400).trash == ()
    assert (machine.root / where).exists()
    done = collect(machine, at_s=31 * 86_400)
    assert [t.session for t in done.trash] == [SESSION]
    assert done.blobs == 1
    assert not (machine.root / where).exists()
    assert blobs(machine) == set()


def damaged_line(machine: Machine) -> None:
    log = machine.directory / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[data.index(b"first") + 1] ^= 1
    log.write_bytes(bytes(data))


def damaged_frame(machine: Machine) -> None:
    sealed(machine)
    path = sorted(machine.directory.glob("*.zst"))[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))


def damaged_archive(machine: Machine) -> None:
    archived(machine)
    path = machine.directory / "archive.jsonl.zst"
    path.write_bytes(path.read_bytes()[:900])


def newer(machine: Machine) -> None:
    from agentsh.log.frame import with_crc

    body = '{"format":"agentsh-log/2","session":"x","ordinal":0,"first_seq":1,"nonce":"0"'
    (machine.directory / "events.jsonl").write_bytes(with_crc(body, 0) + b"{}\n" * 5)


def disk_not_there(machine: Machine) -> None:
    elsewhere(machine)
    (machine.root / "another disk").rename(machine.root / "in the drawer")


def disk_of_all_not_there(machine: Machine) -> None:
    all_elsewhere(machine)
    (machine.root / "another disk").rename(machine.root / "in the drawer")


def end_not_there(machine: Machine) -> None:
    checkpointed(machine, SESSION)


def damaged_elsewhere(machine: Machine) -> None:
    damaged_line(machine)
    elsewhere(machine)


def in_the_trash(machine: Machine) -> None:
    damaged_line(machine)
    Trash(str(machine.root)).put(SESSION, why="rm", workspace=None)


UNREADABLE = (
    damaged_line, damaged_frame, damaged_archive, newer, in_the_trash, damaged_elsewhere, disk_not_there,
    disk_of_all_not_there, end_not_there,
)  # fmt: skip


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_log_that_does_not_read_stops_it(machine: Machine, how: Place) -> None:
    machine.write("first", "second", "third")
    lost = orphan(machine)
    aged(machine)
    how(machine)
    for dry_run in (True, False):
        with pytest.raises(LogError, match="nothing was removed"):
            collect(machine, dry_run=dry_run)
    assert lost in blobs(machine)


def test_what_is_written_between_the_two_looks_counts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session names an old blob anew after the first look: the second one, alone with the lock, finds that."""
    machine.write("a")
    name = orphan(machine, long_text(1).encode())
    aged(machine)
    collector = Collector(str(machine.root), older_than=MONTH)
    alone = collector._alone

    def late() -> object:
        machine.write(long_text(1))
        return alone()

    monkeypatch.setattr(collector, "_alone", late)
    collector.collect(dry_run=False)
    assert name in blobs(machine)


HOLD = """
import sys, time
from agentsh.stores.blobs import FileBlobs
store = FileBlobs(sys.argv[1])
with store.writing():
    store.put(b"mine")
    print("held", flush=True)
    time.sleep(600)
"""


def test_it_waits_for_whoever_is_between_a_blob_and_its_event(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = orphan(machine)
    aged(machine)
    monkeypatch.setattr("agentsh.stores.collect.PATIENCE_S", 0.1)
    writer = subprocess.Popen([sys.executable, "-c", HOLD, machine.root / "blobs"], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        with pytest.raises(LogError, match="keeps writing"):
            collect(machine)
        assert lost in blobs(machine)
    finally:
        writer.kill()
        writer.wait(timeout=20)
        writer.stdout.close()
    assert collect(machine).blobs == 1
