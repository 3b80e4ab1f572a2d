"""What is in the place of `applied.json`, or of what saves reading a workspace again, is told from a plain file."""

import os
from pathlib import Path

import pytest

from agentsh.app.taken_over import TakenOver
from agentsh.ports.snapshots import Step
from agentsh.stores.memory import MemoryBlobs
from agentsh.workspace.snapshot import Snapshotter


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
