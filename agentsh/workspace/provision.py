"""Makes the directory that a session works in: empty, a copy, or the user's own."""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentsh.base.errors import WorkspaceError
from agentsh.base.text import plural
from agentsh.workspace.copy import Plan, TooMuch, copy, plan

if TYPE_CHECKING:
    from agentsh.events.session import WorkspaceKind

MAX_FILES = 10_000
MAX_BYTES = 200_000_000
HOMES_OWN = (
    "sessions",
    "workspaces",
    "blobs",
    "trash",
    "incoming",
    "index.db",
    "index.db-wal",
    "index.db-shm",
    "history",
)
"""What stands in a home and belongs to other sessions."""
PARTIAL = ".partial-"
ABANDONED_S = 3600
"""In the name of a copy that is not finished; one that a crash left behind is nobody's workspace."""

Progress = Callable[[int, int, int], None]
"""Called after each file: files so far, files in all, bytes so far."""


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A workspace that is ready. origin: what it was made from. note: one line for the user, or None.

    files, bytes: what was copied.
    """

    kind: "WorkspaceKind"
    origin: str | None
    path: Path
    note: str | None
    files: int = 0
    bytes: int = 0


def provision(
    target: Path,
    *,
    choice: Literal["auto", "from", "empty", "in-place"],
    source: Path,
    homes: Sequence[Path],
    progress: Progress | None = None,
) -> Provisioned:
    """Make `target` (0700), or use `source` itself for `in-place`. Nothing is left behind on failure.

    A copy leaves out ignored files, special files, and every home's own sessions and workspaces; links, modes,
    times and empty directories stay. At most 10,000 files and 200 MB (DESIGN section 8).
    source: the current directory, or what `--from` names. homes: all known homes.

    Raises:
        WorkspaceError: `from` names no directory, or too much; or the disk refused.
    """
    if choice == "in-place":
        if not source.is_dir():
            raise WorkspaceError(f"{source} is no directory")
        return Provisioned("in-place", str(source), source, f"working in place: changes go straight into {source}")
    if choice == "empty":
        return _empty(target, None)
    if choice == "from" and not source.is_dir():
        what = "is no directory" if source.exists() else "does not exist"
        raise WorkspaceError(f"--from: {source} {what}", hint="name a directory, or use --empty")
    try:
        reason = _too_wide(source)
        if reason is None:
            never = [target.parent, *(home / name for home in homes for name in HOMES_OWN)]
            return _copied(target, source, plan(source, never, MAX_FILES, MAX_BYTES), progress)
    except TooMuch as error:
        reason = f"it holds more than {error.limit} after ignored files were left out"
    except OSError as error:
        raise WorkspaceError(f"{source} could not be copied: {(error.strerror or str(error)).lower()}") from None
    if choice == "from":
        raise WorkspaceError(
            f"--from: {source} is not copied: {reason}",
            hint="name a smaller directory, extend .gitignore, or use --in-place",
        )
    return _empty(target, f"the workspace starts empty: {source} was not copied, {reason}")


def _empty(target: Path, note: str | None) -> Provisioned:
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.mkdir(mode=0o700)
        target.chmod(0o700)
    except OSError as error:
        raise WorkspaceError(f"the workspace {target} could not be made: {(error.strerror or '').lower()}") from None
    return Provisioned("empty", None, target, note)


def _too_wide(source: Path) -> str | None:
    """Return why a directory is not copied whatever its size: it is a home directory, or above one."""
    real = source.resolve()
    if real == real.parent:
        return "it is the root of the file system"
    for home in _home_directories():
        if real == home:
            return "it is a home directory"
        if real in home.parents:
            return "it holds home directories"
    return None


def _home_directories() -> set[Path]:
    import pwd

    homes = {Path(os.path.expanduser("~"))}
    with suppress(KeyError):  # a user without an entry, as in containers
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return {home.resolve() for home in homes if home != Path("/")}


def _copied(target: Path, source: Path, what: Plan, progress: Progress | None) -> Provisioned:
    """Copy beside the target, then rename, so that a crash leaves no half workspace under its name."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise WorkspaceError(f"the workspace {target} is there already")
    _sweep(target.parent)
    partial = target.with_name(f".{target.name}{PARTIAL}{secrets.token_hex(4)}")
    try:
        partial.mkdir(mode=0o700)
        unreadable = copy(source, partial, what, progress)
        partial.chmod(0o700)
        partial.rename(target)
    except BaseException:
        _remove(partial)
        raise
    remarks = list(what.remarks)
    if unreadable:
        remarks.append(f"{plural(unreadable, 'file')} could not be read")
    note = f"left out of the workspace: {'; '.join(remarks)}" if remarks else None
    return Provisioned("copy", str(source), target, note, len(what.files) - unreadable, what.bytes)


def _sweep(parent: Path) -> None:
    """Remove half-made workspaces that a killed process left an hour ago or more."""
    for left in parent.glob(f".*{PARTIAL}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                _remove(left)


def _remove(partial: Path) -> None:
    """Remove a tree whose directories may already have modes that forbid it."""
    for directory, _, _ in os.walk(partial):
        os.chmod(directory, 0o700)
    shutil.rmtree(partial, ignore_errors=True)
