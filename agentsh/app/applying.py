"""Bringing back what a session has changed, and telling of it: what `agentsh apply` and `/apply` have in common."""

from pathlib import Path
from typing import NamedTuple

from agentsh.app.diffing import SessionDiff
from agentsh.base.text import clean, plural
from agentsh.workspace.applying import Plan, carry_out, plan

MOST_NAMED = 200
"""Of the paths that were changed."""


class Applied(NamedTuple):
    """What was done in `root`. late: paths that somebody changed at the last moment, and that were left alone."""

    root: Path
    plan: Plan
    late: list[str]

    @property
    def failed(self) -> bool:
        """Whether something was left alone."""
        return bool(self.plan.conflicts or self.late)


def apply(found: SessionDiff, root: Path, *, check: bool) -> Applied:
    """Bring the changes to `root`: all of them, or, where one is in the way, none. check: only look.

    Raises:
        WorkspaceError, LogWriteFailed: as `workspace.applying` says.
    """
    with found.blobs.writing():
        what = plan(root, found.blobs, found.changes, found.after, found.taken.since(root))
        if check or what.conflicts:
            return Applied(root, what, [])
        late = carry_out(root, found.blobs, what)
        if not late:  # what was left alone is not there, and must not be taken for it the next time
            found.taken.note(root)
    return Applied(root, what, late)


def _verb(what: Plan, path: str) -> str:
    """Return what is done to a path: A(dded), M(odified), D(eleted)."""
    if path not in what.target:
        return "D"
    return "M" if path in what.now else "A"


def told(done: Applied, *, check: bool) -> list[str]:
    """Return what was done, in lines."""
    what, place, lines = done.plan, clean(str(done.root)), []
    for conflict in what.conflicts:
        lines.append(clean(f"conflict: {conflict.path}: {conflict.why}"))
        lines += [f"  {hunk}" for hunk in conflict.hunks]
    lines += [clean(f"merged with your changes: {path}") for path in what.merged]
    lines += [clean(f"left alone, changed just now: {path}") for path in done.late]
    if what.conflicts:
        return [*lines, f"nothing was changed in {place}"]
    paths = [path for path in what.paths if path not in done.late]
    lines += [clean(f"{_verb(what, path)} {path}") for path in paths[:MOST_NAMED]]
    lines += [f"… and {len(paths) - MOST_NAMED:,} more"] if len(paths) > MOST_NAMED else []
    if check:
        return [*lines, f"{plural(len(what.paths), 'path')} would change in {place}"]
    return [*lines, f"{plural(len(paths), 'path')} changed in {place}"]
