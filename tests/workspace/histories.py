"""Random histories of a directory: what a session does to it and what its user does, with every state remembered."""

import os
import random
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from agentsh.ports.snapshots import By, Step
from agentsh.testing import MemoryBlobs
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_restore import Restorer, plan

State = dict[str, tuple[str, int, int, bytes]]
NAMES = ("a", "b", "c", "d e", "é", os.fsdecode(b"\xff"))


def state_of(root: Path) -> State:
    """Everything that must come back: kind, mode, mtime and content of each path; of links their target."""
    found: State = {}
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                kind, data = "l", os.fsencode(os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                kind, data = "d", b""
            else:
                kind, data = "f", Path(path).read_bytes()
            mode = 0 if kind == "l" else stat.S_IMODE(info.st_mode)
            found[os.path.relpath(path, root)] = (kind, mode, info.st_mtime_ns, data)
    return found


class History:
    """A directory, its snapshots as a log would name them, and the state after each."""

    def __init__(self, root: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.root = root
        self.blobs = MemoryBlobs()
        self.snapshotter = Snapshotter(str(root), self.blobs)
        self.steps: list[Step] = []
        self.states: list[State] = []
        for _ in range(self.dice.randint(0, 8)):
            self.act()
        self.snap("start")

    def snap(self, by: By) -> None:
        """Take a snapshot; seq 10, 20, …"""
        taken, _ = self.snapshotter.take(by)
        self.steps += [Step(10 * (len(self.steps) + 1), t.ref, t.by) for t in taken]
        self.states += [state_of(self.root)] * len(taken)

    def rewind(self, seq: int) -> tuple[set[str], set[str]]:
        """Go back as a session does, and return (paths, conflicts)."""
        self.snap("outside")
        one = self.snapshotter
        winding = plan(one.manifests, self.blobs, one.root, self.steps, seq, one.left_out)
        target = one.manifests.tree(winding.target).nodes
        restorer = Restorer(one.root, self.blobs, one.nodes, target, durable=False)
        restorer.run(winding.paths)
        assert restorer.late == []
        assert winding.lost == ()
        self.snap("rewind")
        return set(winding.paths), set(winding.conflicts)

    def paths(self, kinds: str = "fdl") -> list[str]:
        return [path for path, (kind, *_) in sorted(state_of(self.root).items()) if kind in kinds]

    def act(self) -> None:
        """Change something, anything."""
        acts = [self._write, self._write, self._append, self._delete, self._mode, self._move, self._link, self._make]
        with suppress(PermissionError):  # a mode that an earlier act has set
            self.dice.choice([*acts, self._time, self._rename_within, self._same_size])()

    def _new(self) -> Path | None:
        places = [".", *self.paths("d")]
        place = self.root / self.dice.choice(places) / self.dice.choice(NAMES)
        return None if len(place.relative_to(self.root).parts) > 5 else place

    def _some(self, kinds: str) -> Path | None:
        found = self.paths(kinds)
        return self.root / self.dice.choice(found) if found else None

    def _clear(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()

    def _write(self) -> None:
        path = self._new()
        if path is None:
            return
        if self.dice.random() < 0.3:
            self._clear(path)
        if not path.is_dir() and not path.is_symlink():
            path.write_bytes(self.dice.randbytes(self.dice.choice((0, 3, 3, 50_000))))

    def _append(self) -> None:
        if (path := self._some("f")) is not None:
            with open(path, "ab") as file:
                file.write(b"more")

    def _same_size(self) -> None:
        """The hardest to see: other bytes, the same size and the same mtime."""
        if (path := self._some("f")) is not None:
            info = path.stat()
            path.write_bytes(bytes(b ^ 1 for b in path.read_bytes()))
            os.utime(path, ns=(info.st_mtime_ns, info.st_mtime_ns))

    def _delete(self) -> None:
        if (path := self._some("fdl")) is not None:
            self._clear(path)

    def _mode(self) -> None:
        if (path := self._some("fd")) is not None:
            path.chmod(self.dice.choice((0o755, 0o700, 0o711) if path.is_dir() else (0o644, 0o755, 0o600, 0o444)))

    def _move(self) -> None:
        path, target = self._some("fdl"), self._new()
        if path is None or target is None or path in (target, *target.parents) or target in path.parents:
            return
        self._clear(target)
        path.rename(target)

    def _rename_within(self) -> None:
        """As editors save: a new file by another name, renamed over the old one."""
        if (path := self._some("f")) is not None:
            new = path.with_name(".new")
            new.write_bytes(self.dice.randbytes(4))
            new.rename(path)

    def _link(self) -> None:
        if (path := self._new()) is not None and not os.path.lexists(path):
            path.symlink_to(self.dice.choice(("a", "../a", "/nowhere", ".")))

    def _make(self) -> None:
        if (path := self._new()) is not None and not os.path.lexists(path):
            path.mkdir()

    def _time(self) -> None:
        if (path := self._some("fdl")) is not None:
            ns = self.dice.randrange(10**18, 2 * 10**18)
            os.utime(path, ns=(ns, ns), follow_symlinks=False)
