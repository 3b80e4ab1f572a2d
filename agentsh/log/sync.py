"""Group sync: one thread that makes batches of written lines durable while the next batch collects."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from agentsh.base.errors import LogWriteFailed

MAX_BATCH_EVENTS = 100
MAX_BATCH_BYTES = 1 << 20
MAX_BATCH_AGE_S = 0.1
"""A batch closes at the first of these, or at once when somebody waits. Source: DESIGN section 4, measured."""

Told = Callable[[LogWriteFailed | None], None]
"""Called once, from any thread: with None when it is durable, else with why it never will be."""


class GroupSync:
    """Turns `wrote` and `wait` into as few syncs as possible.

    flush: makes everything written so far durable and returns the seq of its last line; called on the thread of
    this object, or of who calls `now`. When it raises LogWriteFailed, that is the end: nobody will be told again that
    something is durable.

    durable_seq: highest seq that is known to be durable. failed: why nothing becomes so any more, or None. Both are
    to be read only; they are no properties because each append reads them.
    """

    def __init__(self, flush: Callable[[], int], durable_seq: int, written_seq: int, session: str) -> None:
        self._flush = flush
        self._session = session
        self._state = Lock()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._looks_at = 0.0
        self.durable_seq = durable_seq
        self._written = written_seq
        self._wanted = 0
        self._events = 0
        self._bytes = 0
        self._since: float | None = None
        self._waiters: list[tuple[int, Told]] = []
        self.failed: LogWriteFailed | None = None
        self._stopping = False
        self._thread: Thread | None = None

    def wrote(self, seq: int, events: int, size: int) -> None:
        """Take note of lines that the kernel has. size: their bytes."""
        with self._state:
            self._written = seq
            self._events += events
            self._bytes += size
            if self._since is None:
                self._since = time.monotonic()
            if self._events >= MAX_BATCH_EVENTS or self._bytes >= MAX_BATCH_BYTES:
                self._look_by(0.0)
            else:
                self._look_by(self._since + MAX_BATCH_AGE_S)

    def when_durable(self, seq: int, tell: Told) -> None:
        """Have `tell` called once all up to `seq` is durable, or never will be: here, or on the sync's thread."""
        with self._state:
            failure = None
            if seq > self.durable_seq:
                if self.failed is not None:
                    failure = _again(self.failed)
                elif seq > self._written or self._stopping:
                    failure = LogWriteFailed(f"event {seq} of {self._session} was never written")
                else:
                    self._waiters.append((seq, tell))
                    self._wanted = max(self._wanted, seq)
                    self._look_by(0.0)
                    return
        tell(failure)

    def wait(self, seq: int) -> "Future[None]":
        """Return what is done once all up to `seq` is durable; it cannot be cancelled."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()

        def tell(failure: LogWriteFailed | None) -> None:
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

        self.when_durable(seq, tell)
        return future

    def now(self, seq: int) -> None:
        """Take note that the kernel has all up to `seq`, and make it durable here: on the thread that writes.

        Handing it to the other thread and back would take about as long again as the sync of a fast disk.

        Raises:
            LogWriteFailed: that failed, or an earlier sync.
        """
        self._written = seq
        if self.failed is not None:
            raise _again(self.failed)
        try:
            durable = self._flush()
        except LogWriteFailed as error:
            self._fail(error)
            raise
        self._tell(durable)

    def stop(self) -> None:
        """Make all that was written durable, and end the thread. Blocks. Idempotent.

        Raises:
            LogWriteFailed: the last sync failed, or an earlier one.
        """
        with self._state:
            if not self._stopping and self._written > self.durable_seq and self.failed is None:
                self._wanted = self._written
                self._start()
            self._stopping = True
            thread = self._thread
        if thread is not None:
            self._wake.put(None)
            thread.join()
        if self.failed is not None:
            raise _again(self.failed)

    def _look_by(self, moment: float) -> None:
        """See to it that the thread looks by that moment; to be woken costs more than a write, so only if need be."""
        self._start()
        if self._looks_at > moment:
            self._looks_at = 0.0
            self._wake.put(None)

    def _start(self) -> None:
        if self._thread is None:
            # A daemon, so that a log that nobody closed does not keep the process; the kernel has its lines.
            self._thread = Thread(target=self._run, name=f"sync {self._session}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._due():
            try:
                durable = self._flush()
            except LogWriteFailed as error:
                self._fail(error)
                return
            self._tell(durable)

    def _due(self) -> bool:
        """Wait for a batch to close; False at the end."""
        lingers = True  # once, for as long as a batch: whoever begins one within that need not wake us
        while True:
            with self._state:
                if self.failed is not None:
                    return False
                closes_at, moment = self._closes_at(), time.monotonic()
                if closes_at <= moment:
                    self._events = self._bytes = 0
                    self._since = None
                    self._looks_at = 0.0
                    return True
                if self._stopping:
                    return False
                if closes_at == math.inf and lingers:
                    closes_at, lingers = moment + MAX_BATCH_AGE_S, False
                self._looks_at = closes_at
            with suppress(Empty):
                self._wake.get(timeout=None if closes_at == math.inf else closes_at - moment)

    def _closes_at(self) -> float:
        """Return the moment at which the batch closes; infinity where there is none."""
        if self._wanted > self.durable_seq:
            return 0.0
        if self._since is None:
            return math.inf
        if self._events >= MAX_BATCH_EVENTS or self._bytes >= MAX_BATCH_BYTES:
            return 0.0
        return self._since + MAX_BATCH_AGE_S

    def _tell(self, durable: int) -> None:
        with self._state:
            if durable > self.durable_seq:
                self.durable_seq = durable
            if durable >= self._written:  # also where this thread has not begun the batch
                self._events = self._bytes = 0
                self._since = None
            if not self._waiters:
                return
            ready = [tell for seq, tell in self._waiters if seq <= self.durable_seq]
            self._waiters = [w for w in self._waiters if w[0] > self.durable_seq]
        for tell in ready:
            tell(None)

    def _fail(self, error: LogWriteFailed) -> None:
        with self._state:
            self.failed = self.failed or error
            waiters, self._waiters = self._waiters, []
            if self._thread is not None:
                self._wake.put(None)
        for _, tell in waiters:
            tell(_again(error))


def _again(error: LogWriteFailed) -> LogWriteFailed:
    """Return a copy: one exception object must not be raised in several tasks."""
    return LogWriteFailed(error.message, hint=error.hint)
