"""Keeps this process's memory and environment, where the keys are, from the commands that it runs.

Linux: not dumpable means that /proc/PID/environ, mem and fd belong to root and that nobody may attach, as prctl(2)
says. It does not hold against commands that run as root; only a sandbox does.
"""

import sys
from contextlib import suppress

PR_SET_DUMPABLE = 4


def harden() -> bool:
    """Make the process not dumpable and its core dumps empty; return whether the first worked."""
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
