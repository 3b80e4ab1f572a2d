"""Runs a command confined by Landlock and seccomp, and ends what it leaves behind. A program of its own.

    python -I -S landlock_exec.py FD

FD holds a JSON object: `argv`; `rules`, a list of [path, access bits]; `handled` and `network`, access bits that are
denied unless a rule allows them; `size`, of what the kernel is told; `scoped`; `filter`, a seccomp program in base64
or null; `limits`, pairs of the name of a resource limit and its value; `reports`, a descriptor that is written to
where processes were left; `modes`, the numbers of calls that the filter leaves to this helper, which makes them where
the file is below a path of `writable` and none of `hidden`. It imports nothing of agentsh, so that it starts in some
10 ms. Whatever it cannot do ends it with exit 126 before the command runs: a command is never run unconfined by it.

Sources: landlock(7), seccomp(2), capabilities(7); the system calls 444 to 446 have these numbers everywhere.
"""

import _thread
import base64
import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any, NoReturn

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
PATH_BENEATH = 1
VERSION_FLAG = 1
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SECCOMP = {"x86_64": 317, "aarch64": 277}
UTIMENSAT, FCHOWNAT = {"x86_64": 280, "aarch64": 88}, {"x86_64": 260, "aarch64": 54}
# Calls whose first argument is a directory, and where those that have flags have them.
WITH_DIRECTORY = ("fchmodat", "fchmodat2", "utimensat", "futimesat", "fchownat")
FLAGS = {"fchmodat2": 3, "utimensat": 3, "fchownat": 4}
SET_FILTER = 1
NEW_LISTENER, WAIT_KILLABLE = 1 << 3, 1 << 5
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
OWN = {
    "/proc/self": "", "/proc/thread-self": "", "/dev/fd": "/fd", "/dev/stdin": "/fd/0", "/dev/stdout": "/fd/1",
    "/dev/stderr": "/fd/2",
}  # fmt: skip
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
PATH_MAX = 4096
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

    def tried(self, number: int, *arguments: Any) -> int:
        """Make a system call; return its result, or the error as a negative number."""
        result = self._libc.syscall(ctypes.c_long(number), *arguments)
        return int(result) if result >= 0 else -ctypes.get_errno()

    def ioctl(self, fd: int, request: int, argument: Any) -> bool:
        """Tell whether an ioctl succeeded."""
        return int(self._libc.ioctl(ctypes.c_int(fd), ctypes.c_ulong(request), argument)) == 0

    def prctl(self, what: str, *arguments: int) -> int:
        """Call prctl; a refusal is returned as a negative number."""
        return int(self._libc.prctl(*(ctypes.c_ulong(a) for a in arguments)))


def confine(spec: dict[str, Any], listener: socket.socket) -> None:
    """Drop all capabilities, and restrict files, TCP, signals and system calls. listener: is sent the filter's."""
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
        filter_calls(kernel, base64.b64decode(spec["filter"]), listener)


def drop_capabilities(kernel: Kernel) -> None:
    """Give up what root can do beyond being a user called root."""
    for capability in range(LAST_CAP + 1):
        kernel.prctl("bounding set", PR_CAPBSET_DROP, capability, 0, 0, 0)
    number = CAPSET.get(os.uname().machine)
    if number is None:
        return
    header = ctypes.c_char_p(struct.pack("=Ii", CAP_VERSION_3, 0))
    kernel.call("capabilities", number, header, ctypes.c_char_p(struct.pack("=6I", 0, 0, 0, 0, 0, 0)))


def filter_calls(kernel: Kernel, program: bytes, listener: socket.socket) -> None:
    """Install a seccomp program, and send away what hears of the calls that it asks about."""
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, padding, a pointer.
    description = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    pointer = ctypes.create_string_buffer(description, len(description))
    number, flags = SECCOMP.get(os.uname().machine, -1), NEW_LISTENER | WAIT_KILLABLE
    fd = kernel.call("seccomp", number, ctypes.c_uint(SET_FILTER), ctypes.c_uint(flags), pointer)
    socket.send_fds(listener, [b"x"], [fd])
    os.close(fd)
    listener.close()


class Modes:
    """Makes the calls that change modes, times and owners of files, in place of a command, where it may write."""

    def __init__(self, kernel: Kernel, spec: dict[str, Any], listener: int) -> None:
        self._kernel = kernel
        self._listener = listener
        self._names = {number: name for name, number in spec["modes"].items()}
        self._inside = tuple(path.rstrip("/") + "/" for path in spec["writable"])
        self._hidden = tuple(path.rstrip("/") + "/" for path in spec["hidden"])

    def serve(self) -> None:
        """Answer until nobody is left who could ask."""
        while True:
            asked = ctypes.create_string_buffer(80)
            if not self._kernel.ioctl(self._listener, RECEIVE, asked):
                if ctypes.get_errno() in (errno.ENOENT, errno.EINTR):  # who asked is gone
                    continue
                return
            number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", asked.raw)
            try:
                error = self._made(number, pid, self._names[call], arguments)
            except OSError as problem:
                error = problem.errno or errno.EPERM
            except (KeyError, ValueError, struct.error):
                error = errno.EPERM
            self._kernel.ioctl(
                self._listener, SEND, ctypes.create_string_buffer(struct.pack("=QqiI", number, 0, -error, 0))
            )

    def _made(self, number: int, pid: int, name: str, arguments: list[int]) -> int:
        """Make a call for process `pid`; return its error, 0 for none."""
        by_fd, at, flags = name in ("fchmod", "fchown"), name in WITH_DIRECTORY, 0
        if name in FLAGS:
            flags = arguments[FLAGS[name]]
        place = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value if at or by_fd else AT_FDCWD
        rest, path = arguments[2 if at else 1 :], ""
        if name in ("utimensat", "futimesat") and arguments[1] == 0:  # of the descriptor itself
            by_fd = True
        if not by_fd:
            path = os.fsdecode(self._text(pid, arguments[int(at)]))
            if not path and not flags & AT_EMPTY_PATH:
                return errno.ENOENT
        times = None if name.endswith(("mod", "modat", "modat2", "own", "ownat")) else self._times(pid, name, rest[0])
        fd = self._opened(pid, place, path, follow=not flags & AT_SYMLINK_NOFOLLOW and name != "lchown")
        try:
            if not self._kernel.ioctl(self._listener, IS_VALID, ctypes.byref(ctypes.c_uint64(number))):
                return errno.ESRCH  # its number may be somebody else's by now
            if not self._may(os.readlink(f"/proc/self/fd/{fd}")):
                return errno.EPERM
            if "mod" in name:
                os.chmod(f"/proc/self/fd/{fd}", rest[0] & 0o7777)
                return 0
            if "own" in name:
                return self._empty(FCHOWNAT, fd, *(ctypes.c_uint(each & 0xFFFFFFFF) for each in rest[:2]))
            return self._empty(UTIMENSAT, fd, times)
        finally:
            os.close(fd)

    def _empty(self, numbers: dict[str, int], fd: int, *arguments: Any) -> int:
        """Make a call for an open file itself; return its error."""
        empty, flag = ctypes.c_char_p(b""), ctypes.c_int(AT_EMPTY_PATH)
        return -self._kernel.tried(numbers[os.uname().machine], ctypes.c_int(fd), empty, *arguments, flag)

    def _may(self, path: str) -> bool:
        """Tell whether a file may be changed: below what is writable, or nowhere (a pipe, memory)."""
        if not path.startswith("/") or path.startswith("/memfd:"):
            return True
        return (path + "/").startswith(self._inside) and not (path + "/").startswith(self._hidden)

    @staticmethod
    def _opened(pid: int, place: int, path: str, *, follow: bool) -> int:
        """Open what a path means for a process, without a right to it. Of those in OWN it is its own."""
        for own, its in OWN.items():
            if path == own or path.startswith(own + "/"):
                path = f"/proc/{pid}{its}" + path[len(own) :]
                break
        base = f"/proc/{pid}/cwd" if place == AT_FDCWD else f"/proc/{pid}/fd/{place}"
        if not path.startswith("/") and not os.path.lexists(base):
            raise OSError(errno.EBADF, "")
        where = path if path.startswith("/") else f"{base}/{path}" if path else base
        return os.open(where, os.O_PATH | os.O_CLOEXEC | (0 if follow or not path else os.O_NOFOLLOW))

    @staticmethod
    def _memory(pid: int, address: int, size: int) -> bytes:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, size, address)
        except OSError:
            raise OSError(errno.EFAULT, "") from None
        finally:
            os.close(fd)

    def _text(self, pid: int, address: int) -> bytes:
        """Return the text at an address; read up to the ends of pages, the next of which may not be there."""
        found = b""
        while b"\0" not in found:
            if len(found) > PATH_MAX:
                raise OSError(errno.ENAMETOOLONG, "")
            end = address + len(found)
            piece = self._memory(pid, end, 4096 - end % 4096)
            if not piece:
                raise OSError(errno.EFAULT, "")
            found += piece
        return found.partition(b"\0")[0]

    def _times(self, pid: int, name: str, address: int) -> Any:
        """Return the two times of a call as utimensat(2) takes them; None means now."""
        if address == 0:
            return None
        if name == "utime":
            first, second = struct.unpack("=qq", self._memory(pid, address, 16))
            return ctypes.create_string_buffer(struct.pack("=4q", first, 0, second, 0))
        raw = self._memory(pid, address, 32)
        if name == "utimensat":
            return ctypes.create_string_buffer(raw)
        a, a_us, b, b_us = struct.unpack("=4q", raw)
        return ctypes.create_string_buffer(struct.pack("=4q", a, a_us * 1000, b, b_us * 1000))


def listen(kernel: Kernel, spec: dict[str, Any], near: socket.socket) -> None:
    """Take what hears of calls from the child, and answer them in a thread that has no capabilities."""
    with contextlib.suppress(OSError):
        _, found, _, _ = socket.recv_fds(near, 1, 1)
        try:
            drop_capabilities(kernel)
            Modes(kernel, spec, found[0]).serve()
        finally:  # without it nobody waits: such calls are then not there
            os.close(found[0])


def confined(spec: dict[str, Any], listener: socket.socket) -> NoReturn:
    """Become the command, confined."""
    for name, value in spec["limits"]:
        limit = getattr(resource, name)
        if name == "RLIMIT_NPROC":  # it counts all processes of the user, and spares root
            value += processes_of_user()
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (least, least))
    confine(spec, listener)
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
    near, far = socket.socketpair()
    child = os.fork()
    if child == 0:
        os.close(reports)
        near.close()
        kernel.prctl("death of the parent", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        confined(spec, far)
    far.close()
    _thread.start_new_thread(listen, (kernel, spec, near))

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
