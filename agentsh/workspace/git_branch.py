"""Brings a session's work into its origin as a branch, to be merged with git: no file there is touched."""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from agentsh.workspace.git import GitFailed, git
from agentsh.workspace.git_clone import branch_of

_REF = "refs/agentsh/handed-over"


def hand_over(workspace: Path, session: str, to: Path, message: str) -> tuple[str, str]:
    """Make or move the branch `agentsh/ID` of the repository `to`; return its name and commit.

    What the session has not committed is put into one more commit, ignored files left out. Its own index stays.

    Raises:
        GitFailed: git refuses; in `to`, only a branch that is checked out there is refused.
        OSError: git could not be started.
    """
    commit = _all_of_it(workspace, message)
    branch = branch_of(session)
    git(workspace, "update-ref", _REF, commit)
    try:
        git(
            to,
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            str(workspace),
            f"+{_REF}:refs/heads/{branch}",
        )
    finally:
        with suppress(GitFailed):
            git(workspace, "update-ref", "-d", _REF)
    return branch, commit


def _all_of_it(workspace: Path, message: str) -> str:
    """Return a commit of everything in a workspace: HEAD itself where nothing differs from it."""
    inner = workspace / ".git"
    index = inner / f"agentsh-{secrets.token_hex(4)}.index"
    shutil.copyfile(inner / "index", index)
    more = {"GIT_INDEX_FILE": str(index)}
    try:
        git(workspace, "add", "--all", more=more)
        tree = git(workspace, "write-tree", more=more).decode().strip()
    finally:
        index.unlink(missing_ok=True)
    head = git(workspace, "rev-parse", "HEAD").decode().strip()
    if git(workspace, "rev-parse", "HEAD^{tree}").decode().strip() == tree:
        return head
    names = {} if _has_name(workspace) else {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "agentsh"), ("EMAIL", "agentsh@localhost"))
    }  # fmt: skip
    made = git(workspace, "commit-tree", tree, "-p", head, stdin=os.fsencode(message + "\n"), more=names)
    return made.decode().strip()


def _has_name(workspace: Path) -> bool:
    try:
        git(workspace, "var", "GIT_COMMITTER_IDENT")
    except GitFailed:
        return False
    return True
