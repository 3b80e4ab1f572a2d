"""Makes the directory that a session works in: a clone, a copy, empty, or the user's own."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentsh.base.errors import WorkspaceError
from agentsh.base.ids import random_hex
from agentsh.base.light import dataclass
from agentsh.base.text import plural
from agentsh.log.depths import discard_tree
from agentsh.log.reserve import what_to_do
from agentsh.workspace.copy import Plan, TooMuch, copy, plan

if TYPE_CHECKING:
    from agentsh.events.session import WorkspaceKind
    from agentsh.workspace.git import Repository

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
MAX_NAMED = 10
PARTIAL = ".partial-"
ABANDONED_S = 3600
"""In the name of a copy that is not finished; one that a crash left behind is nobody's workspace."""

Progress = Callable[[int, int, int], None]
"""Called after each file: files so far, files in all, bytes so far."""


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A workspace that is ready. origin: what it was made from. note: one line for the user, or None.

    files, bytes: what was copied. base: the commit that a clone stands on. start: where commands begin, where that is
    not the root.
    """

    kind: "WorkspaceKind"
    origin: str | None
    path: Path
    note: str | None
    files: int = 0
    bytes: int = 0
    base: str | None = None
    start: str | None = None


def provision(
    target: Path,
    *,
    choice: Literal["auto", "from", "empty", "in-place"],
    source: Path,
    homes: Sequence[Path],
    progress: Progress | None = None,
) -> Provisioned:
    """Make `target` (0700), or use `source` itself for `in-place`. Nothing is left behind on failure.

    Inside a git repository with a commit it becomes a clone of that, with what is staged, changed and untracked.
    Elsewhere a copy: it leaves out ignored files, special files, and every home's own sessions and workspaces; links,
    modes, times and empty directories stay. A copy has at most 10,000 files and 200 MB (DESIGN section 8).
    source: the current directory, or what `--from` names. homes: all known homes.

    Raises:
        WorkspaceError: `from` names no directory, or too much; or the disk refused.
    """
    if choice == "in-place":
        if not source.is_dir():
            raise WorkspaceError(f"{source} is no directory")
        return Provisioned("in-place", str(source), source, f"working in place: changes go straight into {source}")
    if choice == "empty":
        return empty(target)
    if choice == "from" and not source.is_dir():
        what = "is no directory" if source.exists() else "does not exist"
        raise WorkspaceError(f"--from: {source} {what}", hint="name a directory, or use --empty")
    try:
        reason = _too_wide(source)
        if reason is None:
            repository = _repository(source)
            if repository is not None:
                return _cloned(target, source, repository, homes, progress)
            never = [target.parent, *(home / name for home in homes for name in HOMES_OWN)]
            return _copied(target, source, plan(source, never, MAX_FILES, MAX_BYTES), progress)
    except TooMuch as error:
        reason = f"it holds more than {error.limit} after ignored files were left out"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WorkspaceError(f"{source} could not be copied: {why}", hint=what_to_do(error)) from None
    if choice == "from":
        raise WorkspaceError(
            f"--from: {source} is not copied: {reason}",
            hint="name a smaller directory, extend .gitignore, or use --in-place",
        )
    return empty(target, f"the workspace starts empty: {source} was not copied, {reason}")


def _repository(source: Path) -> "Repository | None":
    """Return the repository around a directory where that is to be cloned.

    It has a commit, is no home directory, and does not ignore the directory.
    """
    if not any((place / ".git").exists() for place in (source, *source.parents)):
        return None
    from agentsh.workspace.git import available, find_repository, is_ignored

    found = find_repository(source) if available() else None
    if found is None or found.head is None or _too_wide(found.top) is not None or is_ignored(found):
        return None
    return found


def _cloned(
    target: Path, source: Path, repository: "Repository", homes: Sequence[Path], progress: Progress | None
) -> Provisioned:
    from agentsh.workspace.git import GitFailed
    from agentsh.workspace.git_clone import branch_of, clone

    never = [target.parent, *(home / name for home in homes for name in HOMES_OWN)]
    with _beside(target) as partial:
        try:
            made = clone(repository, partial, branch_of(target.name), never, progress)
        except GitFailed as error:
            raise WorkspaceError(
                f"{source} could not be cloned: {error}", hint="--in-place works in it, --empty without it"
            ) from None
        start = repository.prefix if repository.prefix and (partial / repository.prefix).is_dir() else None
    note = _left_out(made.remarks)
    origin = str(repository.top)
    return Provisioned("git", origin, target, note, made.files, made.bytes, base=made.base, start=start)


def empty(target: Path, note: str | None = None) -> Provisioned:
    """Make an empty workspace.

    Raises:
        WorkspaceError: the disk refused, or something of that name is there.
    """
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.mkdir(mode=0o700)
        target.chmod(0o700)
    except OSError as error:
        why = (error.strerror or "").lower()
        raise WorkspaceError(f"the workspace {target} could not be made: {why}", hint=what_to_do(error)) from None
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
    with _beside(target) as partial:
        unreadable = copy(source, partial, what, progress)
        _settle(source, partial, what)
    remarks = list(what.remarks)
    if unreadable:
        remarks.append(f"{plural(unreadable, 'file')} could not be read")
    note = _left_out(remarks)
    return Provisioned("copy", str(source), target, note, len(what.files) - unreadable, what.bytes)


def _left_out(remarks: Sequence[str]) -> str | None:
    if not remarks:
        return None
    more = f"; and {len(remarks) - MAX_NAMED:,} more" if len(remarks) > MAX_NAMED else ""
    return f"left out of the workspace: {'; '.join(remarks[:MAX_NAMED])}{more}"


def _settle(source: Path, target: Path, what: Plan) -> None:
    """Make repositories that were copied whole, as those without a commit, the session's own."""
    if any(".git" in directory.split("/") for directory in what.directories):
        from agentsh.workspace.git import available
        from agentsh.workspace.git_clone import settle_copied

        if available():
            settle_copied(source, target, what.files)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Give a directory beside the target that gets its name at the end: a crash leaves no half workspace there."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise WorkspaceError(f"the workspace {target} is there already")
    sweep(target.parent)
    partial = target.with_name(f".{target.name}{PARTIAL}{random_hex(4)}")
    try:
        partial.mkdir(mode=0o700)
        yield partial
        partial.chmod(0o700)
        partial.rename(target)
    except BaseException:
        discard(partial)
        raise


def sweep(parent: Path) -> None:
    """Remove half-made workspaces that a killed process left an hour ago or more."""
    for left in parent.glob(f".*{PARTIAL}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                discard(left)


def discard(partial: Path) -> None:
    """Remove a tree whose directories may already have modes that forbid it."""
    discard_tree(str(partial))
