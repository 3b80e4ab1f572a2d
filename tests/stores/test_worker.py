"""The thread of a log: jobs in the order of the calls, told to the loop, and none lost by who goes away."""

import asyncio
import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from agentsh.stores.worker import Worker


async def test_jobs_run_one_after_the_other_on_one_thread_that_is_not_ours() -> None:
    worker, seen = Worker("w"), list[tuple[int, int]]()

    def look(n: int) -> None:
        seen.append((n, threading.get_ident()))

    await asyncio.gather(*(worker.run(partial(look, n)) for n in range(50)))
    worker.stop()
    assert [n for n, _ in seen] == list(range(50))
    assert len({thread for _, thread in seen} - {threading.get_ident()}) == 1


async def test_what_a_job_raises_reaches_its_caller_and_the_next_job_runs() -> None:
    worker = Worker("w")
    with pytest.raises(FileNotFoundError):
        await worker.run(lambda: os.stat("/no/such/name"))
    worker.start(lambda: 1 / 0)  # nobody hears of it
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(timeout=10)
    assert await worker.run(lambda: "fine") == "fine"
    worker.stop()


@pytest.mark.parametrize("finished", [False, True])
async def test_a_caller_that_is_cancelled_leaves_its_job_alone_and_what_it_made_is_undone(finished: bool) -> None:
    worker, go, undone = Worker("w"), threading.Event(), list[tuple[str, int]]()

    def job() -> str:
        go.wait(10)
        return "made"

    task = asyncio.ensure_future(worker.run(job, lambda made: undone.append((made, threading.get_ident()))))
    await asyncio.sleep(0)
    if finished:  # the job is done, and the loop has not looked yet
        go.set()
        worker.submit(lambda: None).result(timeout=10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await worker.run(lambda: None)
    assert [made for made, _ in undone] == ["made"]
    assert undone[0][1] != threading.get_ident()
    worker.stop()


async def test_a_job_that_failed_has_nothing_to_undo() -> None:
    worker, go, undone = Worker("w"), threading.Event(), list[object]()

    def job() -> str:
        go.wait(10)
        raise ValueError

    task = asyncio.ensure_future(worker.run(job, undone.append))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await worker.run(lambda: None)
    assert undone == []
    worker.stop()


async def test_a_brief_job_is_waited_for_on_the_spot_and_a_longer_one_in_the_loop() -> None:
    worker, turned, go = Worker("w"), asyncio.Event(), threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    assert await worker.run(threading.get_ident, brief_s=10) != threading.get_ident()
    with pytest.raises(FileNotFoundError):
        await worker.run(lambda: os.stat("/no/such/name"), brief_s=10)
    assert not turned.is_set()  # the loop did nothing else meanwhile
    task = asyncio.ensure_future(worker.run(lambda: go.wait(10), brief_s=0.001))
    await turned.wait()
    assert not task.done()
    go.set()
    assert await task
    go.clear()
    failing = asyncio.ensure_future(worker.run(lambda: (go.wait(10), os.stat("/no/such/name")), brief_s=0.001))
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(FileNotFoundError):
        await failing
    worker.stop()


async def test_a_stopped_worker_does_what_it_was_given_and_takes_nothing_more() -> None:
    worker, go, done = Worker("w"), threading.Event(), threading.Event()
    worker.start(lambda: go.wait(10))
    worker.start(done.set)
    worker.stop()
    worker.stop()
    for ask in (worker.start, worker.submit):
        with pytest.raises(RuntimeError, match="no jobs any more"):
            ask(lambda: None)
    go.set()
    assert done.wait(10)


def test_what_was_begun_is_finished_before_the_process_ends() -> None:
    code = (
        "import os, threading\n"
        "from agentsh.stores.worker import Worker\n"
        "worker, begun = Worker('w'), threading.Event()\n"
        "exits = threading.Event()\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), exits.set())).start()\n"
        "worker.start(lambda: (begun.set(), exits.wait(10)))\n"
        "worker.start(lambda: os.write(1, b'written'))\n"
        "begun.wait(10)\n"  # and nobody stops it
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"written"


def test_a_loop_that_is_gone_does_not_stop_the_thread() -> None:
    worker, go = Worker("w"), threading.Event()

    async def leave() -> None:
        task = asyncio.ensure_future(worker.run(lambda: go.wait(10)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())
    go.set()
    assert worker.submit(lambda: "alive").result(timeout=10) == "alive"
    worker.stop()
