"""A short run of benches/context.py: a checkpoint becomes a request in little more than the reading of its JSON."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "benches" / "context.py"
ROUNDS = "5"
MOST = 25.0
"""Times `json.loads` of the same bytes; about 6 on an idle machine."""


@pytest.mark.ratio
def test_a_context_is_ready_from_its_checkpoint_in_milliseconds() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, ROUNDS], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    ratios = {what: float(ratio) for what, ratio in re.findall(r"^\| (\w+) \|.*\| ([\d.]+) \|$", done.stdout, re.M)}
    assert ratios.keys() == {"checkpoint", "step"}
    assert max(ratios.values()) < MOST, done.stdout
