"""Kills real writers at random moments, and compares what is on the disk with what they had acknowledged."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from agentsh.base.errors import SessionMissing
from tests.crash.ledger import Violation
from tests.crash.nursery import digest, store_at

KILLS_OF_A_SESSION = 40
"""Then another one begins, so that reading it all after each kill stays cheap."""
MAX_PAUSE_S = 0.004


@dataclass
class Toll:
    """What happened. unseen: records that were written and not acknowledged yet."""

    kills: int = 0
    sessions: int = 0
    records: int = 0
    unseen: int = 0
    torn: int = 0
    sealed: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of real writers in {self.sessions} sessions: {self.records:,} acknowledged records, "
            f"{self.unseen} more that were written, {self.torn} torn ends, {self.sealed} sealed segments, "
            f"{len(self.violations)} violations"
        )


class Killer:
    """One nursery on a directory."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.dice = Random(seed)
        self.toll = Toll()
        self.acked: dict[int, str] = {}
        self.session = ""
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery", str(root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def __enter__(self) -> "Killer":
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.wait(30)
        self._nursery.stdout.close()

    def run(self, kills: int) -> Toll:
        """Kill so many writers."""
        for n in range(kills):
            if n % KILLS_OF_A_SESSION == 0:
                self.session = f"20261129-{n // KILLS_OF_A_SESSION:06}"
                self.acked = {}
                self.toll.sessions += 1
            try:
                self._kill_one()
                self._check()
            except Violation as error:
                self.toll.violations.append(f"kill {n}: {error}")
        return self.toll

    def _kill_one(self) -> None:
        """Let a writer live for some acknowledgements and a moment more."""
        nursery, dice = self._nursery, self.dice
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        nursery.stdin.write(f"{self.session} {dice.randrange(1 << 30)}\n".encode())
        nursery.stdin.flush()
        pid, left = 0, dice.choice((0, 0, 1, 5, 20, 60))
        for line in nursery.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "pid":
                pid = int(rest)
            elif word == "died":
                if int(rest) != -signal.SIGKILL:
                    raise Violation(f"the writer ended by itself: {rest}")
                break
            elif word != "durable":
                self.acked[int(word)] = rest
                self.toll.records += 1
            left -= 1
            if left == -1:
                time.sleep(dice.random() * MAX_PAUSE_S if dice.random() < 0.7 else 0)
                os.kill(pid, signal.SIGKILL)
        else:
            raise AssertionError("the nursery is gone")
        self.toll.kills += 1

    def _check(self) -> None:
        """Compare with every acknowledgement of this session; what was never acknowledged may be there as well."""
        store = store_at(self.root)
        try:
            found = {record.seq: record for record in store.read(self.session)}
            damages = list(store.damages(self.session))
        except SessionMissing:
            if self.acked:
                raise Violation("a session with acknowledged records is gone") from None
            return
        self.toll.torn += any(d.kind == "torn" for d in damages)
        if bad := [d for d in damages if d.kind not in ("torn", "missing")]:
            raise Violation(f"damage: {bad}")
        if list(found) != list(range(1, len(found) + 1)):
            raise Violation(f"not in order: {list(found)}")
        for seq, known in self.acked.items():
            if seq not in found:
                raise Violation(f"record {seq} was acknowledged and is lost; {len(found)} are there")
            if digest(found[seq]) != known:
                raise Violation(f"record {seq} is another than was acknowledged")
        for seq in range(len(self.acked) + 1, len(found) + 1):
            self._adopt(seq, digest(found[seq]), found[seq].payload["text"])
        place = self.root / "sessions" / self.session
        self.toll.sealed += len(list(place.glob("*.zst"))) if self.toll.kills % KILLS_OF_A_SESSION == 0 else 0

    def _adopt(self, seq: int, known: str, text: object) -> None:
        """Take a record for acknowledged from here on: the next opening says that it is there."""
        if isinstance(text, dict):
            store_at(self.root).blobs.get(text["blob"])
        self.acked[seq] = known
        self.toll.unseen += 1
