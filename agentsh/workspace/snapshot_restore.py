"""Takes files back to a snapshot: what to change is planned first, and somebody else's work is never overwritten."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from agentsh.base.errors import BlobMissing, WorkspaceError
from agentsh.base.ids import random_hex
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import Step, Winding
from agentsh.workspace.attributes import carry_from
from agentsh.workspace.snapshot_walk import node_at, opened
from agentsh.workspace.trees import Change, Manifests, Node, Nodes, changes, unreadable

WRITERS = 4
FEW = 32
"""Up to so many files are written without a pool."""
OURS = frozenset({"tool", "rewind"})

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def target_of(steps: Sequence[Step], to_seq: int) -> Step:
    """Return the snapshot that holds the files of the moment after event `to_seq`; the first one for any earlier.

    Raises:
        WorkspaceError: there is none at all.
    """
    if not steps:
        raise WorkspaceError("no snapshot was taken yet: nothing has changed a file")
    return next((step for step in reversed(steps) if step.seq <= to_seq), steps[0])


def plan(
    manifests: Manifests, blobs: BlobStore, root: str, steps: Sequence[Step], to_seq: int, left_out: tuple[str, ...]
) -> Winding:
    """Return what it takes to go back to event `to_seq`. The last step is how the directory looks now.

    Only paths that the session itself has changed since then are taken back. One that somebody else has changed as
    well is a conflict, and left alone.

    Raises:
        WorkspaceError: there is no snapshot.
        BlobMissing: one does not read.
    """
    goal = target_of(steps, to_seq)
    target, now = manifests.tree(goal.ref).nodes, manifests.tree(steps[-1].ref).nodes
    ours, theirs = authors(manifests, [step for step in steps if step.seq > goal.seq], target)
    paths: list[str] = []
    conflicts: list[str] = []
    lost: list[str] = []
    for path in sorted(ours):
        here, there = now.get(path), target.get(path)
        if here == there:
            continue
        same = here is not None and there is not None and here.content == there.content
        hidden = here is None and _is_taken(root, path)  # a cache by now, a pipe: nothing that we know of
        if _below_any(path, conflicts, now) or (not same and (path in theirs or hidden)):
            conflicts.append(path)
        elif there is not None and there.kind == "f" and not same and not _is_kept(blobs, there):
            lost.append(path)
        else:
            paths.append(path)
    paths, conflicts = _whole_repositories(paths, conflicts)
    return Winding(goal.ref, tuple(paths), tuple(_tops(conflicts)), tuple(lost), left_out)


def authors(manifests: Manifests, later: Sequence[Step], first: Nodes) -> tuple[set[str], set[str]]:
    """Return the paths that the session has changed, and those that somebody else has."""
    ours: set[str] = set()
    theirs: set[str] = set()
    before = first
    for step in later:
        after = manifests.tree(step.ref).nodes
        found = changes(before, after)
        if step.by in OURS:
            ours |= found.keys()
        else:
            theirs |= {path for path, change in found.items() if _visible(change)}
        before = after
    return ours, theirs


def _visible(change: Change) -> bool:
    old, new = change
    return old is None or new is None or old.content != new.content


def _is_taken(root: str, path: str) -> bool:
    try:
        with opened(root, path) as (fd, name):
            os.stat(name, dir_fd=fd, follow_symlinks=False)
            return True
    except OSError:
        return False


def _is_kept(blobs: BlobStore, node: Node) -> bool:
    if not node.at:
        return False
    try:
        blobs.get(node.at)
    except BlobMissing:
        return False
    return True


def _below_any(path: str, conflicts: Sequence[str], now: Mapping[str, Node]) -> bool:
    """Tell whether something stands in the way above a path: a conflict that is no directory."""
    parts = path.split("/")
    above = {"/".join(parts[:n]) for n in range(1, len(parts))}
    return any(place in above and (place not in now or now[place].kind != "d") for place in conflicts)


def _whole_repositories(paths: list[str], conflicts: list[str]) -> tuple[list[str], list[str]]:
    """Leave a git directory alone as a whole where a part of it is a conflict: half of one is worth nothing."""
    places = {place for path in conflicts if (place := _git_directory(path)) is not None}
    if not places:
        return paths, conflicts
    kept = [path for path in paths if _git_directory(path) not in places]
    return kept, [path for path in conflicts if _git_directory(path) not in places] + sorted(places)


def _git_directory(path: str) -> str | None:
    parts = path.split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def _tops(paths: Iterable[str]) -> list[str]:
    """Return the paths without those below another of them."""
    found: list[str] = []
    for path in sorted(paths):
        if not found or not path.startswith(found[-1] + "/"):
            found.append(path)
    return found


class Restorer:
    """Makes paths of a directory what they are in a tree. late: what changed under our hands and was left alone."""

    def __init__(self, root: str, blobs: BlobStore, now: Nodes, target: Nodes, *, durable: bool = True) -> None:
        self.late: list[str] = []
        self._root = root
        self._blobs = blobs
        self._now = now
        self._target = target
        self._durable = durable
        self._places: set[str] = set()
        self._loosened: dict[str, int] = {}

    def run(self, paths: Sequence[str], progress: Callable[[int, int, int], None] | None = None) -> None:
        """Do it. progress: called after each file.

        Raises:
            WorkspaceError: the disk refused, or a blob is missing.
        """
        deepest = sorted(paths, key=lambda path: path.count("/"), reverse=True)
        try:
            for path in deepest:
                here, there = self._now.get(path), self._target.get(path)
                if here is not None and (there is None or there.kind != here.kind or here.kind == "l"):
                    self._guarded(path, partial(self._remove, path, here))
            for path in reversed(deepest):
                there = self._target.get(path)
                if there is not None and there.kind == "d":
                    self._guarded(path, partial(self._directory, path))
            self._files([path for path in paths if self._kind(path) in ("f", "l")], progress)
            self._times(paths)
        except BlobMissing as error:
            raise unreadable(error) from None
        except OSError as error:
            raise WorkspaceError(f"the workspace cannot be written: {error.strerror or error}") from None

    def _kind(self, path: str) -> str | None:
        there = self._target.get(path)
        return None if there is None else there.kind

    def _files(self, paths: list[str], progress: Callable[[int, int, int], None] | None) -> None:
        def one(path: str) -> int:
            self._guarded(path, partial(self._put, path, self._target[path]))
            return self._target[path].size

        done = 0
        results: Iterable[int]
        if len(paths) <= FEW:
            results = map(one, paths)
        else:
            pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="restore")
            results = pool.map(one, paths)
            pool.shutdown(wait=False)
        for count, size in enumerate(results, 1):
            done += size
            if progress is not None:
                progress(count, len(paths), done)

    def _guarded(self, path: str, work: Callable[[], None]) -> None:
        """Do one thing; where the directory above forbids it, allow it there first. Its mode is put right at last."""
        self._places.add(path.rpartition("/")[0])
        try:
            work()
        except PermissionError:
            place = path.rpartition("/")[0]
            if not place:
                raise
            with opened(self._root, place) as (fd, name):
                mode = stat.S_IMODE(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
                self._loosened.setdefault(place, mode)
                os.chmod(name, mode | 0o700, dir_fd=fd)
            work()

    def _as_expected(self, path: str, here: Node | None) -> bool:
        """Tell whether a path still is what the last look found; if not, somebody is at work there right now."""
        found = node_at(self._root, path)
        seen = None if found is None else found[1]
        if here is not None and here.kind == "f":
            here = here._replace(at="")
        if here is not None and seen is not None and here.kind == "d" == seen.kind:
            return True
        if seen == here:
            return True
        there = self._target.get(path)
        if seen != (there._replace(at="") if there is not None and there.kind == "f" else there):
            self.late.append(path)
        return False

    def _remove(self, path: str, here: Node) -> None:
        if not self._as_expected(path, here):
            return
        with suppress(FileNotFoundError), opened(self._root, path) as (fd, name):
            if here.kind != "d":
                os.unlink(name, dir_fd=fd)
                return
            try:
                os.rmdir(name, dir_fd=fd)
            except OSError as error:
                if error.errno not in _TAKEN:  # a file of somebody else, or a cache, is still in there
                    raise

    def _directory(self, path: str) -> None:
        with suppress(FileExistsError), opened(self._root, path) as (fd, name):
            os.mkdir(name, 0o700, dir_fd=fd)

    def _put(self, path: str, there: Node) -> None:
        here = self._now.get(path)
        if here is not None and here.kind == there.kind == "f" and here.at == there.at and there.at:
            if self._as_expected(path, here):
                with opened(self._root, path) as (fd, name):
                    _dress(fd, name, there)
            return
        # What was there of another kind is gone by now, and a link is made anew.
        if not self._as_expected(path, here if here is not None and here.kind == there.kind == "f" else None):
            return
        self._parents(path)
        with opened(self._root, path) as (fd, name):
            if there.kind == "l":
                os.symlink(there.at, name, dir_fd=fd)
                os.utime(name, ns=(there.mtime_ns, there.mtime_ns), dir_fd=fd, follow_symlinks=False)
                return
            if not there.at:
                raise WorkspaceError(f"the content of {path} was not kept: it was too large")
            self._write(fd, name, self._blobs.get(there.at), there)

    def _parents(self, path: str) -> None:
        parts = path.split("/")
        for n in range(1, len(parts)):
            self._directory("/".join(parts[:n]))

    def _write(self, directory: int, name: str, data: bytes, there: Node) -> None:
        temporary = f".agentsh-{random_hex(8)}.tmp"
        try:
            fd = os.open(temporary, _CREATE, 0o600, dir_fd=directory)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                carry_from(directory, name, fd)
                os.fchmod(fd, there.mode)
                os.utime(fd, ns=(there.mtime_ns, there.mtime_ns))
                if self._durable:
                    os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise

    def _times(self, paths: Sequence[str]) -> None:
        """Give directories their modes and times, the deepest first: all else is done."""
        chosen = {path for path in paths if self._kind(path) == "d"}
        for path in sorted(chosen | self._places | self._loosened.keys(), key=lambda p: p.count("/"), reverse=True):
            node = self._target.get(path) if path in chosen else self._now.get(path, self._target.get(path))
            if not path or node is None or node.kind != "d":
                continue
            with suppress(FileNotFoundError, NotADirectoryError), opened(self._root, path) as (fd, name):
                _dress(fd, name, node)


def _dress(directory: int, name: str, node: Node) -> None:
    """Give a file or directory, no link, its mode and time."""
    flags = _PLACE if node.kind == "d" else os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=directory)
    except PermissionError:  # ours, but not readable: through its name, which cannot be a link as that would be ELOOP
        os.chmod(name, node.mode, dir_fd=directory)
        os.utime(name, ns=(node.mtime_ns, node.mtime_ns), dir_fd=directory, follow_symlinks=False)
        return
    try:
        os.fchmod(fd, node.mode)
        os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
    finally:
        os.close(fd)
