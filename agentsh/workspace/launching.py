"""How programs are found and started: what the kinds of sandboxes, and commands without one, have in common."""

import os
from collections.abc import Sequence

from agentsh.workspace.sandbox_port import Limits


def on_path(name: str) -> str | None:
    """Return where a program is: `shutil.which`, which takes 2 ms to load."""
    places = (os.path.join(place, name) for place in os.get_exec_path())
    return next((path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def memory_file(data: bytes, name: str) -> int:
    """Return a descriptor of a nameless file that holds `data`, at its start."""
    fd = os.memfd_create(name)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def with_limits(limits: Limits, argv: Sequence[str]) -> list[str]:
    """Return `argv` behind a shell that sets the limits and becomes it. Hard limits: they cannot be raised again."""
    return ["/bin/sh", "-c", ulimits(limits) + 'exec "$@"', "agentsh", *argv]


def ulimits(limits: Limits) -> str:
    """Return the shell commands that set the limits; one that the system refuses is left out.

    File sizes are in blocks of 512 bytes in sh and of 1,024 in bash, whatever POSIX says: each is told in its own.
    """
    lines = ["ulimit -c 0 2>/dev/null; "]
    if limits.cpu_s:
        lines.append(f"ulimit -t {limits.cpu_s} 2>/dev/null; ")
    if limits.memory_mb:
        lines.append(f"ulimit -d {limits.memory_mb * 1024} 2>/dev/null; ")
    if limits.file_mb:
        blocks = limits.file_mb * 1024
        lines.append(
            f'if [ -n "$BASH_VERSION" ]; then ulimit -f {blocks}; else ulimit -f {blocks * 2}; fi 2>/dev/null; '
        )
    if limits.processes:
        lines.append(f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes} 2>/dev/null; ")
    return "".join(lines)
