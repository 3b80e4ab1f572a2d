"""One thread for everything of a log that blocks, in the order of the calls, so that the event loop never waits."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


class Worker:
    """Runs jobs one after the other. A caller that is cancelled leaves its job alone: it runs to its end."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, job: Callable[[], _T], undo: Callable[[_T], object] | None = None) -> _T:
        """Return what `job` returns. undo: what to do with that where nobody waits for it any more."""
        future = self._pool.submit(job)
        try:
            return await outcome(future)
        except asyncio.CancelledError:
            if undo is not None:
                future.add_done_callback(lambda f: None if f.exception() else undo(f.result()))
            raise

    def submit(self, job: Callable[[], _T]) -> "Future[_T]":
        """Have `job` done behind those that wait already, and return what will hold its result."""
        return self._pool.submit(job)

    def start(self, job: Callable[[], object]) -> None:
        """Have `job` done behind those that wait already; nobody hears of its end."""
        self._pool.submit(job)

    def stop(self) -> None:
        """End the thread once its jobs are done; does not wait."""
        self._pool.shutdown(wait=False)


async def outcome(future: "Future[_T]") -> _T:
    """Return the result of another thread's work. Cancelling the wait does not touch the work."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop is gone, and whoever waited with it
            loop.call_soon_threadsafe(lambda: None if waiter.done() else waiter.set_result(None))

    future.add_done_callback(tell)
    await waiter
    return future.result()
