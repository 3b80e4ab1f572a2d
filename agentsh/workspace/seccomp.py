"""Filters of system calls, as programs for the kernel: what namespaces and Landlock leave open.

Numbers: asm/unistd_64.h for x86_64, asm-generic/unistd.h for aarch64 (Linux 6.18). The program is that of
seccomp(2): a foreign architecture (32-bit calls among them) gets ENOSYS, a call of the table EPERM, all else passes.
"""

import errno
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
_ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

# name: (x86_64, aarch64)
NUMBERS = {
    "socket": (41, 198),
    "connect": (42, 203),
    "ioctl": (16, 29),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_CLONE_NEWUSER = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# Flags of a file, set through a descriptor that was opened for reading: FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS,
# FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY of linux/fs.h and linux/fsverity.h.
_FLAGGING = (0x40086602, 0x40046602, 0x401C5820, 0x40806685)

_KEYS = ("keyctl", "add_key", "request_key")
_KERNEL = ("bpf", "perf_event_open", "userfaultfd", "open_by_handle_at")
_RINGS = ("io_uring_setup", "io_uring_enter", "io_uring_register")
_ATTRIBUTES = (
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat",
    "removexattrat", "file_setattr",
)  # fmt: skip

MODES = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat", "chown", "lchown",
    "fchown", "fchownat",
)  # fmt: skip
"""Change modes, times and owners of files, for which Landlock has no right: the helper is asked, and makes them."""

# Which argument names the process: the first, or for two of them the second.
_OF_OTHERS = {
    "setpriority": 24, "ioprio_set": 24, "prlimit64": 16, "sched_setparam": 16, "sched_setscheduler": 16,
    "sched_setaffinity": 16, "sched_setattr": 16,
}  # fmt: skip

Instruction = tuple[int, int, int, int]
# struct sock_filter: code, jump if true, jump if false, operand. Codes: linux/filter.h.
_LOAD, _EQUAL, _MORE, _BITS, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x05
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; arguments are little-endian
_ALLOW, _ASK, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000


def for_namespaces() -> bytes | None:
    """Return the filter for commands in namespaces: kernel keyrings, odd sockets and input to a terminal are closed.

    io_uring too: it makes sockets of any family without a system call that a filter sees.

    None on a machine whose numbers are not known here.
    """
    return _program(_KEYS + _KERNEL + _RINGS, families=(AF_UNIX, AF_INET, AF_INET6, AF_NETLINK), new_users=True)


def for_landlock(*, network: bool) -> bytes | None:
    """Return the filter beside Landlock: no network (and no way to a socket of somebody else), owners, namespaces.

    None on a machine whose numbers are not known here.
    """
    calls = (
        *_KEYS, *_KERNEL, "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
        *_RINGS, "setns", "mount", "move_mount", "fsopen",
        "shmget", "msgget", "semget", "mq_open",
    )  # fmt: skip
    if network:
        families = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
        return _program(calls, families=families, new_users=False, own_only=_OF_OTHERS, asked=MODES)
    return _program((*calls, "connect"), families=(AF_UNIX,), new_users=False, own_only=_OF_OTHERS, asked=MODES)


def numbers_of(names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of calls on this machine; those that it does not have are left out."""
    column = 0 if _ARCHITECTURES.get(platform.machine()) == X86_64 else 1
    return {name: NUMBERS[name][column] for name in names if NUMBERS[name][column] >= 0}


def _program(
    calls: Iterable[str],
    *,
    families: Sequence[int],
    new_users: bool,
    own_only: Mapping[str, int] = MappingProxyType({}),
    asked: Iterable[str] = (),
) -> bytes | None:
    """Return a filter. own_only: calls with the place of an argument that must be 0, which means the caller.

    asked: calls that whoever listens to the filter decides about.
    """
    arch = _ARCHITECTURES.get(platform.machine())
    if arch is None or struct.pack("=H", 1) != b"\1\0":
        return None
    column = 0 if arch == X86_64 else 1
    deny = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    missing = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
    unsupported = (_RETURN, 0, 0, _ERRNO | errno.ENOTSUP)  # what `cp -p` takes for a file system without them
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch),
        missing,
        (_LOAD, 0, 0, _NUMBER),
    ]
    if arch == X86_64:
        code += [(_MORE, 0, 1, 0x40000000), missing]  # the x32 calls
    for name in calls:
        if NUMBERS[name][column] >= 0:
            code += [(_EQUAL, 0, 1, NUMBERS[name][column]), deny]
    for asks in numbers_of(asked).values():
        code += [(_EQUAL, 0, 1, asks), (_RETURN, 0, 0, _ASK)]
    number = {name: numbers[column] for name, numbers in NUMBERS.items()}
    if not new_users:
        for name in _ATTRIBUTES:
            code += [(_EQUAL, 0, 1, number[name]), unsupported]
        # glibc falls back to clone, whose flags can be looked at, where there is no clone3.
        code += [(_EQUAL, 0, 1, number["clone3"]), missing]
        for call in ("clone", "unshare"):
            code += _when(number[call], [(_LOAD, 0, 0, _FIRST), (_BITS, 0, 1, _CLONE_NEWUSER), deny])
    for call, at in own_only.items():
        code += _when(number[call], [(_LOAD, 0, 0, at), (_EQUAL, 1, 0, 0), deny])
    closed = (_TIOCSTI, _TIOCLINUX, *(() if new_users else _FLAGGING))  # namespaces have read-only mounts instead
    refused = [(_EQUAL, len(closed) - i, 0, request) for i, request in enumerate(closed)]
    code += _when(number["ioctl"], [(_LOAD, 0, 0, _SECOND), *refused, (_JUMP, 0, 0, 1), deny])
    allowed = [(_EQUAL, len(families) - i, 0, family) for i, family in enumerate(families)]
    code += _when(number["socket"], [(_LOAD, 0, 0, _FIRST), *allowed, deny])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Return a piece of program that looks at the arguments of one call; past it the number is loaded again."""
    return [(_EQUAL, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER)]
