"""The laboratory has teeth: each broken variant of the log is caught within a few hundred cuts."""

import sys

import pytest

from tests.crash.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_caught(mutant: Mutant) -> None:
    figures = mutant.run(enough=1)
    assert figures.violations, f"{mutant.name} was not caught in {figures.cuts} cuts"


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
