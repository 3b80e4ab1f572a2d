"""Many runs: from seeds upwards, or short lives that end at each of their changes."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from agentsh.base.errors import AgentshError
from tests.crash.laboratory import Figures, Options, Run
from tests.crash.ledger import Violation
from tests.crash.machine import one_thread

SHORT_LIFE = 36
CHANGES_OF_A_TURN = 18
"""Changes of the disk in a short life, and with each turn that closes and seals a segment, and some more."""


def laboratory(first_seed: int, cuts: int, options: Options | None = None, *, enough: int = 0) -> Figures:
    """Make runs from seeds upwards until there were so many cuts, or `enough` violations."""
    figures, options, seed = Figures(), options or Options(), first_seed
    while figures.cuts < cuts and not (enough and len(figures.violations) >= enough):
        one_run(seed, options, figures, lambda run: run.go())
        seed += 1
    return figures


def short_lives(options: Options | None = None, *, step: int = 1, enough: int = 0, turns: int = 0) -> Figures:
    """Make every run of a short life that is killed, another that the power ends, and a third that looks.

    step: only every so many places. turns: see `Run.short`. Most faults of file systems show in short workloads that
    are ended at each place (CrashMonkey, OSDI 2018); so here.
    """
    figures, options = Figures(), options or Options()
    last = max(SHORT_LIFE, (turns + 1) * CHANGES_OF_A_TURN)
    places = [*range(1, last, step), 0]
    for killed_at in places:
        for cut_at in places:
            if enough and len(figures.violations) >= enough:
                return figures
            what = partial(Run.short, killed_at=killed_at, cut_at=cut_at, turns=turns)
            one_run(killed_at * last + cut_at, options, figures, what)
    return figures


def one_run(seed: int, options: Options, figures: Figures, what: Callable[[Run], None]) -> None:
    with ExitStack() as stack:
        stack.enter_context(one_thread(seed, rooms=options.rooms))
        for patch in options.patches:
            stack.enter_context(patch())
        try:
            what((options.run or Run)(seed, options, figures))
        except (Violation, AgentshError, OSError, AssertionError, LookupError, ValueError, TypeError) as error:
            figures.violations.append(f"seed {seed}: {type(error).__name__}: {error}")
    figures.runs += 1
