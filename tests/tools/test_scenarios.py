"""The public scenarios of the codex project, from a copy of it that APPLY_PATCH_SCENARIOS names; none are kept here.

`git clone https://github.com/openai/codex`, then with codex-rs/apply-patch/tests/fixtures/scenarios as that variable
`pytest tests/tools/test_scenarios.py`. Each is a directory: `patch.txt`, what is there before in `input`, what has to
be there afterwards in `expected`, whether the patch fails or not.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from tests.tools.conftest import Call
from tests.tools.test_apply_patch import tree

PLACE = os.environ.get("APPLY_PATCH_SCENARIOS")
FOUND = sorted(path.parent for path in Path(PLACE).glob("*/patch.txt")) if PLACE else []


@pytest.mark.skipif(PLACE is None, reason="APPLY_PATCH_SCENARIOS names no copy of them")
def test_they_are_there() -> None:
    assert len(FOUND) >= 22


@pytest.mark.parametrize("scenario", FOUND, ids=lambda path: path.name)
async def test_scenario(root: Path, call: Call, scenario: Path) -> None:
    if (scenario / "input").is_dir():
        shutil.copytree(scenario / "input", root, dirs_exist_ok=True)
    with suppress(ToolFailed):
        await call("apply_patch", patch=(scenario / "patch.txt").read_text(encoding="utf-8"))
    assert tree(root) == tree(scenario / "expected")
