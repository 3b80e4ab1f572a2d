"""Copies a tree as it is: content, links, modes, times and empty directories; nothing is shared with the original."""

import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from agentsh.base.light import dataclass, field
from agentsh.base.text import short_path
from agentsh.workspace.attributes import carry
from agentsh.workspace.ignore import GITIGNORE, MAX_GITIGNORE_BYTES, Ignore

LONGEST_PATH = os.pathconf("/", "PC_PATH_MAX") * 3 // 4
"""Bytes of a path below what is copied: what lies deeper is left out. The rest is for where it is, and a name."""

TOO_DEEP = "too deep"


class TooMuch(Exception):
    """The tree is larger than allowed. limit: which limit, in words."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


@dataclass(slots=True)
class Plan:
    """What will be copied, relative to the source. directories: parents first. bytes: of the files.

    remarks: what was left out and should be said. unseen: directories that were not looked into.
    """

    directories: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    bytes: int = 0
    remarks: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def not_seen(self, directory: str, why: str) -> None:
        """Note a directory that is left out, whatever is in it."""
        self.unseen.append(directory)
        self.remarks.append(f"{short_path(directory)} ({why})")


def plan(source: Path, never: Collection[Path], max_files: int, max_bytes: int) -> Plan:
    """Look through `source` and return what a copy of it holds. never: directories that are left out.

    Raises:
        TooMuch: more than max_files files and links, or max_bytes bytes. Found out as early as possible.
        OSError: the source itself cannot be read.
    """
    found = Plan()
    left_out = {os.path.realpath(path) for path in never}
    names_left_out = {os.path.basename(path) for path in left_out}
    todo: list[tuple[str, Ignore | None]] = [("", Ignore())]
    while todo:
        directory, rules = todo.pop()
        try:
            with os.scandir(source / directory) as names:
                entries = sorted(names, key=lambda entry: entry.name)
        except OSError:
            if not directory:
                raise
            found.not_seen(directory, "not readable")
            continue
        if directory:
            found.directories.append(directory)
        if rules is not None:
            rules = _with_gitignore(source, directory, entries, rules)
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            inner = rules
            if entry.name == ".git":
                if not entry.is_dir(follow_symlinks=False):
                    # It points to a repository elsewhere: git would work on that one, the user's own.
                    found.remarks.append(f"{path} (it points to a repository outside)")
                    continue
                inner = None
            elif rules is not None and rules.excludes(path, directory=entry.is_dir(follow_symlinks=False)):
                continue
            if entry.is_dir(follow_symlinks=False):
                if too_long(path):
                    found.not_seen(path, TOO_DEEP)
                elif entry.name not in names_left_out or os.path.realpath(entry.path) not in left_out:
                    todo.append((path, inner))
                continue
            _add(found, path, entry)
            if len(found.files) + len(found.links) > max_files:
                raise TooMuch(f"{max_files:,} files")
            if found.bytes > max_bytes:
                raise TooMuch(f"{max_bytes // 1_000_000:,} MB")
    return found


def too_long(path: str) -> bool:
    """Tell whether a directory lies deeper than a copy goes."""
    return len(path) > LONGEST_PATH // 4 and len(os.fsencode(path)) > LONGEST_PATH


def copy(
    source: Path,
    target: Path,
    what: Plan,
    progress: Callable[[int, int, int], None] | None,
    *,
    exist_ok: bool = False,
) -> int:
    """Copy what was planned into the directory `target`; return how many files could not be read.

    exist_ok: directories may be there already.

    Raises:
        OSError: the target cannot be written.
    """
    import shutil

    unreadable = done_bytes = 0
    for directory in what.directories:
        (target / directory).mkdir(mode=0o700, exist_ok=exist_ok)
    for link in what.links:
        with suppress(FileNotFoundError):  # gone meanwhile
            os.symlink(os.readlink(source / link), target / link)
            _times(source / link, target / link)
    for count, file in enumerate(what.files, 1):
        try:
            opened = open(source / file, "rb")  # noqa: SIM115 - closed below; only this open may fail quietly
        except OSError:
            unreadable += 1
            continue
        with opened, open(target / file, "xb") as new:
            shutil.copyfileobj(opened, new, 1_048_576)
            info = os.fstat(opened.fileno())
            done_bytes += new.tell()
            carry(opened.fileno(), new.fileno())
            os.fchmod(new.fileno(), stat.S_IMODE(info.st_mode) & 0o777)
        os.utime(target / file, ns=(info.st_atime_ns, info.st_mtime_ns))
        if progress is not None:
            progress(count, len(what.files), done_bytes)
    for directory in reversed(what.directories):  # children first: a mode or a time set now is not disturbed again
        with suppress(FileNotFoundError):
            os.chmod(target / directory, stat.S_IMODE(os.stat(source / directory).st_mode) & 0o777)
            _times(source / directory, target / directory)
    return unreadable


def _with_gitignore(source: Path, directory: str, entries: list[os.DirEntry[str]], rules: Ignore) -> Ignore:
    if not any(entry.name == GITIGNORE and entry.is_file(follow_symlinks=False) for entry in entries):
        return rules
    try:
        with open(source / directory / GITIGNORE, "rb") as file:
            return rules.below(directory or ".", file.read(MAX_GITIGNORE_BYTES))
    except OSError:
        return rules


def _add(found: Plan, path: str, entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        found.links.append(path)
    elif entry.is_file(follow_symlinks=False):  # devices, pipes and sockets are left where they are
        found.files.append(path)
        try:
            found.bytes += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            found.files.pop()


def _times(source: Path, target: Path) -> None:
    info = os.stat(source, follow_symlinks=False)
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)
