"""Short stories, each ended where one precaution of the log counts, by a cut that takes all that nobody synced.

What the runs find by many cuts these show with one, the same in every test run: the log tells each to its end
without a violation, and the log without the precaution does not.
"""

import errno
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from agentsh.log.store import OpenLog
from agentsh.testing.disks import SimDisk
from tests.crash.checkpoints import REDUCER, CheckpointRun
from tests.crash.indexed import IndexedRun
from tests.crash.laboratory import NEVER, ROOT, Figures, Options, Run
from tests.crash.ledger import draft
from tests.crash.machine import InlineSealer, Machine, Plan, Stopped, now, one_thread
from tests.crash.mutants import (
    NoDirectorySync,
    NoFileSync,
    NoHeaderSync,
    NoSealedName,
    NoSealSync,
    any_json,
    retried,
    roll_unsynced,
)


class Told(Run):
    """A disk, and what is told of it, step by step. machine: of the life that goes on."""

    machine: Machine
    log: OpenLog

    def open(self, plan: Plan | None = None, *, segment_bytes: int = NEVER) -> None:
        """Begin a life with a session."""
        self.segment_bytes = segment_bytes
        self.machine = self._machine(plan or Plan())
        log = self.begin(self.store_on(self.machine), self.ledgers[0])
        assert log is not None
        self.log = log

    def append(self, text: str, *, awaited: bool = False) -> None:
        """Append an event."""
        drafts = [draft(text)]
        self.ledgers[0].trying(drafts)
        self.ledgers[0].told_of(now(self.log.append(drafts, awaited=awaited)))

    def wait(self) -> None:
        """Wait until everything is durable, and believe it."""
        now(self.log.wait_durable(self.log.last_seq))
        self.ledgers[0].said_durable(self.log.last_seq)

    def end(self, *, power_cut: bool = True) -> None:
        """End the life, and look at what is left."""
        self.ledgers[0].said_durable(self.log.durable_seq)
        self._count(self.machine)
        self.cut_dice = None
        self.stop(power_cut)
        self.options = self.options._replace(kills=1.0)  # recovery is not cut as well
        self.recover(self.ledgers[0])


def a_new_session(run: Told) -> None:
    run.open()
    run.end()


def an_event_and_a_wait(run: Told) -> None:
    run.open()
    run.append("first")
    run.wait()
    run.end()


def appends_that_are_waited_for(run: Told) -> None:
    run.open()
    for n in range(3):
        run.append(f"event {n}", awaited=True)
        run.wait()
    run.end()


def a_segment_closed_before_its_lines_were_synced(run: Told) -> None:
    run.open(segment_bytes=1)
    run.append("the last of the old segment")
    with patch.object(InlineSealer, "wake", lambda self, below: None):  # sealing comes later
        now(run.log.turn_ended())
    run.append("the first of the new one")
    run.wait()
    assert run.machine.rolls == 1
    run.end()


def a_segment_whose_plain_form_is_gone_first(run: Told) -> None:
    """Sealing ends with the removal of the plain form, and that name alone reaches the disk unsynced."""
    run.open(segment_bytes=1)
    run.append("what is sealed")
    run.wait()
    removed: list[str] = []

    def unlink(path: str) -> None:
        run.disk.unlink(path)
        if path.endswith(".jsonl"):
            removed.append(path)
            run.machine.dead = True
            raise Stopped

    run.machine.__dict__["unlink"] = unlink
    with suppress(Stopped):
        now(run.log.turn_ended())
    assert removed
    names = run.disk._find(f"{ROOT}/{run.ledgers[0].session}")
    names.moves.pop().apply(names.base_names)  # on the disk before all others: nobody promises their order
    run.end()


def a_sync_that_fails_once(run: Told) -> None:
    run.open(Plan(fail_at=2, error=errno.EIO, sync_only=True))  # the first was the header's
    run.append("what the kernel has dropped")
    run.wait()
    assert run.machine.failed == 1
    run.append("behind it")
    run.wait()
    run.end()


def a_letter_that_changed(run: Told) -> None:
    run.open()
    for text in ("first", "second", "third"):
        run.append(text)
    run.wait()
    path = f"{ROOT}/{run.ledgers[0].session}/events.jsonl"
    data = run.disk.tree()[path]
    offset = data.index(b"second")
    run.ledgers[0].rotted(data, offset)
    run.disk.flip(path, offset, 1)
    run.end()


class ToldWithCheckpoints(CheckpointRun, Told):
    """The same of a session that is opened from checkpoints."""


def an_older_copy_of_the_log(run: Told) -> None:
    assert isinstance(run, ToldWithCheckpoints)
    run.open()
    for text in ("first", "second", "third"):
        run.append(text)
    state = b"\n".join(line for _, line in sorted(run.ledgers[0].told.items()))
    assert now(run.log.checkpoint(state, reducer=REDUCER, keep=2)) is not None
    run.end(power_cut=False)
    lines = run.disk.tree()[f"{ROOT}/{run.ledgers[0].session}/events.jsonl"].splitlines(keepends=True)
    run.put_back(lines[:2])
    run.open()
    run.append("another second")
    run.wait()
    run.end()


class SkipsOne(Machine):
    """One sync of a file is only said to have happened. skipped: its number."""

    skipped = 0
    syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if self.syncs != self.skipped:
            super().sync(fd)


def skipping(number: int) -> Callable[[SimDisk, Random, Plan], Machine]:
    """Return what makes a machine that skips the sync of that number."""
    return type("Skips", (SkipsOne,), {"skipped": number})


class Story(NamedTuple):
    """mutant: as docs/durability.md names it. broken: options without the precaution. run: None for `Told`."""

    mutant: str
    tell: Callable[[Told], None]
    broken: Options
    run: type[Told] | None = None

    def told(self, options: Options) -> None:
        """Tell it.

        Raises:
            Violation: a promise was broken.
        """
        with ExitStack() as stack:
            stack.enter_context(one_thread(1))
            for one in options.patches:
                stack.enter_context(one())
            self.tell((self.run or Told)(1, options, Figures()))


def _code(name: str, new: Any) -> Options:
    return Options(patches=(partial(patch, name, new),))


STORIES = (
    Story("no directory sync", a_new_session, Options(machine=NoDirectorySync)),
    Story("no header sync", a_new_session, Options(machine=NoHeaderSync)),
    Story("no fdatasync", an_event_and_a_wait, Options(machine=NoFileSync)),
    Story(
        "no sync before roll",
        a_segment_closed_before_its_lines_were_synced,
        _code("agentsh.log.writer.Appender.roll", roll_unsynced),
    ),
    Story(
        "name of the sealed file not durable before the plain one goes",
        a_segment_whose_plain_form_is_gone_first,
        Options(machine=NoSealedName),
    ),
    Story(
        "sealed file not synced before the plain one goes",
        a_segment_whose_plain_form_is_gone_first,
        Options(machine=NoSealSync),
    ),
    Story("ack without sync", an_event_and_a_wait, Options(machine=skipping(2))),
    Story("ack without sync, of one that was waited for", appends_that_are_waited_for, Options(machine=skipping(4))),
    Story("recovery without crc", a_letter_that_changed, _code("agentsh.log.scan.crc_fits", any_json)),
    Story(
        "fsync retried on the same descriptor",
        a_sync_that_fails_once,
        _code("agentsh.log.writer.Appender._rescue", retried),
    ),
    Story(
        "checkpoint not checked against the log",
        an_older_copy_of_the_log,
        _code("agentsh.log.checkpoint.is_anchored", lambda *_: True),
        ToldWithCheckpoints,
    ),
)


def a_log_that_lost_its_end(place: Path) -> None:
    """List a session, let a power cut take the end of its log, and list it again: by the index, and by the log.

    Raises:
        Violation: the index says what the log does not.
    """
    with one_thread(1):
        run = IndexedRun(1, Options(), Figures(), place)
        ledger, run.segment_bytes, run.cut_dice = run.ledgers[0], NEVER, None
        log = run.begin(run.store_on(run.options.machine(run.disk, run.dice, Plan())), ledger)
        assert log is not None
        for text in ("first", "second"):
            ledger.trying([draft(text)])
            ledger.told_of(now(log.append([draft(text)])))
            if text == "first":
                now(log.wait_durable(1))
        run.listed()
        run.stop(power_cut=True)
