"""Project instructions: the AGENTS.md files of a workspace, looked for at its root and below, never above."""

import os

from agentsh.base.errors import ToolFailed
from agentsh.workspace.ignore import CACHES, GITIGNORE, MAX_GITIGNORE_BYTES, Ignore
from agentsh.workspace.jail import Jail

NAME = "AGENTS.md"
MAX_DIRECTORIES = 2_000
"""Looked into, nearest to the root first: 20 to 40 ms; what lies deeper in a larger tree is not found."""
MAX_FILE_BYTES = 1_000_000


def find(root: str) -> list[str]:
    """Return where instructions are, as paths relative to `root`: the root's own first, then by depth and name.

    Hidden directories, caches and what .gitignore leaves out are passed over, links to directories are not followed.
    """
    jail = Jail(root)
    found, todo, looked = [], [""], 0
    while todo and looked < MAX_DIRECTORIES:
        below: list[str] = []
        for directory in todo[: MAX_DIRECTORIES - looked]:
            looked += 1
            names, here = _names(os.path.join(root, directory))
            below += [f"{directory}{name}/" for name in names]
            if here and (not directory or not _ignored(jail, directory)):
                found.append(directory + NAME)
        todo = sorted(below)
    return found


def read(root: str, path: str) -> str | None:
    """Return the first megabyte of instructions; None where they are gone, or no plain file inside `root`."""
    try:
        return Jail(root).head(path, MAX_FILE_BYTES).decode("utf-8-sig", "replace")
    except ToolFailed:
        return None


def _names(directory: str) -> tuple[list[str], bool]:
    """Return the directories to look into, and whether instructions are here."""
    names, here = [], False
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name == NAME:
                    here = True
                elif not entry.name.startswith(".") and entry.name not in CACHES and _is_directory(entry):
                    names.append(entry.name)
    except OSError:
        return [], False
    return names, here


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _ignored(jail: Jail, directory: str) -> bool:
    """Tell whether .gitignore files leave out `directory`, or one above it. directory: ends with `/`."""
    rules, above = Ignore(), "."
    for depth in range(directory.count("/")):
        try:
            gitignore = jail.read(GITIGNORE if above == "." else f"{above}/{GITIGNORE}", MAX_GITIGNORE_BYTES)
            rules = rules.below(above, gitignore)
        except ToolFailed:
            pass
        above = "/".join(directory.split("/")[: depth + 1])
        if rules.excludes(above, directory=True):
            return True
    return False
