"""Gives a session its own clone of a repository, with everything that its user has in it right now.

Made by init, alternates and copied references, not by `git clone`: that refuses shallow repositories, would turn the
user's branches into remote ones, and would leave an `origin` to push to in the user's own repository (ADR 0009). The
files are copied from the working tree and not checked out, so that they are the same bytes whatever filters, line
ends and large-file pointers the user's git deals in. The user's repository is only read.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentsh.base.light import dataclass, field
from agentsh.base.text import one_line
from agentsh.log.depths import walk
from agentsh.workspace.copy import TOO_DEEP, Plan, copy, plan, too_long
from agentsh.workspace.git import GitFailed, Repository, config_text, fields, find_repository, git
from agentsh.workspace.git_names import BRANCHES, LOST_FILTER

Progress = Callable[[int, int, int], None]

_KEPT_CONFIG = re.compile(
    r"user\.(name|email)|core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|sparsecheckout"
    r"|sparsecheckoutcone|bigfilethreshold|quotepath|abbrev)|i18n\..*|branch\..*\.(remote|merge|rebase)|pull\.rebase"
    r"|submodule\..*\.(url|active|update)|diff\.(renames|algorithm)|merge\.conflictstyle|commit\.template"
    r"|remote\..*\.fetch|index\.version|extensions\.objectformat",
    re.IGNORECASE | re.DOTALL,
)
_FORM = re.compile(r"core\.(repositoryformatversion|bare|logallrefupdates)|extensions\..*", re.IGNORECASE)
_FILTER = re.compile(r"filter\.(.*)\.(?:clean|process)", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"remote\..*\.url", re.IGNORECASE | re.DOTALL)
_PASSWORD = re.compile(r"://[^/@]*@")
_FIXED = (
    ("gc.auto", "0"), ("maintenance.auto", "false"), ("core.fsmonitor", "false"),
    # The index is the user's, and so are the sizes and times of the files: with these two git believes them, and need
    # not read every file anew, nor run a filter that is not there.
    ("core.checkstat", "minimal"), ("core.trustctime", "false"),
)  # fmt: skip
_INFO = ("exclude", "attributes", "sparse-checkout")
_LIMIT = 50
MAX_DEPTH = 20
"""Repositories inside one another."""


@dataclass(slots=True)
class Cloned:
    """What a clone holds. base: the commit it stands on. remarks: what should be said."""

    base: str
    files: int = 0
    bytes: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Listed:
    """Paths of a working tree. inner: directories with a repository of their own."""

    files: list[str]
    inner: list[str]
    ignored: set[str]


def clone(
    repository: Repository, target: Path, branch: str | None, never: Collection[Path], progress: Progress | None
) -> Cloned:
    """Fill the empty directory `target`. branch: the one to be on; None for what the origin is on.

    never: directories that are left out unless git knows what is in them.

    Raises:
        GitFailed: git refuses.
        OSError: the disk does, or the origin cannot be read.
    """
    if repository.head is None:
        raise GitFailed("nothing is committed yet")
    made = Cloned(repository.head)
    _clone(repository, target, branch, {os.path.realpath(place) for place in never}, made, progress, 0)
    return made


def _clone(
    repository: Repository, target: Path, branch: str | None, never: set[str], made: Cloned,
    progress: Progress | None, depth: int,
) -> None:  # fmt: skip
    _git_directory(repository, target, branch, made)
    listed = _listed(repository, never)
    what = _plan(repository.top, listed, never, made)
    free = shutil.disk_usage(target).free
    if what.bytes > free:
        raise OSError(28, f"{what.bytes // 1_000_000:,} MB are to be copied and {free // 1_000_000:,} MB are free")
    for path in listed.inner:  # first, so that the times of the directories around them are set last
        if path in what.directories:
            _inner(repository.top / path, target / path, path, never, made, progress, depth + 1)
    unreadable = copy(repository.top, target, what, progress, exist_ok=True)
    made.files += len(what.files) - unreadable
    made.bytes += what.bytes
    if unreadable:
        made.remarks.append(f"{unreadable:,} files could not be read")


def _inner(
    source: Path, target: Path, path: str, never: set[str], made: Cloned, progress: Progress | None, depth: int
) -> None:
    """Make a submodule or nested repository, a repository of its own in the clone too."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.lexists(source / ".git"):  # a submodule that is not checked out
        return
    inner = find_repository(source)
    if inner is None or inner.top.resolve() != source.resolve() or depth > MAX_DEPTH:
        made.remarks.append(f"{path} (git cannot read its repository)")
        return
    if inner.head is not None:
        _clone(inner, target, None, never, made, progress, depth)
        return
    what = plan(source, [Path(place) for place in never], 10_000_000, 1 << 50)  # nothing committed: as it lies there
    copy(source, target, what, progress, exist_ok=True)
    settle_copied(source, target, what.files)
    made.files += len(what.files)
    made.remarks += what.remarks


def _git_directory(repository: Repository, target: Path, branch: str | None, made: Cloned) -> None:
    top, inner = repository.top, target / ".git"
    form = git(top, "rev-parse", "--show-object-format").decode().strip() or "sha1"
    git(target, "init", "--quiet", "--template=", f"--object-format={form}")
    info = inner / "objects" / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").write_bytes(os.fsencode(alternate(str(repository.common / "objects"))))
    (inner / "info").mkdir(exist_ok=True)
    for name in _INFO:
        for place in (repository.git_dir, repository.common):
            with suppress(OSError):
                shutil.copyfile(place / "info" / name, inner / "info" / name)
                break
    with suppress(FileNotFoundError):
        shutil.copyfile(repository.common / "shallow", inner / "shallow")
    with open(inner / "config", "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(config_text(_config(top, made)))
    _references(repository, target, branch, made)
    _index(repository, inner)


def alternate(path: str) -> str:
    """Return the line that names a directory of objects, as git reads it."""
    if path.startswith(('"', "#")) or "\n" in path:
        escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"\n'
    return path + "\n"


def _config(top: Path, made: Cloned) -> list[tuple[str, str]]:
    kept: list[tuple[str, str]] = []
    said = git(top, "config", "-z", "--show-scope", "--list").decode("utf-8", "surrogateescape").split("\0")
    for scope, entry in zip(said[::2], said[1::2], strict=False):
        if scope not in ("local", "worktree"):
            continue
        name, _, value = entry.partition("\n")
        kept += kept_setting(name, value)
        if (found := _FILTER.fullmatch(name)) is not None and (LOST_FILTER, found[1]) not in kept:
            kept.append((LOST_FILTER, found[1]))
            made.remarks.append(f"the filter {one_line(found[1], 40)} of the repository's own configuration")
    return [*kept, *_FIXED]


def kept_setting(name: str, value: str) -> list[tuple[str, str]]:
    """Return a setting as a copy of a repository has it: nothing that runs a program, or holds a password."""
    if _URL.fullmatch(name):
        return [(name, _PASSWORD.sub("://", value))]
    kept = _KEPT_CONFIG.fullmatch(name) is not None and not name.lower().startswith("extensions.")
    return [(name, value)] if kept else []


def _references(repository: Repository, target: Path, branch: str | None, made: Cloned) -> None:
    said = git(
        repository.top, "for-each-ref", "--format=%(objectname)%00%(refname)%00%(symref)%00",
        "refs/heads", "refs/remotes", "refs/tags",
    )  # fmt: skip
    parts = [part.strip(b"\n") for part in said.split(b"\0")]
    lines = []
    for n in range(0, len(parts) - 2, 3):
        oid, name, symbolic = parts[n : n + 3]
        if symbolic:
            continue
        if branch is not None and (name == b"refs/heads/agentsh" or name == f"refs/heads/{branch}".encode()):
            made.remarks.append(f"the branch {os.fsdecode(name).removeprefix('refs/heads/')}")
            continue
        lines.append(b"create %b\0%b\0" % (name, oid))
    head = os.fsdecode(git(repository.top, "rev-parse", "--symbolic-full-name", "HEAD")).strip()
    if branch is not None:
        lines.append(b"create refs/heads/%b\0%b\0" % (branch.encode(), (repository.head or "").encode()))
        head = f"refs/heads/{branch}"
    try:
        git(target, "update-ref", "--stdin", "-z", stdin=b"".join(lines))
    except GitFailed:  # one of them is broken
        git(target, "update-ref", "--stdin", "-z", stdin=b"".join(_whole(target, lines, made)))
    if head.startswith("refs/"):
        git(target, "symbolic-ref", "HEAD", head)
    else:
        git(target, "update-ref", "--no-deref", "HEAD", repository.head or "")


def _whole(target: Path, lines: Sequence[bytes], made: Cloned) -> list[bytes]:
    """Return those of the references whose objects are there; note the others."""
    oids = [line.split(b"\0")[1] for line in lines]
    said = git(target, "cat-file", "--batch-check=%(objectname)", stdin=b"\n".join(oids) + b"\n").splitlines()
    kept = []
    for line, oid, found in zip(lines, oids, said, strict=True):
        if found == oid:
            kept.append(line)
        else:
            made.remarks.append(f"{one_line(os.fsdecode(line[7:].split(bytes(1))[0]), 80)} (its commit is missing)")
    return kept


def _index(repository: Repository, inner: Path) -> None:
    """Copy the index: what is staged, in conflict, only intended to be added, left out by a sparse checkout.

    With its time: by that git tells which entries it cannot trust.
    """
    with suppress(FileNotFoundError):
        info = os.stat(repository.git_dir / "index")
        shutil.copyfile(repository.git_dir / "index", inner / "index")
        os.utime(inner / "index", ns=(info.st_atime_ns, info.st_mtime_ns))
    for shared in repository.git_dir.glob("sharedindex.*"):  # what a split index rests on
        with suppress(FileNotFoundError):
            shutil.copyfile(shared, inner / shared.name)


def _listed(repository: Repository, never: set[str]) -> _Listed:
    top = repository.top
    files: dict[str, None] = {}
    inner: dict[str, None] = {}
    try:  # to unfold a sparse index git would write trees, and set the times of those that are there
        staged = git(top, "ls-files", "-z", "--stage", "--sparse")
    except GitFailed:  # before 2.35 there is no such word
        staged = git(top, "ls-files", "-z", "--stage")
    for entry in fields(staged):
        about, _, path = entry.partition("\t")
        if about.startswith("040000"):
            continue
        (inner if about.startswith("160000") else files)[path] = None
    for path in fields(git(top, "ls-files", "-z", "--others", "--exclude-standard")):
        if _below(top / path, never):
            continue
        (inner if path.endswith("/") else files)[path.rstrip("/")] = None
    said = git(top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    ignored = {path.rstrip("/") for path in fields(said) if path.endswith("/")}
    return _Listed(list(files), list(inner), ignored)


def _below(path: Path, never: set[str]) -> bool:
    return any(str(place) in never for place in (path, *path.parents))


def _plan(top: Path, listed: _Listed, never: set[str], made: Cloned) -> Plan:
    """Return what to copy: the listed files, and every directory that is not ignored, empty ones too."""
    found = Plan()
    known: dict[str, bool] = {"": True}

    def real(directory: str) -> bool:
        """Tell whether a directory is one, and no link that stands in its place; note it with those above it."""
        above, unknown = directory, list[str]()
        while above not in known:
            unknown.append(above)
            above = above.rpartition("/")[0]
        for each in reversed(unknown):
            if known[above] and too_long(each):
                found.not_seen(each, TOO_DEEP)
            known[each] = (
                known[above] and not too_long(each) and (top / each).is_dir() and not (top / each).is_symlink()
            )
            if known[each]:
                found.directories.append(each)
            above = each
        return known[directory]

    for path in listed.files:
        if not real(path.rpartition("/")[0]):
            continue
        place = top / path
        try:
            info = os.lstat(place)
        except OSError:  # deleted in the working tree
            continue
        if place.is_symlink():
            found.links.append(path)
        elif place.is_file():
            found.files.append(path)
            found.bytes += info.st_size
        elif not place.is_dir():
            made.remarks.append(f"{path} (no plain file)")
    inner = set(listed.inner)
    for path in inner:
        real(path)
    for directory in _directories(top, listed.ignored | inner, never):
        real(directory)
    made.remarks += found.remarks
    del made.remarks[_LIMIT:]
    return found


def _directories(top: Path, skipped: Collection[str], never: set[str]) -> Iterator[str]:
    todo, names_of_never = [""], {os.path.basename(path) for path in never}
    while todo:
        directory = todo.pop()
        try:
            with os.scandir(top / directory) as names:
                entries = [e for e in names if e.name != ".git" and e.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            known = entry.name in names_of_never and os.path.realpath(entry.path) in never
            if path not in skipped and not known:
                yield path
                todo.append(path)


def settle_copied(source: Path, target: Path, files: Iterable[str]) -> None:
    """Leave of the settings of repositories that were copied whole what a clone would have.

    files: what was copied, relative. A working tree that is named in them stays only inside of the copy.

    Raises:
        OSError: the disk refused.
    """
    for path in files:
        parts = path.split("/")
        if parts[-1] not in ("config", "config.worktree") or ".git" not in parts[:-1]:
            continue
        try:
            said = git(target, "config", "--file", str(target / path), "-z", "--list")
        except GitFailed:  # no configuration, or none that git would read either
            continue
        kept: list[tuple[str, str]] = []
        for entry in said.decode("utf-8", "surrogateescape").split("\0"):
            name, _, value = entry.partition("\n")
            tree = os.path.join(source, os.path.dirname(path), value)
            inside = os.path.realpath(tree).startswith(os.path.realpath(source) + "/")
            if _FORM.fullmatch(name) or (name == "core.worktree" and not os.path.isabs(value) and inside):
                kept.append((name, value))
            else:
                kept += kept_setting(name, value)
        (target / path).unlink()  # it may forbid to be written
        with open(target / path, "x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(config_text(kept))


def branch_of(session: str) -> str:
    """Return the branch that a session works on."""
    return f"{BRANCHES}{session}"


def rename_branch(root: Path, old: str, new: str) -> None:
    """Give a clone's branch the name of its session, where it is on the old one.

    Raises:
        GitFailed, OSError: git refuses.
    """
    head = os.fsdecode(git(root, "rev-parse", "--symbolic-full-name", "HEAD")).strip()
    if head == f"refs/heads/{branch_of(old)}":
        git(root, "branch", "--move", branch_of(old), branch_of(new))


def repositories(root: Path) -> Sequence[Path]:
    """Return a workspace's own clone, and those in it that still rest on another repository."""
    found = [root]
    for directory, names, _ in walk(str(root)):
        if Path(directory) != root and (Path(directory) / ".git" / "objects" / "info" / "alternates").is_file():
            found.append(Path(directory))
        names[:] = [name for name in names if name not in (".git", "node_modules", ".venv")]
    return found
