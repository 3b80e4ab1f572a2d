"""Landlock and seccomp, through a helper process: for machines where namespaces are closed to ordinary users.

What it does not hold, and bubblewrap does: the configuration and hooks of git. Listings of directories that have
something hidden in them are refused, and /dev/shm is closed. Landlock knows no right for modes and times of files,
and a filter of system calls cannot see paths: these calls the helper makes in place of the command, where it may
write. It takes in every process that a command leaves (PR_SET_CHILD_SUBREAPER) and ends it.
"""

import base64
import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from agentsh.workspace.launching import memory_file
from agentsh.workspace.sandbox_port import Bounds, Found, Launch
from agentsh.workspace.seccomp import MODES, for_landlock, numbers_of

HELPER = str(Path(__file__).with_name("landlock_exec.py"))
PROBE_S = 5.0
MINIMUM_ABI = 3
"""Of Linux 6.2: before it a file could be emptied (truncate) without a right."""

SIGNALS_ABI = 6
"""Of Linux 6.12: before it a command can signal whatever the user can."""

# Bits of landlock(7): execute, read a file, read a directory; 0 to 12 are those of the first version.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FIRST = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_READS = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 0b11
_SCOPES = 0b11  # abstract sockets, signals
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
MAX_RULES = 4_000


@cache
def abi() -> int:
    """Return the version of Landlock that the kernel has, 0 for none. Asked by system call: /sys may be missing."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint32(1))), 0)


def probe() -> Found:
    """Ask the kernel, and run a command under the helper."""
    if abi() < MINIMUM_ABI:
        return Found(
            False,
            f"the kernel has Landlock version {abi()}, {MINIMUM_ABI} is needed" if abi() else "not in this kernel",
        )
    if for_landlock(network=False) is None:
        return Found(False, f"the system calls of {os.uname().machine} are not known")
    import subprocess

    here = os.path.dirname(HELPER)
    launch = Landlock(Bounds(root=here, tmp=here, home=here)).launch(["/bin/sh", "-c", "echo works"], "/")
    try:
        done = subprocess.run(
            launch.argv,
            pass_fds=launch.pass_fds,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Found(False, f"it does not run: {error}")
    finally:
        launch.started()
    if done.stdout.strip() == b"works":
        return Found(
            True, f"version {abi()}" + ("" if abi() >= SIGNALS_ABI else ", which does not keep signals inside")
        )
    return Found(False, done.stderr.decode("utf-8", "replace").strip() or f"it fails with exit {done.returncode}")


class Landlock:
    """Implements `sandbox_port.Sandbox` by the helper."""

    name = "landlock"
    owns_processes = True
    guards = False

    def __init__(self, bounds: Bounds, *, python: str = sys.executable, helper: str = HELPER) -> None:
        """Take the bounds. python, helper: what runs the helper, where the user who runs it cannot reach ours."""
        self._bounds = bounds
        self._python = python
        self._helper = helper

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        """Return the command line. What appears beside something hidden is not readable before the next command."""
        reports, told = os.pipe()
        fd = memory_file(json.dumps(self._spec(argv, told)).encode(), "agentsh-landlock")
        tmp = self._bounds.tmp
        return Launch(
            [self._python, "-I", "-S", self._helper, str(fd)],
            {"TMPDIR": tmp, "TMP": tmp, "TEMP": tmp, "XDG_CACHE_HOME": os.path.join(tmp, ".cache")},
            [fd, told],
            reports,
        )

    def _spec(self, argv: Sequence[str], reports: int) -> dict[str, object]:
        bounds, version = self._bounds, abi()
        handled = _FIRST | _REFER | _TRUNCATE | (_IOCTL_DEV if version >= 5 else 0)
        rules = [(path, _READS) for path in _but("/", _hidden(bounds))][:MAX_RULES]
        rules += [(path, _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) for path in _DEVICES]
        rules += [(path, _READS) for path in bounds.readable]
        for path in (bounds.root, bounds.tmp, *bounds.writable):
            rules += [(each, handled) for each in _but(path, [h for h in bounds.hidden if _within(h, path)])]
        writable = [os.path.realpath(path) for path in (bounds.root, bounds.tmp, *bounds.writable)]
        program = for_landlock(network=bounds.network)
        return {
            "argv": list(argv),
            "reports": reports,
            "rules": rules,
            "handled": handled,
            "network": 0 if bounds.network or version < 4 else _TCP,
            "scoped": _SCOPES if version >= SIGNALS_ABI else 0,
            "size": 24 if version >= 6 else 16 if version >= 4 else 8,
            "filter": None if program is None else base64.b64encode(program).decode(),
            "modes": numbers_of(MODES),
            "writable": writable,
            "hidden": [path for path in bounds.hidden if any(_within(path, top) for top in writable)],
            "limits": list(_limits(bounds)),
        }


def _hidden(bounds: Bounds) -> list[str]:
    """Return what may not even be read: what is hidden, and the directories for temporary files of everybody."""
    return [os.path.realpath(path) for path in (*bounds.hidden, "/tmp", "/var/tmp", "/run", "/dev/shm")]


def _but(top: str, hidden: Sequence[str]) -> Iterator[str]:
    """Yield paths that together hold all that is below `top` but for what is hidden: rules can only allow."""
    if top in hidden:
        return
    if not any(_within(path, top) for path in hidden):
        yield top
        return
    try:
        with os.scandir(top) as names:
            entries = sorted((entry.path, entry.is_symlink()) for entry in names)
    except OSError:
        return
    for path, is_link in entries:
        if not is_link:
            yield from _but(path, hidden)


def _within(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")


def _limits(bounds: Bounds) -> Iterator[tuple[str, int]]:
    limits = bounds.limits
    yield "RLIMIT_CORE", 0
    if limits.cpu_s:
        yield "RLIMIT_CPU", limits.cpu_s
    if limits.memory_mb:
        yield "RLIMIT_DATA", limits.memory_mb << 20
    if limits.file_mb:
        yield "RLIMIT_FSIZE", limits.file_mb << 20
    if limits.processes:
        yield "RLIMIT_NPROC", limits.processes
