"""One thread for everything of a log that blocks, in the order of the calls: the loop waits only for what is brief.

The way there and back is taken by every event, and is half of what it costs; an executor's would be a third longer.
"""

import asyncio
import atexit
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Generic, TypeVar

_T = TypeVar("_T")
_Jobs = SimpleQueue[Callable[[], object] | None]

BRIEF_S = 0.0005
"""So long an append holds up the loop, at most, before it is waited for beside everything else: a write takes some
10 µs and the sync of a fast disk 200, and the way through the loop and its selector as long again. A disk that hangs
holds nothing up."""

_running: dict[Thread, _Jobs] = {}


@atexit.register
def _finish() -> None:
    """Let what was begun come to its end before the process does, whoever forgot to stop it."""
    for thread, jobs in tuple(_running.items()):
        jobs.put(None)
        thread.join()


class Worker:
    """Runs jobs one after the other. A caller that is cancelled leaves its job alone: it runs to its end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: _Jobs = SimpleQueue()
        self._state = Lock()
        self._started = self._stopped = False

    async def run(
        self, job: Callable[[], _T], undo: Callable[[_T], object] | None = None, *, brief_s: float = 0.0
    ) -> _T:
        """Return what `job` returns. undo: what to do with that, here too, where nobody waits for it any more.

        brief_s: so long the loop itself stands still for a job that is usually done by then; see `BRIEF_S`.
        """
        call = _Call(job)
        self._put(call)
        if not (brief_s and call.over.acquire(timeout=brief_s)):
            try:
                await told(call.when_over)
            except asyncio.CancelledError:
                if undo is not None:
                    self.submit(lambda: [undo(value) for value in call.made])
                raise
        if call.error is not None:
            raise call.error
        return call.made[0]

    def submit(self, job: Callable[[], _T]) -> "Future[_T]":
        """Have `job` done behind those that wait already, and return what will hold its result."""
        future: Future[_T] = Future()

        def work() -> None:
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - as above
                future.set_exception(error)

        self._put(work)
        return future

    def start(self, job: Callable[[], object]) -> None:
        """Have `job` done behind those that wait already; nobody hears of its end."""
        self.submit(job)

    def stop(self) -> None:
        """End the thread once its jobs are done; does not wait. Idempotent."""
        with self._state:
            self._stopped = True
        self._jobs.put(None)

    def _put(self, job: Callable[[], object]) -> None:
        with self._state:
            if self._stopped:
                raise RuntimeError(f"{self._name} takes no jobs any more")
            self._jobs.put(job)
            if not self._started:
                self._started = True
                thread = Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True)
                _running[thread] = self._jobs
                thread.start()


class _Call(Generic[_T]):
    """A job on its way there and back. made: what it returned, if it did. error: what it raised, or None."""

    def __init__(self, job: Callable[[], _T]) -> None:
        self._job = job
        self._tell: Callable[[None], None] | None = None
        self.made: list[_T] = []
        self.error: BaseException | None = None
        self.over = Lock()
        self.over.acquire()

    def __call__(self) -> None:
        try:
            self.made.append(self._job())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.error = error
        self.over.release()
        if (tell := self._tell) is not None:
            tell(None)

    def when_over(self, tell: Callable[[None], None]) -> None:
        """Have `tell` called, twice where the end comes right now."""
        self._tell = tell
        if self.over.acquire(blocking=False):
            tell(None)


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # what it holds is not to live until the next one
    _running.pop(current_thread(), None)


async def told(ask: Callable[[Callable[[BaseException | None], None]], None]) -> None:
    """Wait until another thread calls what is given to `ask`, and raise the error that it is called with, if any.

    Cancelling the wait does not touch the work.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    found: list[BaseException | None] = []

    def tell(error: BaseException | None) -> None:
        found.append(error)
        with suppress(RuntimeError):  # the loop is gone, and whoever waited with it
            loop.call_soon_threadsafe(_wake, waiter)

    ask(tell)
    await waiter
    if (error := found[0]) is not None:
        raise error


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


async def outcome(future: "Future[_T]") -> _T:
    """Return the result of another thread's work. Cancelling the wait does not touch the work."""
    await told(lambda tell: future.add_done_callback(lambda _: tell(None)))
    return future.result()
