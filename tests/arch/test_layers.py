"""The import contracts of pyproject.toml hold, and a seeded violation of each is caught."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as lint; lint()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("context/fold.py", "import os", "read no clock"),
        ("context/budget.py", "def f() -> None:\n    import time", "read no clock"),
        ("context/messages.py", "from agentsh.stores import memory", "reached only through app"),
        ("context/messages.py", "from agentsh.engine import policy", "only import downwards"),
        ("engine/turn.py", "from agentsh.models import scripted", "only import downwards"),
        ("engine/session.py", "from agentsh.stores import memory", "reached only through app"),
        ("stores/memory.py", "from agentsh.events import event", "only import downwards"),
        ("render/theme.py", "from agentsh.engine import session", "cannot reach a session"),
        ("log/frame.py", "import pydantic", "never load pydantic"),
        ("utils/__init__.py", '"""A package without a place."""', "only import downwards"),
    ],
)
def test_a_seeded_violation_is_caught(tmp_path: Path, file: str, line: str, contract: str) -> None:
    shutil.copytree(ROOT / "agentsh", tmp_path / "agentsh", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    target = tmp_path / "agentsh" / file
    target.parent.mkdir(exist_ok=True)
    old = target.read_text() if target.exists() else '"""New."""\n'
    target.write_text(f"{old}\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode != 0
    broken = [row for row in done.stdout.splitlines() if "BROKEN" in row] or [done.stdout]
    assert any(contract in row for row in broken), done.stdout
