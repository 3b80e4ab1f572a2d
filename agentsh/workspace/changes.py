"""What a session's workspace holds that is nowhere else, before it is moved away. Nothing is changed."""

import filecmp
import os
from pathlib import Path

from agentsh.workspace.copy import TooMuch, plan

MAX_FILES = 20_000
MAX_BYTES = 1_000_000_000


def not_taken_over(workspace: Path, origin: Path | None) -> list[str] | None:
    """Return the files of a workspace that `origin`, which it was made of, does not have with the same content.

    Ignored files, caches and `.git` are nobody's work; what was deleted in the workspace is not told. A directory
    that does not read, or lies too deep, counts as a file. origin: None where there was none; then every file counts.
    None is returned where it is too much to compare.

    Raises:
        OSError: the workspace cannot be read.
    """
    try:
        found = plan(workspace, (), MAX_FILES, MAX_BYTES)
    except TooMuch:
        return None
    files = [path for path in [*found.files, *found.links] if ".git" not in path.split("/")]
    own = (path for path in files if not _same(workspace / path, origin / path if origin else None))
    return sorted([*own, *found.unseen])


def _same(mine: Path, theirs: Path | None) -> bool:
    if theirs is None:
        return False
    try:
        if mine.is_symlink() or theirs.is_symlink():
            return os.readlink(mine) == os.readlink(theirs)
        return filecmp.cmp(mine, theirs, shallow=False)
    except OSError:
        return False
