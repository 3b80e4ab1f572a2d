"""Finds and kills processes that left their group but still carry the mark of the session in their environment.

Linux only: /proc/PID/environ is what a process was started with. A process that was started with another environment
(`env -i setsid …`) is not found; only a sandbox with a process namespace of its own holds that.
"""

import os
import signal
import sys
import time
from contextlib import suppress

from agentsh.workspace.environ import SESSION_MARK

AVAILABLE = sys.platform == "linux"
_ROUNDS = 10
_ROUND_S = 0.002


def kill_session(session: str) -> int:
    """Kill every process that a session's commands left behind; return how many.

    For the next start after agentsh itself was killed, and for the end. Blocks for the time it takes to read /proc
    (20 µs a process), at most ten times.
    """
    return kill_marked(SESSION_MARK, session)


def kill_marked(name: str, value: str, *, after: int = 0) -> int:
    """Kill the processes whose environment has `name` set to `value`; return how many.

    after: the start time (see `started`) of the first process that can carry the mark. A later one that is just in
    the middle of an exec shows an empty environment for an instant and is looked at again; 0: no second look.
    """
    mark = os.fsencode(f"{name}={value}")
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        marked, unclear = _marked(mark, after)
        fresh = marked - killed
        for pid in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= marked
        if not fresh and not unclear:  # a fork may have slipped through: look until nothing new turns up
            break
        time.sleep(_ROUND_S)
    return len(killed)


def started(pid: int) -> int:
    """Return when a process started, in clock ticks since boot (field 22 of proc_pid_stat(5)); 0 where unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _marked(mark: bytes, after: int) -> tuple[set[int], bool]:
    """Return the processes with the mark, and whether one could not be judged yet."""
    marked: set[int] = set()
    unclear = False
    me = os.getpid()
    try:
        names = os.listdir("/proc")
    except OSError:  # no /proc
        return marked, unclear
    for name in names:
        if not name.isdecimal() or int(name) == me:
            continue
        try:
            with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                environ = file.read()
        except OSError:  # gone, or somebody else's
            continue
        if mark in environ and mark in environ.split(b"\0"):
            marked.add(int(name))
        elif not environ and after and started(int(name)) >= after:
            unclear = unclear or _executes(name)
    return marked, unclear


def _executes(pid: str) -> bool:
    """Tell whether a process has a program: zombies and threads of the kernel have none."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    return True
