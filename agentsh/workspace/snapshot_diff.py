"""How two trees differ, for people: which paths, which lines."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from agentsh.base.errors import BlobMissing
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import Changed
from agentsh.workspace.capture import is_binary
from agentsh.workspace.trees import Change, Manifests, Node, Nodes, changes

MAX_TEXT_BYTES = 2_000_000
"""Of a file whose lines are compared."""
MAX_COUNTED = 500
"""Files whose lines are counted for one figure."""
_SAMPLE_BYTES = 8_192


class FileChange(NamedTuple):
    """A path that differs. status: `A` added, `D` deleted, `M` changed, `T` another kind, `X` the mode alone."""

    path: str
    status: str
    before: Node | None
    after: Node | None


def in_git(path: str) -> bool:
    """Tell whether a path belongs to a repository's own files."""
    return ".git" in path.split("/")


def file_changes(before: Nodes, after: Nodes) -> list[FileChange]:
    """Return what differs between two trees: without git's own files, times, and directories that are not empty."""
    found = []
    full = [{path.rpartition("/")[0] for path in nodes} for nodes in (before, after)]
    for path, change in sorted(changes(before, after).items()):
        if in_git(path) or not _counts(path, change, *full):
            continue
        old, new = change
        if old is None or new is None:
            status = "A" if old is None else "D"
        elif old.kind != new.kind:
            status = "T"
        else:
            status = "X" if old.at == new.at else "M"
        found.append(FileChange(path, status, old, new))
    return found


def _counts(path: str, change: Change, before: set[str], after: set[str]) -> bool:
    old, new = change
    if old is not None and new is not None:
        if old.kind == new.kind == "d":
            return False
        return old.content != new.content
    node, full = (old, before) if new is None else (new, after)
    return node is None or node.kind != "d" or path not in full  # an empty directory is all that there is of it


def content(blobs: BlobStore, node: Node | None) -> bytes | None:
    """Return the bytes of a file, or the target of a link; None where there is nothing, or it was not kept."""
    if node is None or node.kind == "d":
        return None
    if node.kind == "l":
        return node.at.encode("utf-8", "surrogateescape")
    if not node.at:
        return None
    try:
        return blobs.get(node.at)
    except BlobMissing:
        return None


def lines_of(data: bytes | None) -> list[bytes] | None:
    """Return the lines of a text with their ends; None for what is none, or too long to compare."""
    if data is None:
        return []
    if len(data) > MAX_TEXT_BYTES or is_binary(data[:_SAMPLE_BYTES]):
        return None
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def counted(blobs: BlobStore, found: Iterable[FileChange]) -> tuple[int, int]:
    """Return (lines added, lines removed). A line that only moved counts as neither."""
    added = removed = 0
    for change in list(found)[:MAX_COUNTED]:
        old, new = (lines_of(content(blobs, node)) for node in (change.before, change.after))
        if old is None or new is None:
            continue
        a, b = Counter(old), Counter(new)
        added += (b - a).total()
        removed += (a - b).total()
    return added, removed


def compared(manifests: Manifests, blobs: BlobStore, before: str, after: str) -> Changed:
    """Return how much differs between two snapshots; nothing where one does not read."""
    try:
        found = file_changes(manifests.tree(before).nodes, manifests.tree(after).nodes)
    except BlobMissing:
        return Changed(0, 0, 0)
    return Changed(len(found), *counted(blobs, found))
