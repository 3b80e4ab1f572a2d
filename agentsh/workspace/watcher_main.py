"""Waits for agentsh to die, and ends what its unsandboxed commands left. A program of its own.

    python -I -S watcher_main.py MARK

MARK is `NAME=VALUE`, an environment variable that all those commands have. Lines on the standard input: `+PID` when a
process group begins, `-PID` before its leader is reaped, so that the number of a group that is known here cannot be
somebody else's. At the end of the input all known groups, and all processes with the mark, get SIGKILL. A line `.`
ends it without. It imports nothing of agentsh, so that it starts in some 10 ms.
"""

import os
import signal
import sys
import time

ROUNDS = 50
ROUND_S = 0.002


def marked(mark: bytes) -> set[int]:
    """Return the processes whose environment has the mark; none where there is no /proc."""
    found: set[int] = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                    environ = file.read()
            except OSError:
                continue
            if mark in environ.split(b"\0"):
                found.add(int(name))
    return found - {os.getpid()}


def end(groups: set[int], mark: bytes) -> None:
    """Kill the groups, and what has the mark, until nothing is left that has it."""
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    for _ in range(ROUNDS):
        left = marked(mark)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        if not left:
            return
        time.sleep(ROUND_S)


def main() -> None:
    """Listen until the input ends."""
    mark = os.fsencode(sys.argv[1])
    groups: set[int] = set()
    while line := sys.stdin.buffer.readline():
        text = line.strip()
        if text == b".":
            return
        if text[1:].isdigit():
            (groups.add if text[:1] == b"+" else groups.discard)(int(text[1:]))
    end(groups, mark)


if __name__ == "__main__":
    main()
