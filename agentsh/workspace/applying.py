"""Brings changes of a session back into somebody's directory: what they changed meanwhile is never overwritten."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentsh.base.errors import WorkspaceError
from agentsh.log.depths import walk
from agentsh.log.store import BlobStore
from agentsh.workspace.merging import merge
from agentsh.workspace.snapshot_diff import FileChange, content, lines_of
from agentsh.workspace.snapshot_restore import Restorer
from agentsh.workspace.snapshot_walk import READ, node_at, opened
from agentsh.workspace.trees import Node, Nodes

MAX_READ_BYTES = 100_000_000


class Conflict(NamedTuple):
    """A path that is not taken over. why: in words. hunks: those of ours that meet changes of theirs."""

    path: str
    why: str
    hunks: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What taking over would do. merged: paths that both have changed, in different places. same: there already.

    now, target: what stands there, and what is to.
    """

    now: Nodes
    target: Nodes
    merged: tuple[str, ...]
    same: tuple[str, ...]
    conflicts: tuple[Conflict, ...]

    @property
    def paths(self) -> list[str]:
        """What is to be changed."""
        return sorted(self.now.keys() | self.target.keys())


def plan(
    root: Path, blobs: BlobStore, found: Sequence[FileChange], modes: Nodes, again: Sequence[FileChange] | None = None
) -> Plan:
    """Compare the changes of a session with a directory. Writes nothing but blobs. modes: of directories to be made.

    again: the changes since the session was applied there for the last time, None where it was not: what would be a
    conflict is looked at once more as a change of what was brought there then; where there is none since, what they
    made of it is theirs, and stays.

    Raises:
        WorkspaceError: the directory cannot be read.
        LogWriteFailed: the blobs cannot be written.
    """
    made = Plan({}, {}, (), (), ())
    merged, same, conflicts = [], [], []
    since = {change.path: change for change in again or ()}
    for change in sorted({**since, **{change.path: change for change in found}}.values(), key=lambda c: c.path):
        try:
            verdict = _judge(str(root), blobs, change, made)
            if isinstance(verdict, Conflict) and again is not None:
                newer = since.get(change.path)
                verdict = "same" if newer is None else _judge(str(root), blobs, newer, made)
        except OSError as error:
            raise WorkspaceError(f"{root / change.path} cannot be read: {error.strerror or error}") from None
        if isinstance(verdict, Conflict):
            conflicts.append(verdict)
        elif verdict == "merged":
            merged.append(change.path)
        elif verdict == "same":
            same.append(change.path)
    conflicts += _not_empty(str(root), made)
    _new_directories(str(root), made, modes)
    _old_directories(str(root), made, modes)
    return made._replace(merged=tuple(merged), same=tuple(same), conflicts=tuple(conflicts))


def carry_out(root: Path, blobs: BlobStore, what: Plan) -> list[str]:
    """Do what was planned; return paths that somebody changed in this very moment, and that were left alone.

    Raises:
        WorkspaceError: the disk refused; what was done by then is done.
    """
    restorer = Restorer(str(root), blobs, what.now, what.target)
    restorer.run(what.paths)
    return sorted(restorer.late)


def _judge(root: str, blobs: BlobStore, change: FileChange, made: Plan) -> Conflict | str:
    path, before, after = change.path, change.before, change.after
    here = node_at(root, path)
    theirs = None if here is None else here[1]
    if theirs is None and _in_the_way(root, path, made):
        return Conflict(path, "a link or a file stands in its way")
    if _same(root, blobs, path, theirs, after):
        if after is None or theirs is None or after.kind != "f" or not (after.mode ^ theirs.mode) & 0o111:
            return "same"
        return _put(made, path, theirs, after._replace(mode=_mode(theirs, before, after)))
    if _same(root, blobs, path, theirs, before):
        if after is not None and after.kind == "f" and content(blobs, after) is None:
            return Conflict(path, "its content was too large to keep")
        return _put(made, path, theirs, after and after._replace(mode=_mode(theirs, before, after)))
    if theirs is None:
        return Conflict(path, "you have deleted it")
    if after is None:
        return Conflict(path, "it is deleted here, and you have changed it")
    if before is None:
        return Conflict(path, "you have made one of that name too")
    return _merged(root, blobs, change, theirs, made)


def _merged(root: str, blobs: BlobStore, change: FileChange, theirs: Node, made: Plan) -> Conflict | str:
    path, before, after = change.path, change.before, change.after
    assert before is not None and after is not None
    plain = {before.kind, after.kind, theirs.kind} == {"f"}
    here = _read(root, path, theirs)
    if plain and before.at == after.at and here is not None:  # the mode alone
        merged = here
    else:
        old, ours, other = lines_of(content(blobs, before)), lines_of(content(blobs, after)), lines_of(here)
        if not plain or old is None or ours is None or other is None:
            return Conflict(path, "you have changed it too, and it is no text that could be merged")
        result = merge(old, ours, other)
        if result.lines is None:
            return Conflict(path, "you have changed the same lines", tuple(map(str, result.conflicts)))
        merged = b"".join(result.lines)
    mode = _mode(theirs, before, after)
    if merged == here and mode == theirs.mode:
        return "same"
    _put(made, path, theirs, Node("f", mode, time.time_ns(), len(merged), blobs.put(merged)))
    return "merged"


def _put(made: Plan, path: str, theirs: Node | None, node: Node | None) -> str:
    if theirs is not None:
        made.now[path] = theirs
    if node is not None:
        made.target[path] = node._replace(mtime_ns=time.time_ns())  # so that a build sees that it is new
    return "changed"


def _mode(theirs: Node | None, before: Node | None, after: Node) -> int:
    """Return a file's mode: theirs, but for execution, where the session has changed that and they may read."""
    if theirs is None or theirs.kind != "f" or after.kind != "f":
        return after.mode
    changed = 0 if before is None else (before.mode ^ after.mode) & 0o111
    return theirs.mode & ~changed | after.mode & changed & ((theirs.mode & 0o444) >> 2)


def _same(root: str, blobs: BlobStore, path: str, theirs: Node | None, node: Node | None) -> bool:
    if theirs is None or node is None:
        return theirs is node
    if theirs.kind != node.kind or node.kind == "d":
        return theirs.kind == node.kind
    if node.kind == "l":
        return theirs.at == node.at
    return theirs.size == node.size and bool(node.at) and _read(root, path, theirs) == content(blobs, node)


def _read(root: str, path: str, theirs: Node) -> bytes | None:
    if theirs.kind != "f" or theirs.size > MAX_READ_BYTES:
        return None
    with opened(root, path) as (fd, name), open(os.open(name, READ, dir_fd=fd), "rb") as file:
        return file.read(MAX_READ_BYTES + 1)


def _in_the_way(root: str, path: str, made: Plan) -> bool:
    """Tell whether something other than a directory stands above a path that is not there, or a pipe at it.

    What goes itself, by a change that was judged before, is in nobody's way.
    """
    above = path
    while above := above.rpartition("/")[0]:
        if above in made.now:
            there = made.target.get(above)
            return there is not None and there.kind != "d"
    try:
        with opened(root, path) as (fd, name):
            os.stat(name, dir_fd=fd, follow_symlinks=False)
            return True
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _not_empty(root: str, made: Plan) -> list[Conflict]:
    """Return the directories in whose place something else is to be, and that hold more than what goes."""
    found = []
    for path, here in made.now.items():
        there = made.target.get(path)
        if here.kind == "d" and there is not None and there.kind != "d":
            below = (os.path.join(place, name) for place, _, names in walk(f"{root}/{path}") for name in names)
            inside = (os.path.relpath(place, root) for place in below)
            if any(name not in made.now or name in made.target for name in inside):
                found.append(Conflict(path, "it is no directory any more, and you have something in it"))
    return found


def _old_directories(root: str, made: Plan, modes: Nodes) -> None:
    """Add the directories that the session has removed; one that holds something else will stay."""
    for path in [path for path in made.now if path not in made.target]:
        while path := path.rpartition("/")[0]:
            here = node_at(root, path)
            if path in modes or path in made.now or here is None or here[1].kind != "d":
                break
            made.now[path] = here[1]


def _new_directories(root: str, made: Plan, modes: Nodes) -> None:
    """Add the directories that are missing above what is to be made."""
    for path in list(made.target):
        parts = path.split("/")
        for n in range(1, len(parts)):
            above = "/".join(parts[:n])
            if above not in made.target and node_at(root, above) is None:
                mode = modes[above].mode if above in modes and modes[above].kind == "d" else 0o755
                made.target[above] = Node("d", mode, time.time_ns(), 0, "")
