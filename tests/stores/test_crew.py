"""Work in several processes: all of it is done, whoever does it and whoever dies over it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agentsh.stores.crew import Crew, Promise, crew


def squared(n: int) -> tuple[int, int]:
    time.sleep(0.001)
    return n * n, os.getpid()


def killed_elsewhere(pid: int) -> str:
    """End any process but that."""
    if os.getpid() != pid:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def large(size: int) -> bytes:
    return bytes(size)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_all_is_done_in_order_and_by_all(jobs: int) -> None:
    with crew(jobs) as hands:
        promises = [hands.submit(squared, n) for n in range(200)]
        found = [promise.result() for promise in promises]
    assert [value for value, _ in found] == [n * n for n in range(200)]
    assert len({pid for _, pid in found}) == jobs
    assert os.getpid() in {pid for _, pid in found}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_job_raises_is_raised_where_its_result_is_asked_for(jobs: int) -> None:
    with crew(jobs) as hands:
        bad = [hands.submit(os.stat, f"/no/such/name/{n}") for n in range(8)]
        good = hands.submit(squared, 3)
        for n, promise in enumerate(bad):
            with pytest.raises(FileNotFoundError, match=f"/no/such/name/{n}"):
                promise.result()
        assert good.result()[0] == 9


def test_the_work_of_a_process_that_is_killed_is_done_by_another() -> None:
    with Crew(2) as hands:
        fatal = [hands.submit(killed_elsewhere, os.getpid()) for _ in range(4)]
        after: list[Promise[tuple[int, int]]] = [hands.submit(squared, n) for n in range(20)]
        assert [promise.result()[0] for promise in after] == [n * n for n in range(20)]
        assert [promise.result() for promise in fatal] == ["survived"] * 4
        assert hands.submit(squared, 5).result() == (25, os.getpid())  # nobody else is left


def test_results_larger_than_what_a_pipe_holds() -> None:
    with Crew(1) as hands:
        promises = [hands.submit(large, 3_000_000) for _ in range(6)]
        assert sum(len(promise.result()) for promise in promises) == 18_000_000


def test_what_nobody_asks_for_is_given_up() -> None:
    start = time.monotonic()
    with Crew(2) as hands:
        for _ in range(100):
            hands.submit(time.sleep, 30)
    assert time.monotonic() - start < 20


def test_the_others_end_with_a_process_that_is_killed() -> None:
    code = (
        "import os, signal, time\n"
        "from agentsh.stores.crew import Crew\n"
        "with Crew(3) as hands:\n"
        "    print(*(other.process.pid for other in hands._others), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    for pid in map(int, done.stdout.split()):
        for _ in range(500):
            if not os.path.exists(f"/proc/{pid}"):
                break
            time.sleep(0.02)
        assert not os.path.exists(f"/proc/{pid}")
    assert len(done.stdout.split()) == 3


def test_others_that_are_given_up_say_nothing() -> None:
    """They were forked with the handlers of the command, which take SIGTERM for a Ctrl-C and tell where it came."""
    code = (
        "import signal, time\n"
        "from agentsh.stores.crew import Crew\n"
        "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):\n"
        "    signal.signal(number, signal.default_int_handler)\n"
        "with Crew(2) as hands:\n"
        "    for _ in range(4):\n"
        "        hands.submit(time.sleep, 30)\n"
        "    time.sleep(0.3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_where_no_more_processes_can_be_started_fewer_do_it() -> None:
    code = (
        "import os, resource\n"
        "from agentsh.stores.crew import Crew\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\n"
        "with Crew(60) as hands:\n"
        "    found = [hands.submit(os.path.exists, '/') for _ in range(40)]\n"
        "    os.close(os.open('/', os.O_RDONLY))\n"
        "    assert all(promise.result() for promise in found)\n"
        "    assert 1 < len(hands._others) < 30, len(hands._others)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
