"""Broken writers and readers, one for each thing that makes the log crash-proof: the laboratory must catch them all.

Those of the port change what the disk is asked for; those of the code change the code under test.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

from agentsh.log.files import FileSystem, make_dirs
from agentsh.log.recover import _begin
from agentsh.log.scan import Entry, Flaw, SegmentScan
from agentsh.log.seal import NEW
from agentsh.log.segment import NEW_NAME, SEALED
from agentsh.log.store import HARMLESS
from agentsh.log.writer import Appender
from tests.crash.checkpoints import CheckpointRun, without_a_sync
from tests.crash.halves import HalfWritten
from tests.crash.laboratory import Figures, Options
from tests.crash.ledger import looks_whole
from tests.crash.machine import Machine
from tests.crash.runs import laboratory, short_lives


class NoDirectorySync(Machine):
    def sync_dir(self, path: str) -> None:
        return


class NoFileSync(Machine):
    def sync(self, fd: int) -> None:
        self.during_sync()


class NoHeaderSync(Machine):
    """A file that holds one line is not synced."""

    def sync(self, fd: int) -> None:
        data = self.disk.read(fd, 1_000, 0) if not self.dead else b""
        if not (data.startswith(b'{"format"') and data.find(b"\n") == len(data) - 1):
            super().sync(fd)


class AckWithoutSync(Machine):
    """One sync in five is only said to have happened."""

    def sync(self, fd: int) -> None:
        if self.dice.random() < 0.8:
            super().sync(fd)


class NoRescueSync(Machine):
    """The segment that takes the lines of a failed sync is not synced itself."""

    def sync(self, fd: int) -> None:
        if not self.paths.get(fd, "").endswith("/" + NEW_NAME):
            super().sync(fd)


class NoBlobSync(Machine):
    """An event names its blob before that is durable."""

    def sync(self, fd: int) -> None:
        if "/blobs/" not in self.paths.get(fd, ""):
            super().sync(fd)


class NoQuarantine(Machine):
    """What is cut off is not kept durably."""

    def sync(self, fd: int) -> None:
        if "/quarantine/" not in self.paths.get(fd, ""):
            super().sync(fd)


class NoSealSync(Machine):
    """The sealed form of a segment is not synced before the plain one goes."""

    def sync(self, fd: int) -> None:
        if not self.paths.get(fd, "").endswith(SEALED + NEW):
            super().sync(fd)


class NoSealedName(Machine):
    """The name of the sealed form is not durable before the plain one goes."""

    sealed = False

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.sealed = target.endswith(".jsonl" + SEALED)

    def sync_dir(self, path: str) -> None:
        sealed, self.sealed = self.sealed, False
        if not sealed:
            self._do("sync_dir", lambda: self.disk.sync_dir(path))


class NoLease(Machine):
    def lock(self, fd: int, *, exclusive: bool, wait: bool) -> bool:
        return True


def any_json(line: bytes, salt: int) -> bool:
    return looks_whole(line)


def retried(self: Appender, cause: OSError) -> int:
    """Sync again on the descriptor whose sync has failed, and believe what it says."""
    try:
        self._files.sync(self._segment.fd)
    except OSError as error:
        raise self._failed(error, "cannot sync the log") from cause
    self._unsynced.clear()
    return self._last_seq


def _make_dirs_and_trust(files: FileSystem, path: str) -> None:
    """Take the name of a directory that is there for durable."""
    try:
        files.listdir(path)
    except FileNotFoundError:
        make_dirs(files, path)


def _begin_without_lines(*arguments: Any) -> Any:
    """Leave unsynced lines behind in a closed segment, which nobody syncs."""
    begin: Callable[..., Any] = _begin
    return begin(*arguments[:-1], ())


_roll = Appender.roll


def roll_unsynced(self: Appender, min_bytes: int = 0) -> bool:
    """Close a segment whose last lines nobody has synced, nor ever will."""
    done: Future[None] = Future()
    done.set_result(None)
    with patch.object(self._sync, "wait", lambda seq: done):
        return _roll(self, min_bytes)


class CutsAtTheFirst(SegmentScan):
    """Takes the first line that does not read for the end."""

    def items(self) -> Iterator[Entry | Flaw]:
        end: Flaw | None = None
        for item in super().items():
            if end is None and isinstance(item, Flaw) and item.kind not in HARMLESS:
                end = item
            elif end is None:
                yield item
        if end is not None:
            self.good_end, self.tail, self._unended = end.offset, end._replace(bytes=self.end - end.offset), -1


class Mutant(NamedTuple):
    """name: what is broken. options: how it is run. cuts: within how many it must be caught.

    short: it takes the short lives, at each place. turns: those with so many turns.
    """

    name: str
    options: Options
    cuts: int = 400
    short: bool = False
    turns: int = 0

    def run(self, *, enough: int = 0) -> Figures:
        """Let the laboratory look at it."""
        return (
            short_lives(self.options, enough=enough, turns=self.turns)
            if self.short
            else laboratory(0, self.cuts, self.options, enough=enough)
        )


def _port(name: str, machine: Callable[..., Machine], *, faults: float = 0.0, cuts: int = 400) -> Mutant:
    return Mutant(name, Options(machine=machine, faults=faults), cuts)


def _code(name: str, where: dict[str, Any], *, cuts: int = 1_000, short: bool = False, **options: Any) -> Mutant:
    """Return a mutant of the code. where: dotted names, and what stands there instead."""
    patches = tuple(partial(patch, name, new) for name, new in where.items())
    return Mutant(name, Options(patches=patches)._replace(**options), cuts, short)


def _always(*_: object) -> bool:
    return True


def _nothing(*_: object) -> None:
    return


MUTANTS = (
    _port("no directory sync", NoDirectorySync),
    _port("no header sync", NoHeaderSync),
    _port("no fdatasync", NoFileSync),
    _port("ack without sync, 1 in 5", AckWithoutSync),
    _code("recovery without crc", {"agentsh.log.scan.crc_fits": any_json}, rot=1.0),
    _code("fsync retried on the same descriptor", {"agentsh.log.writer.Appender._rescue": retried}, faults=1.0),
    _port("rescue segment without its sync", NoRescueSync, faults=1.0, cuts=1_000),
    _port("blob named before it is durable", NoBlobSync),
    _port("quarantine without sync", NoQuarantine, cuts=1_000),
    _code(
        "checkpoint not checked against the log",
        {"agentsh.log.checkpoint.is_anchored": _always},
        run=CheckpointRun,
        cuts=4_000,
    ),
    _code(
        "tail behind a checkpoint without crc",
        {"agentsh.log.scan.crc_fits": any_json},
        rot=1.0,
        run=CheckpointRun,
        cuts=4_000,
    ),
    _code(
        "checkpoint of what is not synced",
        {"agentsh.stores.jsonl_log.JsonlLog._checkpoint": without_a_sync},
        run=CheckpointRun,
        cuts=4_000,
    ),
    _code("recovery cuts at the first bad line", {"agentsh.log.chain.SegmentScan": CutsAtTheFirst}, rot=1.0),
    _port("lease ignored", NoLease),
    _code(
        "cut of a short write not synced",
        {"agentsh.log.writer.Appender._sync_the_cut": _nothing},
        run=HalfWritten,
        rot=0.0,
    ),
    _code(
        "no sync before roll",
        # Sealing would make the lines durable; it comes later, and there it must not be too late.
        {"agentsh.log.writer.Appender.roll": roll_unsynced, "tests.crash.machine.InlineSealer.wake": _nothing},
        short=True,
    )._replace(turns=1),
    _port("sealed file not synced before the plain one goes", NoSealSync, cuts=1_000),
    Mutant(
        "name of the sealed file not durable before the plain one goes",
        Options(machine=NoSealedName),
        short=True,
        turns=2,
    ),
    _code("names of a killed process trusted", {"agentsh.log.recover._make_names_durable": _nothing}, short=True),
    _code(
        "directories of a killed process trusted",
        {
            "agentsh.log.recover.make_dirs": _make_dirs_and_trust,
            "agentsh.stores.blobs.make_dirs": _make_dirs_and_trust,
        },
        short=True,
    ),
    _code(
        "lines in the kernel trusted after a failed fsync",
        {"agentsh.log.recover._write_again": _nothing},
        faults=1.0,
        kills=0.5,
        cuts=2_000,
    ),
    _code(
        "lines of a closed segment left unsynced",
        {"agentsh.log.recover._begin": _begin_without_lines},
        short=True,
        sync_fails=3,
    ),
)
"""The last four were faults of our own, until the laboratory found them."""
