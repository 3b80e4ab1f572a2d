"""Group sync: one thread that makes batches of written lines durable while the next batch collects."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from agentsh.base.errors import LogWriteFailed

MAX_BATCH_EVENTS = 100
MAX_BATCH_BYTES = 1 << 20
MAX_BATCH_AGE_S = 0.1
"""A batch closes at the first of these, or at once when somebody waits. Source: DESIGN section 4, measured."""


class GroupSync:
    """Turns `wrote` and `wait` into as few syncs as possible.

    flush: makes everything written so far durable and returns the seq of its last line; called on the thread of
    this object, or of who calls `now`. When it raises LogWriteFailed, that is the end: nobody will be told again that
    something is durable.
    """

    def __init__(self, flush: Callable[[], int], durable_seq: int, written_seq: int, session: str) -> None:
        self._flush = flush
        self._session = session
        self._state = threading.Condition()
        self._durable = durable_seq
        self._written = written_seq
        self._wanted = 0
        self._events = 0
        self._bytes = 0
        self._since: float | None = None
        self._waiters: list[tuple[int, Future[None]]] = []
        self._failed: LogWriteFailed | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def durable_seq(self) -> int:
        """Highest seq that is known to be durable."""
        return self._durable

    @property
    def failed(self) -> LogWriteFailed | None:
        """Why nothing becomes durable any more, or None."""
        return self._failed

    def wrote(self, seq: int, events: int, size: int) -> None:
        """Take note of lines that the kernel has. size: their bytes."""
        with self._state:
            self._written = seq
            self._events += events
            self._bytes += size
            if self._since is None:
                self._since = time.monotonic()
                self._start()
                self._state.notify()
            elif self._events >= MAX_BATCH_EVENTS or self._bytes >= MAX_BATCH_BYTES:
                self._state.notify()

    def wait(self, seq: int) -> "Future[None]":
        """Return what is done once all up to `seq` is durable; it cannot be cancelled."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        with self._state:
            if seq <= self._durable:
                future.set_result(None)
            elif self._failed is not None:
                future.set_exception(_again(self._failed))
            elif seq > self._written or self._stopping:
                future.set_exception(LogWriteFailed(f"event {seq} of {self._session} was never written"))
            else:
                self._waiters.append((seq, future))
                self._wanted = max(self._wanted, seq)
                self._start()
                self._state.notify()
        return future

    def now(self, seq: int) -> None:
        """Take note that the kernel has all up to `seq`, and make it durable on this very thread.

        Handing it to the other thread and back would take about as long again as the sync of a fast disk.

        Raises:
            LogWriteFailed: that failed, or an earlier sync.
        """
        with self._state:
            self._written = max(self._written, seq)
            if self._failed is not None:
                raise _again(self._failed)
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
            if not self._stopping and self._written > self._durable and self._failed is None:
                self._wanted = self._written
                self._start()
            self._stopping = True
            self._state.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._failed is not None:
            raise _again(self._failed)

    def _start(self) -> None:
        if self._thread is None:
            # A daemon, so that a log that nobody closed does not keep the process; the kernel has its lines.
            self._thread = threading.Thread(target=self._run, name=f"sync {self._session}", daemon=True)
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
        with self._state:
            while True:
                if self._failed is not None:
                    return False
                if self._wanted > self._durable:
                    break
                if self._stopping:
                    return False
                if self._since is None:
                    self._state.wait()
                    continue
                left = self._since + MAX_BATCH_AGE_S - time.monotonic()
                if left <= 0 or self._events >= MAX_BATCH_EVENTS or self._bytes >= MAX_BATCH_BYTES:
                    break
                self._state.wait(left)
            self._events = self._bytes = 0
            self._since = None
            return True

    def _tell(self, durable: int) -> None:
        with self._state:
            self._durable = max(self._durable, durable)
            ready = [future for seq, future in self._waiters if seq <= self._durable]
            self._waiters = [w for w in self._waiters if w[0] > self._durable]
        for future in ready:
            future.set_result(None)

    def _fail(self, error: LogWriteFailed) -> None:
        with self._state:
            self._failed = self._failed or error
            waiters, self._waiters = self._waiters, []
            self._state.notify()
        for _, future in waiters:
            future.set_exception(_again(error))


def _again(error: LogWriteFailed) -> LogWriteFailed:
    """Return a copy: one exception object must not be raised in several tasks."""
    return LogWriteFailed(error.message, hint=error.hint)
