"""Brings a session's work into its origin as a branch, to be merged with git: no file there is touched."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentsh.base.ids import random_hex
from agentsh.base.text import one_line
from agentsh.workspace.git import GitFailed, fields, git
from agentsh.workspace.git_clone import branch_of
from agentsh.workspace.git_names import LOST_FILTER

_REF = "refs/agentsh/handed-over"
_RUNS = re.compile(
    r"filter\..*\.(clean|process)|remote\..*\.(promisor|uploadpack|vcs)|protocol\..*|extensions\.partialclone"
    r"|core\.(sshcommand|gitproxy|alternaterefscommand|worktree)",
    re.DOTALL | re.IGNORECASE,
)


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


def _refuse_filters(workspace: Path) -> None:
    """Raise GitFailed where the workspace's own configuration names filters: git would run them, in no sandbox.

    A clone begins without any: that of LFS stands in the user's configuration.
    """
    said = fields(git(workspace, "config", "-z", "--show-scope", "--name-only", "--list"))
    for scope, name in zip(said[::2], said[1::2], strict=True):
        if scope in ("local", "worktree") and _RUNS.fullmatch(name):
            raise GitFailed(
                f"the workspace's own configuration has {one_line(name, 100)}, a program that git would run outside "
                "of the sandbox; unset it there, or use apply without --branch"
            )


def _all_of_it(workspace: Path, message: str) -> str:
    """Return a commit of everything in a workspace: HEAD itself where nothing differs from it."""
    _refuse_filters(workspace)
    inner = workspace / ".git"
    index = inner / f"agentsh-{random_hex(4)}.index"
    shutil.copyfile(inner / "index", index)
    more = {"GIT_INDEX_FILE": str(index)}
    try:
        _add_all(workspace, more)
        tree = git(workspace, "write-tree", more=more).decode().strip()
    finally:
        index.unlink(missing_ok=True)
    _refuse_unfiltered(workspace, tree)
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


def _refuse_unfiltered(workspace: Path, tree: str) -> None:
    """Raise GitFailed where a file that goes through a filter of the origin's own configuration would go without."""
    try:
        lost = fields(git(workspace, "config", "-z", "--local", "--get-all", LOST_FILTER))
    except GitFailed:  # there is no such setting
        return
    paths = git(workspace, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d", "HEAD", tree)
    said = fields(git(workspace, "check-attr", "-z", "--stdin", "filter", stdin=paths))
    for path, name in zip(said[::3], said[2::3], strict=True):
        if name in lost:
            raise GitFailed(
                f"{one_line(path, 100)} goes through the filter {one_line(name, 40)}, which is in the configuration "
                "of your repository alone; use apply without --branch, and commit there"
            )


def _add_all(workspace: Path, more: Mapping[str, str]) -> None:
    """Put everything into the index, of repositories inside it the commit.

    `git add` would run `git status` in those, and that the programs that their configuration names: they may be the
    session's own. No setting keeps it from that for sure, so they are left out of it.
    """
    root = workspace.resolve()
    inner = [p for p in _links(root, more) if (root / p).resolve() == root / p and os.path.lexists(root / p / ".git")]
    wanted = [":(top)", *(f":(top,exclude,literal){path}" for path in inner)]
    given = b"\0".join(map(os.fsencode, wanted))
    git(workspace, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=given, more=more)
    lines = []
    for path in inner:
        with suppress(GitFailed):  # no commit yet: what the index has stays
            head = git(workspace, f"--git-dir={path}/.git", "rev-parse", "--verify", "--quiet", "HEAD").strip()
            lines.append(b"160000 " + head + b"\t" + os.fsencode(path) + b"\0")
    if lines:
        git(workspace, "update-index", "-z", "--index-info", stdin=b"".join(lines), more=more)


def _links(workspace: Path, more: Mapping[str, str]) -> list[str]:
    """Return the repositories inside it that the index knows."""
    staged = (entry.partition("\t") for entry in fields(git(workspace, "ls-files", "-z", "--stage", more=more)))
    return list(dict.fromkeys(path for about, _, path in staged if about.startswith("160000 ")))


def _has_name(workspace: Path) -> bool:
    try:
        git(workspace, "var", "GIT_COMMITTER_IDENT")
    except GitFailed:
        return False
    return True
