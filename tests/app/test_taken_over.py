"""What is in the place of `applied.json`, or of what saves reading a workspace again, is told from a plain file."""

import os
from pathlib import Path

import pytest

from agentsh.app.applying import apply
from agentsh.app.diffing import SessionDiff
from agentsh.app.taken_over import TakenOver
from agentsh.context.state import SessionState
from agentsh.ports.snapshots import Step
from agentsh.stores.memory import MemoryBlobs
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_diff import file_changes


@pytest.mark.parametrize("kind", ["pipe", "deep", "other", "directory"])
def test_it_neither_waits_nor_fails(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "applied.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.write_text("[" * 100_000 if kind == "deep" else '{"/x": ["y"]}')
    steps = [Step(1, "sha256:0", "start")]
    assert TakenOver(file, MemoryBlobs(), steps, [], {}).since(tmp_path) is None
    Snapshotter(str(tmp_path), MemoryBlobs(), git="own").load_cache(file)


class Meanwhile(MemoryBlobs):
    """Somebody changes a file while a content is fetched. gets: how many were; at: which one."""

    gets, at = 0, -1
    theirs: Path

    def get(self, ref: str) -> bytes:
        self.gets += 1
        if self.gets == self.at:
            self.theirs.write_bytes(b"somebody's\n")
        return super().get(ref)


def test_what_was_left_alone_at_the_last_moment_is_not_taken_for_applied(tmp_path: Path) -> None:
    blobs, mine, ws = Meanwhile(), tmp_path / "mine", tmp_path / "ws"
    for place in (mine, ws):
        place.mkdir()
        for name in "ab":
            (place / name).write_text("1\n")
    snapshotter = Snapshotter(str(ws), blobs)
    snapshotter.take("start")
    before = dict(snapshotter.nodes)
    for name in "ab":
        (ws / name).write_text("session\n")
    ((taken,), _) = snapshotter.take("tool")
    changes, after = file_changes(before, snapshotter.nodes), dict(snapshotter.nodes)
    applied = TakenOver(tmp_path / "applied.json", blobs, [Step(2, taken.ref, "tool")], ["a", "b"], after)
    found = SessionDiff(changes, after, blobs, SessionState(id="x"), (), False, applied)
    blobs.theirs, blobs.gets = mine / "b", 0
    apply(found, mine, check=True)
    blobs.at, blobs.gets = blobs.gets + 1, 0  # the first one behind the plan
    assert apply(found, mine, check=False).late == ["b"]
    assert (mine / "a").read_text() == "session\n"
    assert [c.path for c in apply(found, mine, check=False).plan.conflicts] == ["b"], "it is still to come"
