"""A workspace, and a way to call a tool as the engine does."""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.wiring import TOOLS, load
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.strays import kill_session

SESSION = f"test-tools-{os.getpid()}"  # tests run in several processes; each looks for its own strays
Call = Callable[..., Awaitable[ToolOutcome]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def workspace(root: Path) -> Iterator[LocalWorkspace]:
    yield LocalWorkspace(root, session=SESSION)
    assert kill_session(SESSION) == 0


@pytest.fixture
def progress() -> list[str]:
    """What the tools showed while they ran."""
    return []


@pytest.fixture
def call(workspace: LocalWorkspace, progress: list[str]) -> Call:
    """`await call("read", path="a")`: through the JSON that a model would write."""

    async def call(name: str, **arguments: Any) -> ToolOutcome:
        tool: Tool = load(TOOLS[name])
        checked = tool.parse(json.dumps(arguments))
        return await tool.run(ToolContext(workspace, "call_1", progress.append), checked)

    return call
