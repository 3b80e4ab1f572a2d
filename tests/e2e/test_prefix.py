"""A small run of benches/prefix.py: a session that is killed and resumed keeps what a provider has cached."""

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "benches" / "prefix.py"


def test_a_killed_and_resumed_session_keeps_its_start() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "40", "3", "64000"], capture_output=True, encoding="utf-8", timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "all built again byte for byte" in done.stdout
    ours, window, *_ = (float(share) for share in re.findall(r"([\d.]+)%", done.stdout))
    assert ours >= 93, done.stdout
    assert window < ours / 2, done.stdout
