"""`agentsh apply`: bring what a session has changed back to where it came from."""

import os
from dataclasses import dataclass
from pathlib import Path

from agentsh.app.applying import Applied, apply, told
from agentsh.app.catalog import Place, check_plain, find
from agentsh.app.diffing import SessionDiff, destination, session_diff
from agentsh.app.paths import find_homes, here
from agentsh.app.rewinding import workspace_of
from agentsh.base.errors import NotTrusted, UsageProblem, WorkspaceError
from agentsh.base.text import clean, one_line
from agentsh.cli.guard import print_json


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The options of the command, as given."""

    session: str | None
    to: Path | None
    check: bool
    branch: bool
    json: bool


def run(options: ApplyOptions) -> int:
    """Do it; return 0, or 1 where nothing was changed because of conflicts."""
    place = find(find_homes(here(), os.environ), options.session)
    check_plain(place)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted: nothing of it is taken over", hint="`agentsh trust`")
    found = session_diff(place.home, place.id)
    root = destination(found.state, options.to and options.to.expanduser())
    if options.branch:
        return _branch(place, found, root, options)
    done = apply(found, root, check=options.check)
    _tell(done, options)
    return int(done.failed)


def _tell(done: Applied, options: ApplyOptions) -> None:
    what = done.plan
    if not options.json:
        print("\n".join(told(done, check=options.check)))
        return
    print_json({
        "to": str(done.root), "paths": [] if what.conflicts else what.paths, "merged": list(what.merged),
        "same": list(what.same), "conflicts": [c._asdict() for c in what.conflicts], "late": done.late,
        "applied": not (options.check or what.conflicts),
    })  # fmt: skip


def _branch(place: Place, found: SessionDiff, root: Path, options: ApplyOptions) -> int:
    from agentsh.workspace.git import GitFailed
    from agentsh.workspace.git_branch import hand_over

    kind = found.state.workspace.kind if found.state.workspace is not None else None
    if kind != "git":
        raise UsageProblem("the session has no repository of its own", hint="leave --branch out")
    if options.check:
        raise UsageProblem("--branch and --check do not go together", hint="a branch touches no file")
    workspace = workspace_of(place.home, place.id, found.state)
    title = one_line(found.state.title or f"agentsh session {place.id}", 72)
    try:
        branch, commit = hand_over(workspace, place.id, root, title)
    except (GitFailed, OSError) as error:
        raise WorkspaceError(f"the branch could not be made: {error}") from None
    if options.json:
        print_json({"to": str(root), "branch": branch, "commit": commit})
    else:
        print(f"{branch} is at {commit[:12]} in {clean(str(root))}; `git merge {branch}` takes it over")
    return 0
