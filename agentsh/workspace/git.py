"""Runs git for agentsh itself: quietly, without hooks or prompts, and never writing to a repository that it reads."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentsh.workspace.launching import on_path

TIMEOUT_S = 600.0
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "advice.all=false")


class GitFailed(Exception):
    """A command ended with an error. The message is git's own last line."""


class Repository(NamedTuple):
    """A repository with a working tree. common: its git directory, that of the main one for a linked worktree.

    prefix: where in the tree it was found from, empty for the top. head: commit, or None before the first.
    """

    top: Path
    git_dir: Path
    common: Path
    prefix: str
    head: str | None


def available() -> bool:
    """Tell whether there is a git at all."""
    return on_path("git") is not None


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a git that must not take a caller's repository for ours, lock, or ask."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    fixed = {
        "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C",
    }  # fmt: skip
    return {**kept, **fixed, **(more or {})}


def git(place: Path, *args: str, stdin: bytes = b"", more: Mapping[str, str] | None = None) -> bytes:
    """Run a git command in `place` and return its output.

    Raises:
        GitFailed: it ended with an error, or took longer than ten minutes.
        OSError: it could not be started.
    """
    try:
        done = subprocess.run(
            ["git", *_QUIET, *args], cwd=place, input=stdin, capture_output=True, env=environment(more),
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {args[0]} took more than {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(said[-1] if said else f"git {args[0]} ended with {done.returncode}")
    return done.stdout


def fields(data: bytes) -> list[str]:
    """Return the names in NUL-separated output, in the spelling of the file system."""
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


def find_repository(place: Path) -> Repository | None:
    """Return the repository around a directory, or None where there is none that git would work on."""
    try:
        if git(place, "rev-parse", "--is-inside-work-tree") != b"true\n":
            return None
        top, git_dir, common = (_said(place, what) for what in ("--show-toplevel", "--git-dir", "--git-common-dir"))
        prefix = _said(place, "--show-prefix").rstrip("/")
        return Repository(Path(top), Path(git_dir), Path(common), prefix, _head(place))
    except (GitFailed, OSError):
        return None


def _said(place: Path, what: str) -> str:
    """Return a path that rev-parse tells: one by one, as there may be line ends in them."""
    return os.fsdecode(git(place, "rev-parse", "--path-format=absolute", what)).removesuffix("\n")


def _head(place: Path) -> str | None:
    try:
        return git(place, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
    except GitFailed:
        return None


def is_ignored(repository: Repository) -> bool:
    """Tell whether a repository ignores the directory that it was found from."""
    if not repository.prefix:
        return False
    with suppress(GitFailed):  # it is not, which git tells by its exit code
        git(repository.top, "check-ignore", "--no-index", "--quiet", "--", repository.prefix)
        return True
    return False


def config_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return lines for a configuration file. pairs: full names such as `remote.origin.url`, and values."""
    lines = []
    for name, value in pairs:
        section, _, rest = name.partition(".")
        inner, _, key = rest.rpartition(".")
        quoted = inner.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section} "{quoted}"]' if inner else f"[{section}]")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t{key} = "{escaped}"')
    return "".join(line + "\n" for line in lines)
