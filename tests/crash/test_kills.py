"""kill -9 of real writers, with their threads, at random moments: every acknowledged record is there afterwards."""

import sys
from pathlib import Path

import pytest

from tests.crash.kills import Killer


def test_twenty_five_kills(tmp_path: Path) -> None:
    with Killer(tmp_path, 25) as killer:
        toll = killer.run(25)
    assert toll.violations == []
    assert toll.kills == 25
    assert toll.records > 25


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_thousand_kills(tmp_path: Path) -> None:
    with Killer(tmp_path, 2026) as killer:
        toll = killer.run(2_000)
    sys.stderr.write(f"\n{toll}\n")
    assert toll.violations == []
    assert toll.kills == 2_000
    assert min(toll.sealed, toll.unseen) > 0
