"""One life of a process on a simulated disk: it ends, or an operation fails, where the plan says so."""

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from agentsh.base.errors import LogWriteFailed
from agentsh.log import lease
from agentsh.log.files import READ
from agentsh.log.seal import seal_closed
from agentsh.log.sealer import Sealer
from agentsh.log.segment import NEW_NAME, OPEN_NAME, SEALED
from agentsh.log.sync import GroupSync, Told
from agentsh.stores.worker import Worker
from agentsh.testing.disks import SimDisk

CHANGES = frozenset({"write", "truncate", "sync", "sync_dir", "mkdir", "rmdir", "rename", "link", "unlink"})

SMALL_FRAME = 2_000
"""Bytes of content of a frame of sealed segments, so that most of them have several."""


NOW = "2026-11-29T16:20:01.118204Z"
"""The time in the laboratory, so that a seed does the same in every process."""


class Stopped(BaseException):
    """The power went, or the process was killed: nothing of it runs any more."""


class Plan(NamedTuple):
    """What happens to a process. stop_at: number of the change at which it ends; 0: never.

    fail_at: number of the operation that fails with `error`, once or from then on; 0: none. short: writes do not
    fail but take only a part. sync_only: only syncs of files count, and fail. stop_after: after a failure it
    ends at the change of that number. evict: a failed sync also takes the data out of the kernel.
    """

    stop_at: int = 0
    fail_at: int = 0
    error: int = errno.EIO
    for_ever: bool = False
    short: bool = False
    sync_only: bool = False
    stop_after: int = 0
    evict: bool = False


class Machine:
    """A file system as one process sees it. changes: how many there were. failed: how many operations failed."""

    def __init__(self, disk: SimDisk, dice: Random, plan: Plan | None = None) -> None:
        self.disk = disk
        self.dice = dice
        self.plan = plan or Plan()
        self.dead = False
        self.stop_at = self.plan.stop_at
        self.changes = 0
        self.ops: list[str] = []
        self.failed = 0
        self.rescues = 0
        self.rolls = 0
        self.seals = 0
        self.rooms = 0
        self.paths: dict[int, str] = {}
        self.during_sync: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self.disk, name)

        def operation(*args: Any, **more: Any) -> Any:
            return self._do(name, lambda: real(*args, **more))

        return operation

    def open(self, path: str, flags: int) -> int:
        fd: int = self._do("open", lambda: self.disk.open(path, flags), changes=flags != READ)
        self.paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        if not self.dead:
            self.paths.pop(fd, None)
            self.disk.close(fd)

    def write(self, fd: int, data: bytes) -> int:
        part = data[: self.dice.randrange(len(data))] if data else data
        if self.plan.short and 0 < self.plan.fail_at <= len(self.ops) + 1 and (self.plan.for_ever or not self.failed):
            self.failed += 1
            data = part
        taken: int = self._do("write", lambda: self.disk.write(fd, data), torn=lambda: self.disk.write(fd, part))
        return taken

    def rename(self, source: str, target: str) -> None:
        self._do("rename", lambda: self.disk.rename(source, target))
        self.rescues += source.endswith(NEW_NAME) and target.endswith(OPEN_NAME)
        self.rolls += source.endswith(OPEN_NAME)
        self.seals += target.endswith(".jsonl" + SEALED)
        self.rooms += "/.room-" in source and "/.room-" not in target

    def sync(self, fd: int) -> None:
        upto = self.disk.unsynced(fd) if not self.dead else 0
        self.during_sync()
        self._do("sync", lambda: self.disk.sync(fd, upto), failing=lambda: self._fail_sync(fd))

    def _fail_sync(self, fd: int) -> None:
        self.disk.fail_sync(fd, evict=self.plan.evict)

    def _fails(self, name: str) -> bool:
        if self.plan.short or (self.plan.sync_only and name != "sync"):
            return False
        n = self.ops.count("sync") if self.plan.sync_only else len(self.ops)
        return n == self.plan.fail_at or (self.plan.for_ever and 0 < self.plan.fail_at <= n)

    def _do(
        self, name: str, act: Callable[[], Any], *, changes: bool = False, torn: Callable[[], object] | None = None,
        failing: Callable[[], object] = lambda: None,
    ) -> Any:  # fmt: skip
        if self.dead:
            raise Stopped
        self.ops.append(name)
        if changes or name in CHANGES:
            self.changes += 1
            if self.changes == self.stop_at:
                how = self.dice.choice(("before", "after", "torn"))
                if how == "torn" and torn is not None:
                    torn()
                elif how != "before":
                    act()
                self.dead = True
                raise Stopped
        if self._fails(name):
            self.failed += 1
            if self.plan.stop_after and self.failed == 1:
                self.stop_at = self.changes + self.plan.stop_after
            failing()
            raise OSError(self.plan.error, os.strerror(self.plan.error))
        return act()


class SteppedSync(GroupSync):
    """A group sync without a thread: it works when somebody waits, or when `tick` is called, so that runs repeat."""

    def _start(self) -> None:
        return

    def when_durable(self, seq: int, tell: Told) -> None:
        super().when_durable(seq, tell)
        self._work()

    def tick(self) -> None:
        """Do what the thread does when a batch is old enough."""
        self._wanted = max(self._wanted, self._written)
        self._work()

    def stop(self) -> None:
        if not self._stopping:
            self.tick()
        super().stop()

    def _work(self) -> None:
        while self.failed is None and self._wanted > self.durable_seq:
            self._due()
            try:
                durable = self._flush()
            except LogWriteFailed as error:
                self._fail(error)
            else:
                self._tell(durable)


class InlineSealer(Sealer):
    """A sealer that seals where it is woken, with frames so small that a segment has several."""

    def wake(self, below: int) -> None:
        self._below = below
        self._run()

    def stop(self) -> None:
        return


class InlineWorker(Worker):
    """A worker that works where it is called."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, job: Callable[[], Any], undo: object = None, *, brief_s: float = 0.0) -> Any:
        return job()

    def start(self, job: Callable[[], object]) -> None:
        job()

    def submit(self, job: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        future.set_result(job())
        return future

    def stop(self) -> None:
        return


async def _outcome(future: Any) -> Any:
    return future.result(timeout=0)


async def _told(ask: Callable[[Told], None]) -> None:
    found: list[LogWriteFailed | None] = []
    ask(found.append)
    if (error := found[0]) is not None:
        raise error


@contextmanager
def one_thread(seed: int, *, rooms: int = 0) -> Iterator[None]:
    """Let stores that are made inside run on the thread of their caller, the same in each run.

    rooms: that are kept for blobs; they take a good part of the changes of a short life.
    """
    dice = Random(seed)

    def random_hex(count: int) -> str:
        return dice.randbytes(count).hex()

    with (
        patch("agentsh.log.writer.GroupSync", SteppedSync),
        patch("agentsh.stores.jsonl.Worker", InlineWorker),
        patch("agentsh.stores.jsonl_log.Worker", InlineWorker),
        patch("agentsh.stores.jsonl.Sealer", InlineSealer),
        patch("agentsh.log.sealer.seal_closed", partial(seal_closed, frame_bytes=SMALL_FRAME)),
        patch("agentsh.stores.jsonl_log.outcome", _outcome),
        patch("agentsh.stores.jsonl_log.told", _told),
        patch("agentsh.log.segment.random_hex", random_hex),
        patch("agentsh.stores.blobs.random_hex", random_hex),
        patch("agentsh.stores.blob_room.random_hex", random_hex),
        patch("agentsh.stores.blob_room.ROOMS", rooms),
        # What is packed has another length at another time, and a torn write of it tears elsewhere.
        patch("agentsh.log.segment.timestamp", lambda now: NOW),
        patch("agentsh.log.lease.timestamp", lambda now: NOW),
        patch("agentsh.log.lease._tty", lambda: None),
        patch("os.getpid", lambda: 4711),
        patch.object(lease, "PATIENCE_S", 0.0),
        patch.object(lease, "PAUSE_S", 0.0),
    ):
        yield


def now(coroutine: Any) -> Any:
    """Return the result of a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise AssertionError("it waits")
