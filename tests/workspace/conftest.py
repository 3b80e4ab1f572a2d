"""A workspace in a temporary directory, next to a directory that must stay as it is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.strays import kill_session

SESSION = f"test-workspace-{os.getpid()}"  # tests run in several processes; each looks for its own strays
SECRET = b"secret of somebody else"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of the workspace; beside it is `outside` with a file `secret`."""
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    return root


@pytest.fixture
def workspace(root: Path) -> Iterator[LocalWorkspace]:
    yield LocalWorkspace(root, session=SESSION)
    assert kill_session(SESSION) == 0, "a process was left behind"
