"""Waiting for a task to its end, whatever cancels the waiter meanwhile. See docs/adr/0004."""

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: "asyncio.Task[T]", *, pass_on: bool = False) -> T:
    """Return what `work` returns, once it is done; a cancellation of the caller is raised only then.

    pass_on: the cancellation goes on to the work, which may clean up and take its time; else the work is left alone.

    Raises:
        asyncio.CancelledError: the caller was cancelled meanwhile, whatever the work came to; or the work was.
        Exception: whatever the work raised.
    """
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            cancelled = True
            if pass_on:
                work.cancel()
    if cancelled:
        if not work.cancelled():
            work.exception()  # looked at, so that asyncio does not report it as lost
        raise asyncio.CancelledError
    return work.result()


async def came_to_its_end(work: "asyncio.Task[T]") -> bool:
    """Wait for `work`, which gets the cancellation of the caller; return False where another cancelled it.

    Raises:
        asyncio.CancelledError: the caller was cancelled meanwhile.
        Exception: whatever the work raised.
    """
    try:
        await to_the_end(work, pass_on=True)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return False
    return True
