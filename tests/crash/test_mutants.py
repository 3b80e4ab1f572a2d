"""The laboratory has teeth: each broken variant of the log is caught within a few hundred cuts."""

import sys
from pathlib import Path

import pytest

from tests.crash.indexed import indexed_runs
from tests.crash.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_caught(mutant: Mutant) -> None:
    figures = mutant.run(enough=1)
    assert figures.violations, f"{mutant.name} was not caught in {figures.cuts} cuts"


def test_the_index_says_nothing_that_the_logs_do_not(tmp_path: Path) -> None:
    figures = indexed_runs(0, 25, tmp_path)
    assert figures.violations == []
    assert figures.cuts > 150


def test_a_trusted_index_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: rows of the index are believed without a look at whether the log is still that log."""
    monkeypatch.setattr("agentsh.app.catalog._is_of", lambda stamp, place: bool(stamp))
    assert indexed_runs(0, 25, tmp_path, enough=1).violations


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_how_often_mutants_are_caught() -> None:
    """Print the table of docs/durability.md."""
    rows = []
    for mutant in MUTANTS:
        figures = mutant._replace(cuts=2_000).run()
        rows.append(f"| {mutant.name} | {figures.cuts:,} | {len(figures.violations):,} of {figures.runs:,} |")
        assert figures.violations, mutant.name
    sys.stderr.write("\n" + "\n".join(rows) + "\n")
