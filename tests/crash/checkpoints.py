"""Sessions in the laboratory that are saved as checkpoints and opened from them, also over an older copy of the log.

The state that is saved is every line so far. So what an opening gives, the state and the records behind it, is put
together again and goes through the same checks as a log that was read whole; and it must be what is in the log.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, write_checkpoint
from agentsh.log.files import APPEND
from agentsh.log.scan import to_record
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import Opened, OpenLog
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from tests.crash.laboratory import BLOBS, ROOT, Run, files_of
from tests.crash.ledger import Ledger, Violation
from tests.crash.machine import Machine, now

REDUCER = "laboratory"
NO_CRC = b',"crc":"00000000"}\n'


@dataclass
class Used:
    """checkpoints: openings from one. restored: older copies of a log that were put in its place."""

    checkpoints: int = 0
    restored: int = 0


_used = Used()


@contextmanager
def counted() -> Iterator[Used]:
    """Count anew."""
    _used.checkpoints = _used.restored = 0
    yield _used


class CheckpointRun(Run):
    """A run whose sessions have checkpoints."""

    def opened(self, store: JsonlStore, ledger: Ledger) -> Opened:
        found: Opened = now(store.open(ledger.session, reducer=REDUCER))
        if found.folded is None:
            return found
        _used.checkpoints += 1
        lines = found.folded.state.split(b"\n")
        records = [to_record(line + NO_CRC) for line in lines] + list(found.records)
        if [r.seq for r in records if r.seq <= found.folded.upto_seq] != [r.seq for r in records[: len(lines)]]:
            raise Violation("records of before the checkpoint were handed out behind it")
        reader = JsonlStore(ROOT, FileBlobs(BLOBS, files=self.disk), files=self.disk)  # on which nothing fails
        there = {record.seq for record in reader.read(ledger.session)}
        seqs = {record.seq for record in records}
        if there - seqs or seqs - there - ledger.gone:
            raise Violation(f"opening and log differ: {sorted(there - seqs)}, {sorted(seqs - there)}")
        return found._replace(records=records)

    def _step(self, store: JsonlStore, machine: Machine, ledger: Ledger, log: OpenLog) -> bool:
        if ledger.told and log.last_seq == max(ledger.told) and self.dice.random() < 0.3:
            state = b"\n".join(line for _, line in sorted(ledger.told.items()))
            now(log.checkpoint(state, reducer=REDUCER, keep=2))
            if not machine.dead:
                ledger.said_durable(log.durable_seq)
            return True
        return super()._step(store, machine, ledger, log)

    def rot(self) -> None:
        """Change a byte, or put an older copy of the log in its place: checkpoints are ahead of it then."""
        ledger = self.ledgers[0]
        names = [
            name for name in files_of(self.disk, ledger) if name.endswith((".jsonl", ".zst")) and "/" not in name
        ]
        if self.dice.random() < 0.5 or names != [OPEN_NAME]:
            super().rot()
            return
        lines = self.disk.tree()[f"{ROOT}/{ledger.session}/{OPEN_NAME}"].splitlines(keepends=True)
        self.put_back(lines[: self.dice.randint(1, max(len(lines) - 1, 1))])

    def put_back(self, kept: list[bytes]) -> None:
        """Leave only the first lines of a log: somebody has put an older copy in its place."""
        ledger = self.ledgers[0]
        path = f"{ROOT}/{ledger.session}/{OPEN_NAME}"
        fd = self.disk.open(path, APPEND)
        self.disk.truncate(fd, sum(map(len, kept)))
        self.disk.sync(fd)
        self.disk.close(fd)
        ledger.had = max(ledger.had, ledger.last)
        seqs = [to_record(line).seq for line in kept[1:]]
        ledger.last = max(seqs, default=0)
        ledger.durable = min(ledger.durable, ledger.last)
        ledger.told = {seq: line for seq, line in ledger.told.items() if seq <= ledger.last}
        _used.restored += 1


async def without_a_sync(
    log: Any, place: "Future[Anchor | None]", reducer: str, state: bytes, keep: int
) -> str | None:
    """Write a checkpoint whose log is not durable up to it: a mutant of `JsonlLog._checkpoint`."""
    anchor = place.result()
    if anchor is None:
        return None
    try:
        return write_checkpoint(
            log._files, log._directory, Checkpoint(anchor, log.session, reducer, state), keep=keep
        )  # fmt: skip
    except OSError:
        return None
