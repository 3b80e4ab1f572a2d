"""Lives in which a write is cut short, shorter ones come in the place of its lines, and the power goes right then."""

import errno
from random import Random

from agentsh.base.errors import LogWriteFailed
from tests.crash.laboratory import Run
from tests.crash.ledger import draft
from tests.crash.machine import Machine, Plan, now


class HalfWritten(Run):
    """One life after the other of that kind, on one disk."""

    def go(self) -> None:
        ledger = self.ledgers[0]
        for _ in range(self.options.lives):
            machine = self._machine(Plan())
            self.calm = True
            log = self.begin(self.store_on(machine), ledger)
            assert log is not None
            self._append(ledger, log)
            now(log.wait_durable(log.last_seq))
            ledger.said_durable(log.last_seq)
            self._shortened(machine)
            for size in (1500, 30):  # what is refused is tried again, here with shorter lines
                drafts = [draft(f"{n} " + self.dice.randbytes(self.dice.randrange(size)).hex()) for n in range(12)]
                ledger.trying(drafts)
                try:
                    ledger.told_of(now(log.append(drafts)))
                except LogWriteFailed:
                    continue
            self._count(machine)
            self.stop(power_cut=True)
            self.recover(ledger)

    def _shortened(self, machine: Machine) -> None:
        """Let the next write take only a part."""
        machine.dice = Random(self.dice.random())
        machine.plan = Plan(0, len(machine.ops) + 1, errno.ENOSPC, short=True)
