"""Runs a command confined by Landlock and seccomp, and ends what it leaves behind. A program of its own.

    python -I -S landlock_exec.py FD

FD holds a JSON object: `argv`; `rules`, a list of [path, access bits]; `handled` and `network`, access bits that are
denied unless a rule allows them; `size`, of what the kernel is told; `scoped`; `filter`, a seccomp program in base64
or null; `limits`, pairs of the name of a resource limit and its value; `reports`, a descriptor that is written to
where processes were left. It imports nothing of agentsh, so that it starts in some 10 ms. Whatever it cannot do ends
it with exit 126 before the command runs: a command is never run unconfined by it.

Sources: landlock(7), seccomp(2), capabilities(7); the system calls 444 to 446 have these numbers everywhere.
"""

import base64
import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any, NoReturn

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
PATH_BENEATH = 1
VERSION_FLAG = 1
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP = 38, 24, 22
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SECCOMP_MODE_FILTER = 2
CAPSET = {"x86_64": 126, "aarch64": 91}
CAP_VERSION_3 = 0x20080522
LAST_CAP = 63
# What makes sense for a file that is no directory: execute, write, read, truncate, ioctl.
FILE_BITS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15


def fail(what: str) -> NoReturn:
    """End with what went wrong."""
    sys.stderr.write(f"agentsh: the sandbox could not be made: {what}\n")
    sys.stderr.flush()
    os._exit(126)


class Kernel:
    """System calls that the standard library does not have."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long

    def call(self, what: str, number: int, *arguments: Any) -> int:
        """Make a system call, or fail."""
        result = self._libc.syscall(ctypes.c_long(number), *arguments)
        if result < 0:
            fail(f"{what}: {os.strerror(ctypes.get_errno())}")
        return int(result)

    def prctl(self, what: str, *arguments: int) -> int:
        """Call prctl; a refusal is returned as a negative number."""
        return int(self._libc.prctl(*(ctypes.c_ulong(a) for a in arguments)))


def confine(spec: dict[str, Any]) -> None:
    """Drop all capabilities, and restrict files, TCP, signals and system calls."""
    kernel = Kernel()
    attributes = struct.pack("=QQQ", spec["handled"], spec["network"], spec["scoped"])[: spec["size"]]
    ruleset = kernel.call(
        "Landlock", CREATE, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    )
    for path, bits in spec["rules"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it vanished: then there is nothing to allow
            continue
        if not os.path.isdir(f"/proc/self/fd/{fd}"):
            bits &= FILE_BITS
        rule = ctypes.c_char_p(struct.pack("=Qi", bits & spec["handled"], fd))
        kernel.call(
            f"a rule for {path}",
            ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(PATH_BENEATH),
            rule,
            ctypes.c_uint32(0),
        )
        os.close(fd)
    if kernel.prctl("no new privileges", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        fail("no new privileges")
    drop_capabilities(kernel)
    kernel.call("Landlock", RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)
    if spec["filter"] is not None:
        filter_calls(kernel, base64.b64decode(spec["filter"]))


def drop_capabilities(kernel: Kernel) -> None:
    """Give up what root can do beyond being a user called root."""
    for capability in range(LAST_CAP + 1):
        kernel.prctl("bounding set", PR_CAPBSET_DROP, capability, 0, 0, 0)
    number = CAPSET.get(os.uname().machine)
    if number is None:
        return
    header = ctypes.c_char_p(struct.pack("=Ii", CAP_VERSION_3, 0))
    kernel.call("capabilities", number, header, ctypes.c_char_p(struct.pack("=6I", 0, 0, 0, 0, 0, 0)))


def filter_calls(kernel: Kernel, program: bytes) -> None:
    """Install a seccomp program."""
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, padding, a pointer.
    description = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    pointer = ctypes.create_string_buffer(description, len(description))
    if kernel.prctl("seccomp", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(pointer), 0, 0) != 0:
        fail("seccomp")


def confined(spec: dict[str, Any]) -> NoReturn:
    """Become the command, confined."""
    for name, value in spec["limits"]:
        limit = getattr(resource, name)
        if name == "RLIMIT_NPROC":  # it counts all processes of the user, and spares root
            value += processes_of_user()
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (least, least))
    confine(spec)
    try:
        os.execv(spec["argv"][0], spec["argv"])
    except OSError as error:
        fail(f"{spec['argv'][0]}: {error.strerror}")


def processes_of_user() -> int:
    """Return how many processes the user has now."""
    uid, count = os.geteuid(), 0
    with os.scandir("/proc") as names:
        for entry in names:
            if entry.name.isdecimal():
                try:
                    count += entry.stat().st_uid == uid
                except OSError:
                    continue
    return count


def children() -> list[int]:
    """Return the processes whose parent is this one, those that lost their own among them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def end_all() -> bool:
    """Kill every descendant: each that dies leaves its children to this process. Return whether there was any."""
    found = False
    while True:
        for pid in children():
            found = found or not ended(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return found


def ended(pid: int) -> bool:
    """Tell whether a process only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return True


def main() -> NoReturn:
    """Start the command in a child, wait for it, and let nothing outlive it."""
    kernel = Kernel()
    kernel.prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    kernel.prctl("death of the parent", PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        spec = json.loads(file.read())
    reports = spec["reports"]
    child = os.fork()
    if child == 0:
        os.close(reports)
        kernel.prctl("death of the parent", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        confined(spec)

    def stop(number: int, frame: object) -> None:
        end_all()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    for fd in (0, 1, 2):  # the pipe ends when the command lets go of it
        os.close(fd)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            break
    if end_all():
        os.write(reports, b"x")
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


if __name__ == "__main__":
    main()
