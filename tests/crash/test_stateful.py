"""A model that hypothesis drives: append, wait, save, close, reopen, cut, kill, rot, second writer, in any order."""

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agentsh.base.errors import LogWriteFailed
from agentsh.log.store import OpenLog
from tests.crash.checkpoints import REDUCER, CheckpointRun
from tests.crash.laboratory import Figures, Options, Run
from tests.crash.ledger import draft
from tests.crash.machine import Machine, Plan, now, one_thread


class LogModel(RuleBasedStateMachine):
    """One session on a simulated disk, and the ledger of what it has promised."""

    def __init__(self) -> None:
        super().__init__()
        self._inline = one_thread(0)
        self._inline.__enter__()
        self._run = CheckpointRun(0, Options(rot=0.0, kills=0.0), Figures())
        self._ledger = self._run.ledgers[0]
        self._machine = Machine(self._run.disk, Random(0), Plan())
        self._log: OpenLog | None = None
        self._rotten = False
        self._texts = 0

    def teardown(self) -> None:
        self._inline.__exit__(None, None, None)

    @precondition(lambda self: self._log is None)
    @rule()
    def open(self) -> None:
        self._machine = Machine(self._run.disk, self._run.dice, Plan())
        self._log = self._run.begin(self._run.store_on(self._machine), self._ledger)

    @precondition(lambda self: self._log is not None)
    @rule(sizes=st.lists(st.sampled_from((0, 300, 5_000, 30_000)), min_size=1, max_size=4))
    def append(self, sizes: list[int]) -> None:
        assert self._log is not None
        drafts = []
        for size in sizes:
            self._texts += 1
            drafts.append(draft(f"{self._texts} " + "x" * size))
        self._ledger.trying(drafts)
        self._ledger.told_of(now(self._log.append(drafts)))

    @precondition(lambda self: self._log is not None)
    @rule(part=st.floats(0, 1))
    def wait(self, part: float) -> None:
        assert self._log is not None
        seq = round(self._log.last_seq * part)
        now(self._log.wait_durable(seq))
        self._ledger.said_durable(seq)

    @precondition(lambda self: self._log is not None)
    @rule()
    def end_of_a_turn(self) -> None:
        assert self._log is not None
        now(self._log.turn_ended())

    @precondition(lambda self: self._log is not None)
    @rule()
    def checkpoint(self) -> None:
        assert self._log is not None
        if self._ledger.told and self._log.last_seq == max(self._ledger.told):
            state = b"\n".join(line for _, line in sorted(self._ledger.told.items()))
            now(self._log.checkpoint(state, reducer=REDUCER, keep=2))
            self._ledger.said_durable(self._log.durable_seq)

    @precondition(lambda self: self._log is not None)
    @rule()
    def close(self) -> None:
        assert self._log is not None
        now(self._log.close())
        self._ledger.said_durable(self._ledger.last)
        self._log = None

    @precondition(lambda self: self._log is not None)
    @rule()
    def second_writer(self) -> None:
        self._run.second_writer(self._ledger, self._run.store_on(self._machine))

    @rule(seed=st.integers(0, 1 << 32), power_cut=st.booleans(), look=st.booleans())
    def crash(self, seed: int, power_cut: bool, look: bool) -> None:
        self._machine.dead = True
        self._log = None
        self._run.dice.seed(seed)
        self._run.stop(power_cut)
        if look or power_cut:
            self._run.recover(self._ledger)

    @precondition(lambda self: self._log is None and not self._rotten)
    @rule(seed=st.integers(0, 1 << 32))
    def corrupt_a_byte(self, seed: int) -> None:
        self._run.dice.seed(seed)
        self._run.rot()
        self._rotten = True

    @invariant()
    def nothing_durable_is_ahead_of_what_was_written(self) -> None:
        if self._log is not None:
            assert self._log.durable_seq <= self._log.last_seq == self._ledger.last


def test_any_order_of_things_keeps_every_promise() -> None:
    run_state_machine_as_test(
        LogModel,
        settings=settings(
            max_examples=60,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )


def test_the_model_refuses_what_was_never_written() -> None:
    with one_thread(0):
        run = Run(0, Options(), Figures())
        log = run.begin(run.store_on(Machine(run.disk, Random(0), Plan())), run.ledgers[0])
        assert log is not None
        try:
            now(log.wait_durable(5))
        except LogWriteFailed:
            return
    raise AssertionError("it waits for nothing")
