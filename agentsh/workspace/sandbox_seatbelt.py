"""Seatbelt: `sandbox-exec` of macOS with a profile. Only the profile's text is tested where this is developed."""

import os
import subprocess
import sys
from collections.abc import Sequence

from agentsh.workspace.launching import on_path, with_limits
from agentsh.workspace.sandbox_port import Bounds, Found, Launch

PROBE_S = 5.0


def probe() -> Found:
    """Run a command under a profile that allows it."""
    if sys.platform != "darwin":
        return Found(False, "only macOS has it")
    program = on_path("sandbox-exec")
    if program is None:
        return Found(False, "sandbox-exec is not there")
    try:
        done = subprocess.run(
            [program, "-p", "(version 1)(allow default)", "/usr/bin/true"],
            timeout=PROBE_S,
            check=False,
            capture_output=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Found(False, f"it does not run: {error}")
    return Found(done.returncode == 0, program if done.returncode == 0 else "sandbox-exec refuses")


class Seatbelt:
    """Implements `sandbox_port.Sandbox` by sandbox-exec(1)."""

    name = "seatbelt"
    owns_processes = False
    guards = True

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        """Return the command line."""
        line = ["/usr/bin/sandbox-exec", "-p", profile(self._bounds), *with_limits(self._bounds.limits, argv)]
        return Launch(line, {"TMPDIR": self._bounds.tmp})


def profile(bounds: Bounds) -> str:
    """Return the profile: later rules win, so what is hidden stands after what may be read, the workspace last."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork sysctl-read mach-lookup ipc-posix-sem ipc-posix-shm)",
        "(allow signal (target same-sandbox))",
        "(allow file-read* file-test-existence)",
        '(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))',
    ]
    if bounds.network:
        lines += ["(allow network*)"]
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in bounds.hidden]
    lines += [f"(allow file-read* (subpath {_quoted(path)}))" for path in bounds.readable]
    for path in (bounds.root, bounds.tmp, *bounds.writable):
        lines.append(f"(allow file-read* file-write* (subpath {_quoted(path)}))")
    lines += [f"(deny file-write* (subpath {_quoted(path)}))" for path in bounds.guarded]
    above = dict.fromkeys(os.path.dirname(path) for path in bounds.guarded)  # else they are moved with all in them
    lines += [f"(deny file-write-unlink (literal {_quoted(path)}))" for path in above if path != bounds.root]
    within = [path for path in bounds.hidden if _inside(path, bounds.root)]
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in within]
    return "\n".join(lines) + "\n"


def _inside(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/") and os.path.isabs(path)


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
