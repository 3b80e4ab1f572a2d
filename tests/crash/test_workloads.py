"""Every workload of up to two operations (three by hand), ended at each of its changes."""

import sys

import pytest

from tests.crash.laboratory import Options
from tests.crash.mutants import NoBlobSync, NoDirectorySync, NoFileSync, NoHeaderSync
from tests.crash.workloads import exhaustive, workloads


def test_all_of_two_operations() -> None:
    figures = exhaustive(2)
    assert figures.violations == []
    assert figures.runs > 40 * len(list(workloads(2)))
    assert min(figures.rolls, figures.seals) > 10


@pytest.mark.parametrize("machine", [NoDirectorySync, NoFileSync, NoHeaderSync, NoBlobSync])
def test_they_catch_what_is_not_synced(machine: type) -> None:
    assert exhaustive(2, Options(machine=machine), enough=1).violations


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_all_of_three_operations() -> None:
    figures = exhaustive(3)
    sys.stderr.write(f"\nall of three operations: {figures}\n")
    assert figures.violations == []
