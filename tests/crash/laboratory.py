"""The crash laboratory: sessions live on a simulated disk, the power goes at a random change, and all is checked.

`Run` is one disk with several lives. Everything comes from its seed. Each life opens the session of the one before
it, so that every crash meets the traces of earlier ones.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from agentsh.base.errors import LogWriteFailed, SessionExists, SessionHeld, SessionReadOnly
from agentsh.log.lease import LOCK_NAME
from agentsh.log.store import Opened, OpenLog, Recovery
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.disks import SimDisk
from tests.crash.ledger import Ledger, Violation, draft
from tests.crash.machine import Machine, Plan, Stopped, now

ROOT = "/home/sessions"
BLOBS = "/home/blobs"
NAMES = ("20261129-aaaaaa", "20261129-bbbbbb")
SIZES = (0, 1, 30, 300, 1_500, 6_000, 20_000)
BLOB_SIZES = (26_000, 40_000)
NEVER = 1 << 30
"""Bytes: a segment that long is never made here, so that none is closed or sealed."""


class Options(NamedTuple):
    """What a laboratory does. machine: makes the file system of a process, for mutants of the port.

    patches: opened around a run, for mutants of the code. faults: share of lives in which operations fail.
    kills: share of lives that end without a power cut. rot: share of runs in which a byte changes.
    changes: a life ends within one of these numbers of changes of the disk. sync_fails: number of the sync that fails
    in the first of two short lives. rooms: that each process keeps for blobs of a full disk. run: what lives, None
    for `Run`.
    """

    lives: int = 5
    faults: float = 0.0
    kills: float = 0.25
    rot: float = 0.3
    changes: tuple[int, ...] = (10, 30, 90)
    sync_fails: int = 0
    rooms: int = 0
    machine: Callable[[SimDisk, Random, Plan], Machine] = Machine
    patches: tuple[Callable[[], Any], ...] = ()
    run: "type[Run] | None" = None


@dataclass
class Figures:
    """What happened in some runs. cuts: power cuts, in recovery those as well."""

    runs: int = 0
    cuts: int = 0
    recovery_cuts: int = 0
    kills: int = 0
    failures: int = 0
    rescues: int = 0
    rolls: int = 0
    seals: int = 0
    rooms: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {self.cuts} cuts ({self.recovery_cuts} of them during recovery), {self.kills} kills, "
            f"{self.failures} failed operations, {self.rescues} rescues, {self.rolls} rolls, {self.seals} seals, "
            f"{len(self.violations)} violations"
        )


class Run:
    """One disk and what happens on it."""

    def __init__(self, seed: int, options: Options, figures: Figures) -> None:
        self.dice = Random(seed)
        self.options = options
        self.figures = figures
        self.disk = SimDisk()
        self.disk.mkdir("/home")
        self.disk.sync_dir("/")
        self.ledgers = [Ledger(name) for name in NAMES]
        self.segment_bytes = self.dice.choice((1, 2_000, 20_000, NEVER))
        self.texts = 0
        self.rot_at = self.dice.randrange(1, options.lives) if self.dice.random() < options.rot else 0
        self.power_cut = False
        self.cut_dice: Random | None = self.dice
        self.calm = True
        self.cut_since_check: set[str] = set()
        self.untouched_since_cut: set[str] = set()

    def go(self) -> None:
        """Live, die, and check, until the end or the first violation."""
        for life in range(self.options.lives):
            power_cut = self.dice.random() >= self.options.kills
            self._life(self._plan())
            self.stop(power_cut)
            if life + 1 == self.rot_at and power_cut:
                self.rot()
            for ledger in self.ledgers:
                self.recover(ledger)

    def short(self, killed_at: int, cut_at: int, *, turns: int = 0) -> None:
        """Live the same short life twice, killed at first, then cut. turns: each closes and seals a segment."""
        ledger, self.segment_bytes = self.ledgers[0], 1 if turns else NEVER
        for stop_at, power_cut in ((killed_at, False), (cut_at, True)):
            fails = self.options.sync_fails if not power_cut else 0
            machine = self._machine(Plan(stop_at, fails, sync_only=True))
            self.calm = not fails
            try:
                store = self.store_on(machine)
                log = self.begin(store, ledger)
                if log is None:
                    continue
                for text in ("short", "x" * BLOB_SIZES[0]) if not turns else ["turn"] * turns:
                    ledger.trying([draft(text)])
                    ledger.told_of(now(log.append([draft(text)])))
                    if turns:
                        now(log.turn_ended())
                now(log.wait_durable(log.last_seq))
                ledger.said_durable(log.last_seq)
            except Stopped:
                pass
            except LogWriteFailed:
                if self.calm:
                    raise
            finally:
                self._count(machine)
            self.stop(power_cut)
        self.recover(ledger)

    def _plan(self) -> Plan:
        dice = self.dice
        stop_at = dice.randint(1, dice.choice(self.options.changes))
        if dice.random() >= self.options.faults:
            return Plan(stop_at)
        how = dice.choice(("any", "any", "short", "sync"))
        return Plan(
            stop_at + 10, dice.randint(1, 6 if how == "sync" else 120), dice.choice((errno.EIO, errno.ENOSPC)),
            for_ever=dice.random() < 0.3, short=how == "short", sync_only=how == "sync", evict=dice.random() < 0.3,
            stop_after=dice.randint(1, 8) if dice.random() < 0.4 else 0,
        )  # fmt: skip

    def _machine(self, plan: Plan) -> Machine:
        return self.options.machine(self.disk, self.dice, plan)

    def store_on(self, machine: Machine) -> JsonlStore:
        blobs = FileBlobs(BLOBS, files=machine)
        return JsonlStore(ROOT, blobs, files=machine, segment_bytes=self.segment_bytes)

    def _count(self, machine: Machine) -> None:
        machine.dead = True
        self.figures.failures += machine.failed
        self.figures.rescues += machine.rescues
        self.figures.rolls += machine.rolls
        self.figures.seals += machine.seals
        self.figures.rooms += machine.rooms

    def stop(self, power_cut: bool) -> None:
        if power_cut:
            self.disk = self.disk.after_cut(self.cut_dice)
            self.figures.cuts += 1
            self.cut_since_check, self.untouched_since_cut = set(NAMES), set(NAMES)
        else:
            self.disk.kill()
            self.figures.kills += 1

    def _blobs(self) -> FileBlobs:
        return FileBlobs(BLOBS, files=self.disk)

    # A life.

    def _life(self, plan: Plan) -> None:
        machine = self._machine(plan)
        self.calm = not plan.fail_at
        try:
            store = self.store_on(machine)
            logs: dict[str, OpenLog] = {}
            for _ in range(self.dice.randint(1, 14)):
                ledger = self.dice.choices(self.ledgers, (4, 1))[0]
                log = logs.get(ledger.session)
                if log is None:
                    log = self.begin(store, ledger, forgotten=plan.evict and machine.failed > 0)
                    if log is None:
                        continue
                    logs[ledger.session] = log
                if not self._step(store, machine, ledger, log):
                    del logs[ledger.session]
        except Stopped:
            pass
        finally:
            self._count(machine)
            if plan.evict and machine.failed:  # the kernel has forgotten what the disk refused, and so was said
                self.cut_since_check.update(NAMES)

    def begin(self, store: JsonlStore, ledger: Ledger, *, forgotten: bool = False) -> OpenLog | None:
        log: OpenLog
        self.untouched_since_cut.discard(ledger.session)
        try:
            if ledger.session in store.sessions():
                opened = self.opened(store, ledger)
                ledger.check(list(opened.records), self._blobs(), power_cut=forgotten)
                log = opened.log
                ledger.goes_on_behind(log.last_seq)
            elif ledger.created and self.calm:
                raise Violation("a session that was created is not listed")
            else:
                log = now(store.create(ledger.session, by="lab 1"))
        except (LogWriteFailed, SessionReadOnly, SessionExists):
            if self.calm:
                raise
            return None
        self.cut_since_check.discard(ledger.session)
        ledger.created = True
        ledger.check_bytes({}, files_of(self.disk, ledger), Recovery())
        ledger.said_durable(log.durable_seq)
        return log

    def opened(self, store: JsonlStore, ledger: Ledger) -> Opened:
        found: Opened = now(store.open(ledger.session))
        return found

    def _step(self, store: JsonlStore, machine: Machine, ledger: Ledger, log: OpenLog) -> bool:
        """Do one thing; False where the log was closed."""
        kinds, odds = ("append", "wait", "tick", "busy", "turn", "close", "second"), (8, 4, 2, 2, 4, 1, 0.5)
        what = self.dice.choices(kinds, odds)[0]
        try:
            if what == "append":
                self._append(ledger, log, awaited=self.dice.random() < 0.2)
            elif what == "wait":
                seq = log.last_seq if self.dice.random() < 0.7 else self.dice.randint(0, log.last_seq)
                now(log.wait_durable(seq))
                ledger.said_durable(seq)
            elif what == "tick":
                log._appender._sync.tick()  # type: ignore[attr-defined]
            elif what == "busy":
                self._append_during_sync(machine, ledger, log)
            elif what == "turn":
                now(log.turn_ended())
            elif what == "close":
                now(log.close())
                ledger.said_durable(ledger.last)
                return False
            else:
                self.second_writer(ledger, self.store_on(machine))
        except (LogWriteFailed, SessionReadOnly):
            if self.calm:
                raise
            return what != "close"
        finally:
            if not machine.dead:
                ledger.said_durable(log.durable_seq)
        return True

    def _append(self, ledger: Ledger, log: OpenLog, *, awaited: bool = False) -> None:
        drafts = [draft(self._text(ledger)) for _ in range(self.dice.choice((1, 1, 2, 5, 20)))]
        ledger.trying(drafts)
        ledger.told_of(now(log.append(drafts, awaited=awaited)))

    def _text(self, ledger: Ledger) -> str:
        """Return a text of its own, of any size; those for blobs come again, as the same tool output does."""
        if self.dice.random() < 0.06:
            dice = Random(self.dice.randrange(4))
            return dice.randbytes(dice.choice(BLOB_SIZES) // 2).hex()
        self.texts += 1
        size = self.dice.choice(SIZES[: self.dice.randint(2, 7)])
        return f"{ledger.session} {self.texts} " + self.dice.randbytes(size // 2).hex()

    def _append_during_sync(self, machine: Machine, ledger: Ledger, log: OpenLog) -> None:
        """Write a batch, sync it, and write another while the sync is under way."""
        self._append(ledger, log)
        io = log._appender._io  # type: ignore[attr-defined]

        def meanwhile() -> None:
            if not io.locked():
                machine.during_sync = lambda: None
                try:
                    self._append(ledger, log)
                except LogWriteFailed:
                    if self.calm:
                        raise

        seq, machine.during_sync = log.last_seq, meanwhile
        try:
            now(log.wait_durable(seq))
            ledger.said_durable(seq)
        finally:
            machine.during_sync = lambda: None

    def second_writer(self, ledger: Ledger, store: JsonlStore) -> None:
        try:
            now(store.open(ledger.session))
        except SessionHeld:
            return
        raise Violation("a second writer got in")

    # After it.

    def rot(self) -> None:
        """Change one byte of one segment, where it lies."""
        ledger = self.ledgers[0]
        names = [n for n in files_of(self.disk, ledger) if n.endswith((".jsonl", ".jsonl.zst")) and "/" not in n]
        segments = [f"{ROOT}/{ledger.session}/{name}" for name in names]
        if segments:
            path = self.dice.choice(segments)
            data = self.disk.tree()[path]
            if data:
                offset = self.dice.randrange(len(data))
                if path.endswith(".zst"):
                    ledger.rotted_frame(data, offset)
                else:
                    ledger.rotted(data, offset)
                self.disk.flip(path, offset, 1 << self.dice.randrange(8))

    def recover(self, ledger: Ledger) -> None:
        before, settled = files_of(self.disk, ledger), ledger.session in self.untouched_since_cut
        self.calm = True
        for _ in range(self.dice.choice((0, 0, 1, 2))):
            machine = self._machine(Plan(self.dice.randint(1, 12)))
            try:
                store = self.store_on(machine)
                if ledger.session in store.sessions():
                    now(self.opened(store, ledger).log.close())
            except Stopped:
                pass
            finally:
                self._count(machine)
            power_cut = self.dice.random() >= self.options.kills
            self.stop(power_cut)
            if power_cut:
                self.figures.recovery_cuts += 1
                before = before if settled else files_of(self.disk, ledger)
                settled = True
        store = self.store_on(self._machine(Plan()))
        if ledger.session not in store.sessions():
            if ledger.created:
                raise Violation("a session that was created is not listed")
            return
        opened = self.opened(store, ledger)
        ledger.check(list(opened.records), store.blobs, power_cut=ledger.session in self.cut_since_check)
        self.cut_since_check.discard(ledger.session)
        ledger.check_bytes(before, files_of(self.disk, ledger), opened.recovery)
        now(opened.log.close())
        ledger.created = True
        self._again(store, ledger, opened.recovery)

    def _again(self, store: JsonlStore, ledger: Ledger, first: Recovery) -> None:
        again = self.opened(store, ledger)
        recovery: Recovery = again.recovery
        if recovery.cut_bytes or recovery.newline_added or recovery.quarantined:
            raise Violation(f"the second opening still found something: {recovery}")
        # A rescue takes the lines around a damaged one along, so that this is found as a gap, in another place.
        known = {d.after_seq for d in first.damages} | {d.where for d in first.damages}
        if any(d.after_seq not in known and d.where not in known for d in recovery.damages):
            raise Violation(f"the second opening found new damage: {recovery.damages}")
        ledger.check(list(again.records), store.blobs, power_cut=False)
        now(again.log.close())
        ledger.said_durable(ledger.last)
        torn = [d for d in store.damages(ledger.session) if d.kind in ("torn", "missing")]
        if torn:
            raise Violation(f"after recovery there is still {torn}")


def files_of(disk: SimDisk, ledger: Ledger) -> dict[str, bytes]:
    """Return the files of a session, by their names below it, but for the lock."""
    place = f"{ROOT}/{ledger.session}"
    try:
        found = disk.tree(place)
    except FileNotFoundError:
        return {}
    return {os.path.relpath(path, place): data for path, data in found.items() if not path.endswith(LOCK_NAME)}
