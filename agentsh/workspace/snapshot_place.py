"""Makes a whole directory from a snapshot: for a fork, and for a workspace that was deleted."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agentsh.base.errors import BlobMissing, WorkspaceError
from agentsh.base.ids import random_hex
from agentsh.log.reserve import what_to_do
from agentsh.log.store import BlobStore
from agentsh.workspace.provision import PARTIAL, discard, sweep
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_restore import Restorer
from agentsh.workspace.snapshot_walk import Git
from agentsh.workspace.trees import Manifests, Tree, unreadable

Progress = Callable[[int, int, int], None]


def place(
    target: Path, blobs: BlobStore, ref: str, *, git: Git, cache: Path | None = None,
    progress: Progress | None = None, finish: Callable[[Path], None] | None = None,
) -> Sequence[str]:  # fmt: skip
    """Make `target` (0700) hold what a snapshot holds, under its name only when it is whole.

    finish: is given the directory before it gets its name. cache: a stat cache to write, so that the next snapshot
    reads nothing anew. Returns what could not be made: files whose content was not kept, and what was left out.

    Raises:
        WorkspaceError: the snapshot does not read, the disk refused, or something of that name is there.
    """
    try:
        tree = Manifests(blobs).tree(ref)
    except BlobMissing as error:
        raise unreadable(error) from None
    lost = {path: None for path, node in tree.nodes.items() if node.kind == "f" and not node.at}
    if os.path.lexists(target):
        raise WorkspaceError(f"the workspace {target} is there already")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(target.parent)
        partial = target.with_name(f".{target.name}{PARTIAL}{random_hex(4)}")
        partial.mkdir(mode=0o700)
        try:
            wanted = [path for path in tree.nodes if path not in lost]
            Restorer(str(partial), blobs, {}, tree.nodes, durable=False).run(wanted, progress)
            if finish is not None:
                finish(partial)
            os.sync()  # one for all files: each by itself would take ten times as long
            partial.rename(target)
        except BaseException:
            discard(partial)
            raise
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WorkspaceError(f"the workspace {target} could not be made: {why}", hint=what_to_do(error)) from None
    if cache is not None:
        _remember(target, blobs, tree, git, cache)
    return [*lost, *tree.left_out]


def _remember(target: Path, blobs: BlobStore, tree: Tree, git: Git, cache: Path) -> None:
    snapshotter = Snapshotter(str(target), blobs, git=git)
    try:
        snapshotter.adopt(tree)
    except OSError:
        return
    snapshotter.save_cache(cache)
