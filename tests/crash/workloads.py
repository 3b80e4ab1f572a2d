"""Every workload of a few operations, ended at each of its changes: bounded and exhaustive, without dice.

Source: CrashMonkey and ACE (OSDI 2018): of the known crash faults of file systems nearly all show in workloads of up
to three operations. Two ways to end: a power cut that takes all that nobody synced, and a kill that takes nothing.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from agentsh.log.store import OpenLog
from tests.crash.checkpoints import REDUCER, CheckpointRun
from tests.crash.laboratory import BLOB_SIZES, Figures, Options, Run
from tests.crash.ledger import draft
from tests.crash.machine import Machine, Plan, Stopped, now
from tests.crash.runs import one_run


class Workload(CheckpointRun):
    """One session in which each turn closes and seals a segment."""

    machine: Machine
    log: OpenLog
    texts = 0

    def open(self, stop_at: int) -> None:
        self.segment_bytes = 1
        self.machine = self._machine(Plan(stop_at))
        self.again()

    def again(self) -> None:
        log = self.begin(self.store_on(self.machine), self.ledgers[0])
        assert log is not None
        self.log = log

    def append(self, size: int = 0) -> None:
        self.texts += 1
        drafts = [draft(f"{self.texts} " + "x" * size)]
        self.ledgers[0].trying(drafts)
        self.ledgers[0].told_of(now(self.log.append(drafts)))

    def wait(self) -> None:
        now(self.log.wait_durable(self.log.last_seq))
        self.ledgers[0].said_durable(self.log.last_seq)

    def turn(self) -> None:
        now(self.log.turn_ended())

    def checkpoint(self) -> None:
        if self.log.last_seq:
            state = b"\n".join(line for _, line in sorted(self.ledgers[0].told.items()))
            now(self.log.checkpoint(state, reducer=REDUCER, keep=1))

    def reopened(self) -> None:
        now(self.log.close())
        self.ledgers[0].said_durable(self.ledgers[0].last)
        self.again()

    def of(self, operations: tuple[str, ...], stop_at: int, *, kept: bool) -> None:
        """Do the operations up to a change, end, and look. kept: by a kill, so that all that was written is there."""
        self.options = self.options._replace(kills=1.0)
        try:
            self.open(stop_at)
            for name in operations:
                OPERATIONS[name](self)
        except Stopped:
            pass
        finally:
            self._count(self.machine)
        self.cut_dice = None
        self.stop(power_cut=not kept)
        self.recover(self.ledgers[0])


OPERATIONS: dict[str, Callable[[Workload], None]] = {
    "append": Workload.append,
    "blob": lambda run: run.append(BLOB_SIZES[0]),
    "wait": Workload.wait,
    "turn": Workload.turn,
    "checkpoint": Workload.checkpoint,
    "reopen": Workload.reopened,
}


def workloads(length: int) -> Iterator[tuple[str, ...]]:
    """Yield all of up to so many operations, the one that does nothing besides opening among them."""
    for size in range(length + 1):
        yield from product(OPERATIONS, repeat=size)


def exhaustive(length: int, options: Options | None = None, *, enough: int = 0) -> Figures:
    """End each workload at each of its changes, in both ways. length: of the longest, in operations."""
    figures, options = Figures(), (options or Options())._replace(run=Workload, rot=0.0)
    for operations in workloads(length):
        for kept in (False, True):
            stop_at, reached = 1, True
            while reached and not (enough and len(figures.violations) >= enough):
                changes: list[int] = []
                one_run(stop_at, options, figures, partial(_ended, operations, stop_at, kept, changes))
                reached = bool(changes) and changes[0] >= stop_at
                stop_at += 1
    return figures


def _ended(operations: tuple[str, ...], stop_at: int, kept: bool, changes: list[int], run: Run) -> None:
    """Let a run do it, and note how many changes there were before its end."""
    assert isinstance(run, Workload)
    try:
        run.of(operations, stop_at, kept=kept)
    finally:
        changes.append(run.machine.changes)
