"""What of a session was applied where, so that the next `apply` does not take it for somebody else's change."""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from agentsh.app.private_file import replace_json
from agentsh.base.errors import BlobMissing, UsageProblem
from agentsh.log.plain import read_plain
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import Step
from agentsh.workspace.snapshot_diff import FileChange, file_changes
from agentsh.workspace.trees import Manifests, Nodes

TAKEN_OVER = "applied.json"
"""Beside the log: directories, and the snapshot that was applied there last. Without it `apply` asks more."""


class TakenOver:
    """What was applied of one session. steps: its snapshots. ours: paths that it changed. end: what is there now."""

    def __init__(
        self, file: Path, blobs: BlobStore, steps: Sequence[Step], ours: Collection[str], end: Nodes
    ) -> None:
        self._file = file
        self._blobs = blobs
        self._refs = {step.ref for step in steps}
        self._last = steps[-1].ref if steps else None
        self._ours = ours
        self._end = end

    def since(self, root: Path) -> list[FileChange] | None:
        """Return what the session has changed since it was applied to `root`; None where it was not."""
        ref = self._read().get(str(root))
        if ref is None or ref not in self._refs:
            return None
        try:
            then = Manifests(self._blobs).tree(ref).nodes
        except BlobMissing:
            return None
        return [change for change in file_changes(then, self._end) if change.path in self._ours]

    def note(self, root: Path) -> None:
        """Note that all of it is in `root` by now; does nothing where the disk refuses."""
        if self._last is not None:
            with suppress(UsageProblem):
                replace_json(self._file, {**self._read(), str(root): self._last})

    def _read(self) -> dict[str, str]:
        try:
            rows = json.loads(read_plain(self._file))
        except (OSError, ValueError, RecursionError):
            return {}
        return {str(place): str(ref) for place, ref in rows.items()} if isinstance(rows, dict) else {}
