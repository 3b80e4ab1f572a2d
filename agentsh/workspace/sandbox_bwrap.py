"""bubblewrap: commands see a read-only system, their workspace and a private /tmp; no processes, sockets and keys.

Measured (2 cores, Linux 6.18, bubblewrap 0.8): 4 to 6 ms for a command. Options: bwrap(1).
"""

import os
import stat
import subprocess
from collections.abc import Iterator, Sequence

from agentsh.workspace.launching import memory_file, on_path, ulimits
from agentsh.workspace.sandbox_port import Bounds, Found, Launch
from agentsh.workspace.seccomp import for_namespaces

BASH = "/bin/bash"
PROBE_S = 5.0
MAX_SOCKETS = 64
"""Listening sockets elsewhere in the file system that are covered one by one."""

_NAMESPACES = ["--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session"]
_HIDDEN_SYSTEM = ("/run",)
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "mtrr", "acpi")

# Tells on a descriptor that the command does not get whether it left processes behind.
_LOOK = (
    "code=$?; set -- /proc/[0-9]*; for p; do case $p in /proc/1|/proc/$$) ;; *) "
    'read -r _ _ s _ 2>/dev/null <"$p/stat" && [ "$s" != Z ] && {{ echo x >&{fd}; break; }};; esac; done; exit $code'
)


def probe() -> Found:
    """Run a command in a sandbox like the real one."""
    program = on_path("bwrap")
    if program is None:
        return Found(False, "bubblewrap is not installed")
    argv = [program, *_NAMESPACES, "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    try:
        done = subprocess.run(
            [*argv, "--tmpfs", "/tmp", "/bin/sh", "-c", "echo works"],
            capture_output=True,
            timeout=PROBE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Found(False, f"it does not run: {error}")
    if done.stdout.strip() == b"works":
        return Found(True, program)
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
    return Found(False, said or f"it fails with exit {done.returncode}")


class Bubblewrap:
    """Implements `sandbox_port.Sandbox` by bwrap(1)."""

    name = "bwrap"
    owns_processes = True
    guards = True

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._program = on_path("bwrap") or "bwrap"
        self._filter = for_namespaces()

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        """Return the command line; what is there to be hidden is looked for each time."""
        bounds = self._bounds
        reports, told = os.pipe()
        launch = Launch([], {"TMPDIR": "/tmp", "XDG_CACHE_HOME": "/tmp/.cache"}, [told], reports)
        line = [self._program, *_NAMESPACES]
        if bounds.network:
            line.append("--share-net")
        line += ["--cap-drop", "ALL", *mounts(bounds), "--chdir", cwd]
        if self._filter is not None:
            fd = memory_file(self._filter, "agentsh-seccomp")
            launch.pass_fds.append(fd)
            line += ["--seccomp", str(fd)]
        script = ulimits(bounds.limits)
        if os.path.exists(BASH):  # dash knows no descriptor above 9
            inner = [
                BASH,
                "-c",
                f'{script}exec 3>&2 2>/dev/null; "$@" 2>&3 3>&- {told}>&-; {_LOOK.format(fd=told)}',
                "agentsh",
            ]
        else:
            inner = ["/bin/sh", "-c", f'{script}exec "$@"', "agentsh"]
        launch.argv = [*line, "--unsetenv", "XDG_RUNTIME_DIR", "--", *inner, *argv]
        return launch


def mounts(bounds: Bounds) -> list[str]:
    """Return the options that lay out the file system: parents before what is in them, what is hidden last."""
    line = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    places: list[tuple[str, int, list[str]]] = []

    def put(path: str, rank: int, *options: str) -> None:
        places.append((path, rank, list(options)))

    # Root without any capability may still write settings of the kernel: file modes are all that guards them.
    for path in (f"/proc/{name}" for name in _KERNEL):
        put(path, 3, "--ro-bind-try", path, path)
    sealed = []
    for path in (*_HIDDEN_SYSTEM, *bounds.hidden):
        kind = _kind(path)
        if kind == "directory":
            put(path, 0, "--tmpfs", path)
            sealed.append(path)
        elif kind == "file":
            put(path, 4, "--ro-bind", "/dev/null", path)
    for path in _sockets(bounds):
        put(path, 4, "--ro-bind", "/dev/null", path)
    put("/tmp", 1, "--bind", bounds.tmp, "/tmp")
    if _kind("/var/tmp") == "directory":
        put("/var/tmp", 1, "--bind", bounds.tmp, "/var/tmp")
    for path in bounds.readable:
        put(path, 2, "--ro-bind-try", path, path)
    for path in (bounds.root, *bounds.writable):
        put(path, 3, "--bind-try" if path != bounds.root else "--bind", path, path)
    for path in bounds.guarded:
        if _kind(path) is not None:
            put(path, 3, "--ro-bind", path, path)
            parent = os.path.dirname(path)
            while len(parent) > len(bounds.root):  # a mount of its own cannot be moved out of the way
                put(parent, 3, "--bind", parent, parent)
                parent = os.path.dirname(parent)
    if bounds.network:
        resolver = os.path.realpath("/etc/resolv.conf")
        if resolver.startswith("/run/"):
            put(resolver, 2, "--ro-bind-try", resolver, resolver)
    for _, _, options in sorted(places, key=lambda place: (place[0].count("/"), place[1])):
        if options not in (line[i : i + len(options)] for i in range(len(line))):
            line += options
    for path in sealed:
        line += ["--remount-ro", path]
    return line


def _kind(path: str) -> str | None:
    """Return `directory`, `file` for all else, None where nothing is or where a link is: what it leads to counts."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return None
    return "directory" if stat.S_ISDIR(mode) else "file"


def _sockets(bounds: Bounds) -> Iterator[str]:
    """Yield listening sockets that a command could reach through the file system: docker, agents, databases.

    A read-only file system does not keep anybody from connecting. Source: /proc/net/unix, proc(5).
    """
    covered = ("/run/", "/tmp/", "/var/tmp/", "/proc/", "/dev/", *(path + "/" for path in bounds.hidden))
    allowed = tuple(path.rstrip("/") + "/" for path in (bounds.root, *bounds.writable))
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            rows = file.read().split("\n")[1:]
    except OSError:
        return
    found: dict[str, None] = {}
    for row in rows:
        parts = row.split(None, 7)
        if len(parts) == 8 and parts[7].startswith("/"):
            path = os.path.realpath(parts[7])
            if not path.startswith(covered + allowed) and os.path.exists(path):
                found[path] = None
    yield from list(found)[:MAX_SOCKETS]
