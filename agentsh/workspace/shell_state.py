"""Keeps directory and exported variables of one command for the next one.

The command runs in a bash that tells at its end, into a nameless file of fixed size, where it is and what it
exports. Nothing is read from its output. What it tells is a wish only: the directory has to be in the workspace, and
names that look like secrets, or that only this machinery sets, are left out. Variables are set by that bash itself,
inside the sandbox: they never are in the environment of what makes the sandbox.

Not kept: variables that are not exported, functions, aliases, options; and nothing at all of a command that replaces
the shell (`exec`), sets an EXIT trap of its own, or is ended by a signal.
"""

import fcntl
import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from agentsh.base.pattern import later
from agentsh.workspace.environ import is_secret

BASH = "/bin/bash"
MAX_REPORT_BYTES = 256 * 1024
"""Of directory and environment; a command with more tells nothing."""
MAX_EXPORTS = 100
MAX_VALUE_BYTES = 4_000
MAX_EXPORTS_BYTES = 12_000
"""Of all names and values in JSON, so that the event stays in its line."""
_FROM_FD = 100
# Below it a command may want descriptors of its own: `exec 3>file`.

_NAME = later(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Of the shell itself, of this machinery, or read-only.
_OURS = later(
    r"_|PWD|OLDPWD|CDPATH|SHLVL|IFS|PS[0-4]|PPID|UID|EUID|SHELLOPTS|BASH.*|ENV|PROMPT_COMMAND|XDG_RUNTIME_DIR"
    r"|GIT_CEILING_DIRECTORIES|AGENTSH_.*"
)
_TELL = (
    '{{ {{ builtin set +eux; {{ builtin pwd -P || builtin printf "%s\\n" "$PWD"; }} && builtin printf "\\0" && '
    '/usr/bin/env -0 && builtin printf "=end\\0"; }} >&{fd}; }} 2>/dev/null'
)
# pwd fails where the directory is gone; then its name is told.
_END = b"\0=end\0"
# No variable has an empty name. Without it the report was cut, by the size of the file or by a signal.


class Told(NamedTuple):
    """What a command told at its end. directory: absolute. environment: all that it exports."""

    directory: str
    environment: dict[str, str]


class Report:
    """The file that one command tells into. fd: for the command; close it when the command has ended."""

    def __init__(self) -> None:
        self.fd = _file()

    def read(self) -> Told | None:
        """Return what was told, None where it is not whole. Closes the file."""
        if self.fd < 0:
            return None
        fd, self.fd = self.fd, -1
        try:
            data = os.pread(fd, MAX_REPORT_BYTES, 0)
        except OSError:
            return None
        finally:
            os.close(fd)
        return _parsed(data)


@cache
def has_bash() -> bool:
    """Tell whether there is a bash; a plain sh keeps nothing."""
    return os.path.exists(BASH)


def kept_by(command: str, exports: Mapping[str, str | None], fd: int) -> list[str]:
    """Return the command line of a bash that sets `exports`, runs `command`, and tells into `fd` at its end.

    No program that the command starts inherits the descriptor: bash keeps only a copy that is closed on exec.
    """
    plain = {name: value for name, value in exports.items() if _may_be_kept(name)}
    lines = [f"builtin export {name}={shlex.quote(value)}" for name, value in plain.items() if value is not None]
    lines += [f"builtin unset -v {name}" for name, value in plain.items() if value is None]
    lines = [line + " 2>/dev/null" for line in lines]
    lines.append(f"trap -- {shlex.quote(_TELL.format(fd=fd))} EXIT")
    return [BASH, "-c", "; ".join([*lines, f"builtin eval {shlex.quote(command)} {fd}>&-"])]


def exports_of(
    environment: Mapping[str, str], began_with: Mapping[str, str]
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return what a command exports beyond what every command begins with, and the names that are not kept."""
    found: dict[str, str | None] = {}
    not_kept = []
    size = 0
    for name in sorted({*environment, *began_with}):
        value = environment.get(name)
        if value == began_with.get(name) or not _may_be_kept(name):
            continue
        cost = len(json.dumps([name, value]))
        secret = value is not None and is_secret(name, value)
        fits = len(found) < MAX_EXPORTS and cost <= MAX_VALUE_BYTES and size + cost <= MAX_EXPORTS_BYTES
        if secret or not fits:
            not_kept.append(name)
            continue
        found[name] = value
        size += cost
    return found, tuple(not_kept)


def _may_be_kept(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and _OURS.fullmatch(name) is None


def _parsed(data: bytes) -> Told | None:
    whole, end, _ = data.partition(_END)
    if not end:
        return None
    directory, *entries = whole.split(b"\0")
    pairs = [entry.partition(b"=") for entry in entries]
    return Told(
        os.fsdecode(directory.removesuffix(b"\n")),
        {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if equals},
    )


def _file() -> int:
    """Return a descriptor of a nameless file that, where the system can say so, stays within MAX_REPORT_BYTES."""
    if hasattr(os, "memfd_create"):
        low = os.memfd_create("agentsh-shell", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(low, MAX_REPORT_BYTES)
        with suppress(OSError):
            fcntl.fcntl(low, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    else:
        import tempfile

        low, name = tempfile.mkstemp()
        os.unlink(name)
    try:
        return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FROM_FD)
    finally:
        os.close(low)
