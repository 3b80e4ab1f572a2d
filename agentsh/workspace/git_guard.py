"""Finds what decides which programs git runs outside of the sandbox, so that commands cannot change it.

A sandbox of mounts holds what is there. What is not there yet it cannot hold, and Landlock holds none of it: for
these there is git_watch.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from agentsh.log.depths import walk
from agentsh.workspace.git import GitFailed, fields, git
from agentsh.workspace.ignore import CACHES

DECIDING = ("config", "config.worktree", "hooks", "commondir")
"""In a git directory. `commondir` names another one, whose configuration counts instead."""
MAX_LOOKED = 300
"""Directories that are looked through for repositories in the workspace, and how deep: some 10 ms."""
MAX_DEEP = 4
MAX_HELD = 400
"""Paths; each is a mount or two."""

# Settings that name a file whose content git runs, or takes for configuration.
_RUNS = re.compile(
    r"core\.(?:hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|attributesfile|alternaterefscommand)"
    r"|include\.path|includeif\..*\.path|init\.templatedir|filter\..*|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|alias\..*|(?:mergetool|difftool|browser|man|guitool)\..*\.(?:cmd|path)|sequence\.editor"
    r"|gpg\.(?:.*\.)?(?:program|defaultkeycommand)|credential\.(?:.*\.)?helper|pager\..*|interactive\.difffilter"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs)|trailer\..*\.(?:cmd|command)|tar\..*\.command|hook\..*\.command"
    r"|submodule\..*\.update|sendemail\.(?:.*\.)?(?:tocmd|cccmd|headercmd|sendmailcmd|smtpserver)|imap\.tunnel",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"[^\s'\"!;&|()]+")


def decides(root: str, *, in_place: bool) -> list[str]:
    """Return the paths below `root` that a command must not change, absolute; some need not be there.

    in_place: the repository is the user's own, and so is its configuration.
    """
    found: list[str] = []
    for place in _repositories(root):
        if os.path.isdir(place):
            found += [os.path.join(place, name) for name in DECIDING]
            modules = os.path.join(place, "modules")
            found += [
                os.path.join(top, name)
                for top, names, files in walk(modules)
                if "config" in files and "objects" in names
                for name in DECIDING
            ]
        else:  # a linked worktree or a submodule: it says where the repository is
            found.append(place)
    found = [*found, *(named(root) if in_place else ())]
    behind = (os.path.realpath(path) for path in found if os.path.islink(path))  # a link itself is watched
    return [*found, *(path for path in behind if path.startswith(root.rstrip("/") + "/"))][:MAX_HELD]


def make_hooks(root: str) -> None:
    """Make the directory for hooks where a repository has none: what is not there cannot be held."""
    inner = os.path.join(root, ".git")
    if os.path.isfile(os.path.join(inner, "config")) and not os.path.islink(inner):
        with suppress(OSError):
            os.mkdir(os.path.join(inner, "hooks"), 0o755)


def _repositories(root: str) -> Iterator[str]:
    """Yield every `.git` in a workspace, the root's first: in its upper directories, caches left out."""
    todo, looked = [(root, 0)], 0
    while todo and looked < MAX_LOOKED:
        place, depth = todo.pop(0)
        looked += 1
        try:
            with os.scandir(place) as names:
                entries = [entry for entry in names if not entry.is_symlink()]
        except OSError:
            continue
        if any(entry.name == ".git" for entry in entries):
            yield os.path.join(place, ".git")
        if depth < MAX_DEEP:
            todo += [
                (entry.path, depth + 1)
                for entry in entries
                if entry.name != ".git" and entry.name not in CACHES and entry.is_dir(follow_symlinks=False)
            ]


def named(root: str) -> Iterator[str]:
    """Yield the files and directories of a workspace that the configuration of its repository names as programs."""
    try:
        settings = fields(git_config(root))
    except (GitFailed, OSError):
        return
    for setting in settings:
        name, _, value = setting.partition("\n")
        if not _RUNS.fullmatch(name):
            continue
        for word in _WORD.findall(value):
            for base in (root, os.path.join(root, ".git")):
                path = os.path.realpath(os.path.join(base, word))
                if os.path.basename(path) == "_":  # husky: what is in there runs its neighbours
                    path = os.path.dirname(path)
                if path.startswith(root.rstrip("/") + "/") and os.path.exists(path):
                    yield path


def git_config(root: str) -> bytes:
    """Return the settings of a repository, those of files that it includes too. Runs nothing that they name."""
    from pathlib import Path

    return git(Path(root), "config", "-z", "--list", "--includes")
