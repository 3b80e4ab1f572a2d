"""Finds and kills processes that left their group but still carry the mark of the session in their environment.

Linux only: /proc/PID/environ is what a process was started with. A process that was started with another environment
(`env -i setsid …`) is not found; only a sandbox with a process namespace of its own holds that.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from agentsh.workspace.environ import SESSION_MARK

AVAILABLE = sys.platform == "linux"
_ROUNDS = 50
_ROUND_S = 0.002
_YOUNG_S = 1.0


class Birth(NamedTuple):
    """When a process began: its number, clock ticks since boot (0 where unknown), seconds of `time.monotonic`."""

    pid: int
    ticks: int
    at_s: float

    @staticmethod
    def of(pid: int) -> "Birth":
        """Return the birth of a process that was started just now."""
        return Birth(pid, _ticks(pid), time.monotonic())


def kill_session(session: str) -> int:
    """Kill every process that a session's commands left behind; return how many.

    For the next start after agentsh itself was killed, and for the end. Blocks for the time it takes to read /proc
    (20 to 80 µs a process), twice if there are any.
    """
    return kill_marked(SESSION_MARK, session)


def kill_marked(name: str, value: str, since: Birth | None = None) -> int:
    """Kill the processes whose environment has `name` set to `value`; return how many.

    since: the first process that carries the mark. A later one that is just in the middle of an exec shows an empty
    environment for an instant and is looked at again.
    """
    mark = os.fsencode(f"{name}={value}")
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        marked, unclear = _marked(mark, since)
        for pid in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= marked
        if not marked and not unclear:  # all are dead, and no fork slipped through
            break
        time.sleep(_ROUND_S)
    return len(killed)


def more_marked(name: str, value: str, first: int, most: int) -> bool:
    """Tell whether more than `most` processes have `name` set to `value`. first: the number of the oldest of them."""
    mark = os.fsencode(f"{name}={value}")
    found, newest = 0, _newest()
    for pid in range(first, newest + 1) if newest >= first else _candidates(None):
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                found += mark in file.read()
        except OSError:
            continue
        if found > most:
            return True
    return False


def tasks() -> int:
    """Return how many tasks the system has (the fourth field of /proc/loadavg, proc(5)); 0 where unknown."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _marked(mark: bytes, since: Birth | None) -> tuple[set[int], bool]:
    """Return the processes with the mark, and whether one could not be judged yet."""
    marked: set[int] = set()
    unclear = False
    for pid in _candidates(since):
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                environ = file.read()
        except OSError:  # gone, or somebody else's
            continue
        if mark in environ and mark in environ.split(b"\0"):
            marked.add(pid)
        elif not environ and since is not None and since.ticks and _ticks(pid) >= since.ticks:
            unclear = unclear or _executes(pid)
    return marked - {os.getpid()}, unclear


def _candidates(since: Birth | None) -> Iterable[int]:
    """Return the processes to look at: all, or those numbered after a young one; then a command costs no full look.

    Numbers are given in order, round and round; nobody goes round within a second.
    """
    if since is not None and time.monotonic() < since.at_s + _YOUNG_S:
        newest = _newest()
        if 0 <= newest - since.pid < 100:
            return range(since.pid, newest + 1)
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:  # no /proc
        return ()


def _newest() -> int:
    """Return the number given last (the fifth field of /proc/loadavg, proc(5)), -1 where unknown."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read().split()[4])
    except (OSError, ValueError, IndexError):
        return -1


def _ticks(pid: int) -> int:
    """Return when a process started (field 22 of proc_pid_stat(5)); 0 where unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _executes(pid: int) -> bool:
    """Tell whether a process has a program: zombies and threads of the kernel have none."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    return True
