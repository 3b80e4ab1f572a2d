"""A link that is swapped in while a file tool works never leads it out of the workspace, whichever tool it is."""

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.wiring import TOOLS, load
from agentsh.base.errors import ToolFailed
from agentsh.ports.tool import Tool, ToolContext
from agentsh.workspace.local import LocalWorkspace

SECRET = "canary of somebody else"
EXCHANGE = 2
TRIES, LONGEST_S = 60, 1.5

ARGUMENTS: dict[str, dict[str, Mapping[str, Any]]] = {
    "read": {"file": {"path": "swapped"}, "directory": {"path": "place/file"}},
    "list": {"file": {"path": "swapped"}, "directory": {"path": "place"}},
    "glob": {
        "file": {"pattern": "*", "path": "swapped"},
        "directory": {"pattern": "*", "path": "place"},
    },
    "grep": {
        "file": {"pattern": "canary", "path": "swapped"},
        "directory": {"pattern": "canary", "path": "place"},
    },
    "write": {"file": {"path": "swapped", "content": "new"}, "directory": {"path": "place/file", "content": "new"}},
    "apply_patch": {
        "file": {"patch": "*** Begin Patch\n*** Update File: swapped\n@@\n+new\n*** End Patch"},
        "directory": {
            "patch": "*** Begin Patch\n*** Update File: place/file\n*** Move to: place/there\n"
            "*** Update File: place/there\n*** Move to: place/file\n@@\n+new\n*** Add File: place/more\n*** End Patch"
        },
    },
    "edit": {
        "file": {"path": "swapped", "old": "canary", "new": "new"},
        "directory": {"path": "place/file", "old": "canary", "new": "new"},
    },
}
"""For each tool: arguments whose last part, or a directory on the way, is swapped. A new tool needs a line here."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for directory in (root / "place", outside):
        directory.mkdir(parents=True)
    for file in (outside / "file", outside / "other"):
        file.write_text(SECRET)
    for file in (root / "swapped", root / "place" / "file"):
        file.write_text("canary inside")
    (root / "link-to-file").symlink_to(outside / "file")
    (root / "link-to-place").symlink_to(outside)
    return root


@pytest.fixture
def swapping(root: Path) -> Iterator[None]:
    """Exchange file and link, and directory and link, each in one step, as fast as a thread can."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        pytest.skip("no renameat2")
    pairs = [
        tuple(os.fsencode(root / name) for name in names)
        for names in (("swapped", "link-to-file"), ("place", "link-to-place"))
    ]
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for one, other in pairs:
                libc.renameat2(-100, one, -100, other, EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("part", ["file", "directory"])
@pytest.mark.parametrize("name", ARGUMENTS)
async def test_no_tool_follows_a_link_that_is_swapped_in(root: Path, name: str, part: str) -> None:
    tool: Tool = load(TOOLS[name])
    context = ToolContext(LocalWorkspace(root, session="test-race"), "call")
    worked = refused = 0
    end_s = time.monotonic() + LONGEST_S
    while (worked + refused < TRIES or not refused) and time.monotonic() < end_s:
        try:
            outcome = await tool.run(context, ARGUMENTS[name][part])
            worked += 1
        except ToolFailed as error:
            said = str(error)
            refused += 1
        else:
            said = outcome.for_model + outcome.for_user
            assert all(SECRET.encode() not in (edit.before or b"") for edit in outcome.edits)
        assert SECRET not in said
        await asyncio.sleep(0)
    outside = root.parent / "outside"
    assert sorted(os.listdir(outside)) == ["file", "other"]
    assert {(outside / each).read_text() for each in ("file", "other")} == {SECRET}
    assert refused or name in ("grep", "list", "glob", "write", "apply_patch"), (
        "the race was never lost, so nothing was tried"
    )


def test_every_file_tool_is_raced() -> None:
    file_tools = {name for name, target in TOOLS.items() if load(target).spec.effects <= {"read", "write"}}
    assert file_tools - {"todo", "ask_user", "job"} <= set(ARGUMENTS)
