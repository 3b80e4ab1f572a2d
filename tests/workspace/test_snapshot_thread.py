"""Snapshots behind their port: in the background, cancelled, in a directory that is too large, on a full disk."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed, WorkspaceError
from agentsh.ports.snapshots import Step
from agentsh.ports.tool import Edit
from agentsh.testing import MemoryBlobs
from agentsh.workspace import snapshot_walk
from agentsh.workspace.snapshot_thread import WorkspaceSnapshots


class SlowBlobs(MemoryBlobs):
    """Waits in `put` until a test says so; counts who keeps gc out."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.full = False
        self.held = 0

    def put(self, data: bytes) -> str:
        assert self.go.wait(20)
        if self.full:
            raise LogWriteFailed("no space left on the device")
        return super().put(data)

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1


def made(root: Path, blobs: MemoryBlobs, **more: object) -> WorkspaceSnapshots:
    return WorkspaceSnapshots(str(root), blobs, git="own", **more)  # type: ignore[arg-type]


async def test_the_first_one_is_taken_beside_and_once(root: Path) -> None:
    (root / "f").write_text("1")
    blobs = SlowBlobs()
    blobs.go.set()
    shots = made(root, blobs)
    shots.begin()
    shots.begin()
    async with shots.holding():
        (first,) = await shots.before(look=True)
        assert first.by == "start"
        assert blobs.held >= 1
        assert await shots.before(look=True) == []
    (root / "f").write_text("22")
    (ours,) = await shots.after(None)
    assert ours.by == "tool"
    (root / "f").write_text("333")
    assert await shots.before(look=False) == []
    (theirs,) = await shots.before(look=True)
    assert theirs.by == "outside"
    await shots.close()
    await shots.close()
    assert blobs.held == 0


async def test_what_a_job_writes_while_files_go_back_is_left_alone(root: Path) -> None:
    """Between the look and the change of each file: named afterwards, and in the next snapshot as somebody else's."""
    blobs = MemoryBlobs()
    shots = made(root, blobs)
    for name in ("quiet", "written", "removed", "made"):
        (root / name).write_text("first")
    (root / "d").mkdir()
    (first,) = await shots.before(look=True)
    (root / "made").unlink()
    for name in ("quiet", "written", "removed", "d/mine", "new"):
        (root / name).write_text("second, by the session")
    (ours,) = await shots.after(None)
    steps = [Step(1, first.ref, "start"), Step(2, ours.ref, "tool")]
    winding = await shots.plan(steps, 1)
    assert winding.conflicts == ()
    (root / "written").write_text("by a job")
    (root / "removed").unlink()
    (root / "made").write_text("by a job")
    (root / "d" / "mine").unlink()
    (root / "d" / "mine").symlink_to("nowhere")
    (root / "new").write_text("second, by the session, and by a job")
    taken = await shots.wind(winding)
    (told,) = shots.remarks()
    assert told == "changed by somebody else just now, and left alone: d/mine, made, new, removed, written"
    assert (root / "quiet").read_text() == "first"
    assert (root / "written").read_text() == (root / "made").read_text() == "by a job"
    assert not (root / "removed").exists()
    assert (root / "d" / "mine").is_symlink()
    assert (root / "new").read_text() == "second, by the session, and by a job"
    assert [t.by for t in taken] == ["rewind", "outside"]
    steps += [Step(3 + n, t.ref, t.by) for n, t in enumerate(taken)]
    again = await shots.plan(steps, 2)
    assert (again.paths, again.conflicts) == (("d", "quiet"), ()), "its undoing leaves them alone too"
    await shots.wind(again)
    assert (root / "quiet").read_text() == "second, by the session"
    assert (root / "written").read_text() == "by a job"
    await shots.close()


async def test_who_is_cancelled_does_not_wait_and_loses_nothing(root: Path) -> None:
    (root / "f").write_text("1")
    blobs = SlowBlobs()
    shots = made(root, blobs)
    shots.begin()

    async def use() -> None:
        async with shots.holding():
            await shots.before(look=True)

    for _ in range(2):
        task = asyncio.create_task(use())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        assert task.cancelled(), "while the thread is still at work"
    blobs.go.set()
    async with shots.holding():
        (first,) = await shots.before(look=True)
    assert first.by == "start"
    await shots.close()
    assert blobs.held == 0


async def test_a_turn_that_needed_none_lets_gc_in(root: Path) -> None:
    (root / "f").write_text("1")
    blobs = SlowBlobs()
    blobs.go.set()
    shots = made(root, blobs)
    shots.begin()
    await shots.turn_ended()
    await shots.compare([])  # behind it on the thread
    assert blobs.held == 0
    blobs._bytes.clear()  # gc
    shots.begin()
    (first,) = await shots.before(look=True)
    assert len(blobs._bytes) == 2, "content and manifest are written anew"
    assert first.files == 1
    await shots.close()


async def test_a_directory_that_is_too_large_keeps_what_edit_tools_change(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        (root / f"f{n}").write_text("x")
    monkeypatch.setattr(snapshot_walk, "MAX_ENTRIES", 3)
    shots = made(root, MemoryBlobs())
    assert await shots.before(look=True) == []
    (remark,) = shots.remarks()
    assert "only what edit tools change" in remark
    assert shots.remarks() == []
    (root / "f1").write_text("y")
    taken = await shots.after([Edit("f1", b"x", b"y")])
    assert [t.by for t in taken] == ["outside", "tool"]
    assert await shots.after(None) == []
    await shots.close()


async def test_what_a_full_disk_has_kept_out_is_the_tools_all_the_same(root: Path) -> None:
    blobs = SlowBlobs()
    blobs.go.set()
    shots = made(root, blobs)
    await shots.before(look=True)
    (root / "f").write_text("1")
    blobs.full = True
    with pytest.raises(LogWriteFailed):
        await shots.after(None)
    blobs.full = False
    (taken,) = await shots.before(look=True)
    assert taken.by == "tool"
    await shots.close()


async def test_what_a_dead_process_left_is_whoevers_turn_it_was(root: Path, tmp_path: Path) -> None:
    blobs, cache = MemoryBlobs(), tmp_path / "stat"
    one = made(root, blobs, cache=cache)
    (start,) = await one.before(look=True)
    await one.close()
    assert cache.exists()
    (root / "f").write_text("1")
    two = made(root, blobs, ref=start.ref, unfinished="tool", cache=cache)
    (taken,) = await two.before(look=False)
    assert taken.by == "tool"
    await two.close()
    three = made(root, blobs, ref="sha256:" + "0" * 64)
    (anew,) = await three.before(look=True)
    assert anew.by == "start", "a manifest that is gone: it begins anew"
    await three.close()


def test_a_place_that_is_no_path(tmp_path: Path) -> None:
    """A log may say anything: `rewind` ended as an internal error."""
    snapshots = WorkspaceSnapshots(f"{tmp_path}\0x", MemoryBlobs(), git="own")
    with pytest.raises(WorkspaceError, match="is no path"):
        asyncio.run(snapshots.before(look=True))
