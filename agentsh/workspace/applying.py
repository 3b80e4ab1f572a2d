"""Brings changes of a session back into somebody's directory: what they changed meanwhile is never overwritten."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentsh.base.errors import WorkspaceError
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


def plan(root: Path, blobs: BlobStore, found: Sequence[FileChange], modes: Nodes) -> Plan:
    """Compare the changes of a session with a directory. Writes nothing but blobs. modes: of directories to be made.

    Raises:
        WorkspaceError: the directory cannot be read.
        LogWriteFailed: the blobs cannot be written.
    """
    made = Plan({}, {}, (), (), ())
    merged, same, conflicts = [], [], []
    for change in found:
        try:
            verdict = _judge(str(root), blobs, change, made)
        except OSError as error:
            raise WorkspaceError(f"{root / change.path} cannot be read: {error.strerror or error}") from None
        if isinstance(verdict, Conflict):
            conflicts.append(verdict)
        elif verdict == "merged":
            merged.append(change.path)
        elif verdict == "same":
            same.append(change.path)
    _new_directories(str(root), made, modes)
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
    if theirs is None and _in_the_way(root, path):
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
    texts = [lines_of(content(blobs, node)) for node in (before, after)]
    texts.append(lines_of(_read(root, path, theirs)))
    old, ours, other = texts
    if {before.kind, after.kind, theirs.kind} != {"f"} or old is None or ours is None or other is None:
        return Conflict(path, "you have changed it too, and it is no text that could be merged")
    result = merge(old, ours, other)
    if result.lines is None:
        return Conflict(path, "you have changed the same lines", tuple(map(str, result.conflicts)))
    data = b"".join(result.lines)
    if result.lines == other:
        return "same"
    node = Node("f", _mode(theirs, before, after), time.time_ns(), len(data), blobs.put(data))
    _put(made, path, theirs, node)
    return "merged"


def _put(made: Plan, path: str, theirs: Node | None, node: Node | None) -> str:
    if theirs is not None:
        made.now[path] = theirs
    if node is not None:
        made.target[path] = node._replace(mtime_ns=time.time_ns())  # so that a build sees that it is new
    return "changed"


def _mode(theirs: Node | None, before: Node | None, after: Node) -> int:
    """Return a file's mode: theirs, but for the bits of execution that the session has changed."""
    if theirs is None or theirs.kind != "f" or after.kind != "f":
        return after.mode
    changed = 0 if before is None else (before.mode ^ after.mode) & 0o111
    return theirs.mode & ~changed | after.mode & changed


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


def _in_the_way(root: str, path: str) -> bool:
    """Tell whether something other than a directory stands above a path that is not there, or a pipe at it."""
    try:
        with opened(root, path) as (fd, name):
            os.stat(name, dir_fd=fd, follow_symlinks=False)
            return True
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _new_directories(root: str, made: Plan, modes: Nodes) -> None:
    """Add the directories that are missing above what is to be made."""
    for path in list(made.target):
        parts = path.split("/")
        for n in range(1, len(parts)):
            above = "/".join(parts[:n])
            if above not in made.target and node_at(root, above) is None:
                mode = modes[above].mode if above in modes and modes[above].kind == "d" else 0o755
                made.target[above] = Node("d", mode, time.time_ns(), 0, "")
