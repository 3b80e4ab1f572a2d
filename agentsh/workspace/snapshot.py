"""Takes snapshots of a workspace: what changed is read, hashed and kept as blobs; a manifest names it all.

Blocks; `snapshot_thread` puts it behind the port.
"""

import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from agentsh.log.plain import read_plain
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import By, Taken
from agentsh.ports.tool import Edit
from agentsh.workspace.snapshot_walk import READ, Git, Key, Known, extras_of, key_of, look, node_at, opened
from agentsh.workspace.trees import MAX_DEPTH, Change, Manifests, Node, Nodes, Tree, encode, sizes

MAX_FILE_BYTES = 100_000_000
"""Of a larger file a snapshot keeps only that it is there."""
RACY_NS = 20_000_000
"""A file that changed this shortly before it was read may change again with the same time stamps: file systems stamp
with the kernel's coarse clock, which ticks every 10 ms at the slowest. It is read again the next time (git's racy
rule)."""
READERS = 4
FEW = 8
"""Up to so many files are read without a pool."""
LARGE_BYTES = 8_000_000
"""Files from this size on are read one at a time, so that a pool of readers holds no more than one of them."""
_CACHE = "agentsh-stat/1"


class Stopped(Exception):
    """Whoever asked for the snapshot does not want it any more."""


class Snapshotter:
    """Snapshots of one directory. ref: the manifest of the last one, or None before the first.

    stopped: set it, and a snapshot that is being taken breaks off.
    nodes: what that one holds; not to be changed by others. git: see `snapshot_walk.Git`.
    """

    def __init__(self, root: str, blobs: BlobStore, *, git: Git = "own", manifests: Manifests | None = None) -> None:
        self.root = root
        self.ref: str | None = None
        self.nodes: Nodes = {}
        self.left_out: tuple[str, ...] = ()
        self.stopped = False
        self.manifests = manifests or Manifests(blobs)
        self._blobs = blobs
        self._git = git
        self._known: Known = {}
        self._extras: set[str] = set()
        self._depth = 0
        self._large = threading.Lock()
        self._files = self._bytes = 0

    def load(self, ref: str) -> None:
        """Go on from an earlier snapshot.

        Raises:
            BlobMissing: it does not read.
        """
        tree = self.manifests.tree(ref)
        self.ref, self._depth = ref, self.manifests.depth(ref)
        self.nodes, self.left_out = dict(tree.nodes), tree.left_out
        self._extras = extras_of(self.nodes, self.left_out)
        self._files, self._bytes = sizes(self.nodes)

    def take(self, by: By) -> tuple[list[Taken], dict[str, Change]]:
        """Look through the directory; return the snapshot, or nothing where nothing has changed, and the changes.

        Raises:
            Stopped: it was told to.
            TooMuch: the directory is too large for it.
            OSError: it cannot be read.
            LogWriteFailed: the blobs cannot be written.
        """
        found = look(self.root, self._known, self._git, self._extras)
        known = found.known
        for path, entry in zip(found.unread, self._read_all(found.unread), strict=True):
            if entry is not None:
                known[path] = entry
        large = [path for path, (_, node) in known.items() if node.kind == "f" and not node.at]
        changed = self._changes(known)
        self._known = known
        left_out = tuple(sorted({*found.left_out, *large}))
        if not changed and self.ref is not None and left_out == self.left_out:
            return [], {}
        return [self._keep(changed, by, left_out)], changed

    def take_paths(self, paths: Iterable[str], by: By) -> tuple[list[Taken], dict[str, Change]]:
        """Like `take`, where no other paths can have changed. Directories above them are looked at too.

        Raises:
            LogWriteFailed: the blobs cannot be written.
        """
        wanted: dict[str, None] = {}
        for path in paths:
            parts = path.split("/")
            wanted.update(("/".join(parts[:n]), None) for n in range(1, len(parts) + 1))
        changed: dict[str, Change] = {}
        for path in wanted:
            old, entry = self.nodes.get(path), self._now(path)
            if entry is None:
                self._known.pop(path, None)
            else:
                self._known[path] = entry
            new = None if entry is None else entry[1]
            if new != old:
                changed[path] = (old, new)
        if not changed:
            return [], {}
        self._extras |= {path for path, (_, new) in changed.items() if new is not None and self._hidden(path)}
        return [self._keep(changed, by, self.left_out)], changed

    def take_edits(self, edits: Sequence[Edit]) -> list[Taken]:
        """Take what a tool says it has changed, and before that what others had changed in the same files."""
        outside: dict[str, Change] = {}
        for edit in {e.path: e for e in reversed(edits)}.values():  # the first of each path
            old = self.nodes.get(edit.path)
            was = None if edit.before is None else "sha256:" + hashlib.sha256(edit.before).hexdigest()
            if was == (old.at if old is not None and old.kind == "f" else None) or (old is not None and not old.at):
                continue
            new = None
            if edit.before is not None:
                self._blobs.put(edit.before)
                mode = old.mode if old is not None and old.kind == "f" else 0o644
                new = Node("f", mode, time.time_ns(), len(edit.before), was or "")
            outside[edit.path] = (old, new)
        taken = [self._keep(outside, "outside", self.left_out)] if outside else []
        return taken + self.take_paths([edit.path for edit in edits], "tool")[0]

    def forget(self) -> None:
        """Begin as if no snapshot had been taken, and read everything anew: its blobs may be gone by then."""
        self.ref, self.nodes, self.left_out, self._known = None, {}, (), {}
        self._depth = self._files = self._bytes = 0

    def adopt(self, tree: Tree) -> None:
        """Believe that files which look as in `tree` have its content: they were just written from it."""
        found = look(self.root, {}, self._git)
        for path in found.unread:
            here, node = node_at(self.root, path), tree.nodes.get(path)
            if here is not None and node is not None and node.at and here[1] == node._replace(at=""):
                found.known[path] = (here[0], node)
        self._known = found.known

    def _hidden(self, path: str) -> bool:
        return any(path.startswith(place + "/") for place in self.left_out)

    def _changes(self, known: Known) -> dict[str, Change]:
        nodes, same = self.nodes, 0
        changed: dict[str, Change] = {}
        for path, (_, node) in known.items():
            old = nodes.get(path)
            if old is node or old == node:
                same += 1
            else:
                changed[path] = (old, node)
                same += old is not None
        if same != len(nodes):
            changed.update((path, (node, None)) for path, node in nodes.items() if path not in known)
        return changed

    def _keep(self, changed: dict[str, Change], by: By, left_out: tuple[str, ...]) -> Taken:
        """Write the manifest; only then is the state another one, so that a full disk leaves it as it was."""
        small = len(changed) <= max(100, len(self.nodes) // 2)
        depth = self._depth + 1 if self.ref is not None and small and self._depth + 1 < MAX_DEPTH else 0
        nodes = self.nodes if depth else dict(self.nodes)
        if not depth:
            _apply(nodes, changed)
        ref = self._blobs.put(encode(Tree(nodes, left_out), changed, self.ref if depth else None, depth))
        _apply(self.nodes, changed)
        for old, new in changed.values():
            for node, sign in ((old, -1), (new, 1)):
                if node is not None and node.kind != "d":
                    self._files, self._bytes = self._files + sign, self._bytes + sign * node.size
        told = left_out if left_out != self.left_out else None
        self.ref, self.left_out, self._depth = ref, left_out, depth
        return Taken(ref, by, self._files, self._bytes, told)

    def _read_all(self, paths: Sequence[str]) -> list[tuple[Key | None, Node] | None]:
        if len(paths) <= FEW:
            return [self._now(path) for path in paths]
        with ThreadPoolExecutor(READERS, thread_name_prefix="snapshot") as pool:
            return list(pool.map(self._now, paths))

    def _now(self, path: str) -> tuple[Key | None, Node] | None:
        """Return what stands at a path now, its content kept as a blob; None where nothing does."""
        if self.stopped:
            raise Stopped
        here = node_at(self.root, path)
        if here is None or here[1].kind != "f":
            return here
        known = self._known.get(path)
        if known is not None and known[0] == here[0]:
            return known
        if here[1].size < LARGE_BYTES:
            return self._content(path)
        with self._large:
            return self._content(path)

    def _content(self, path: str) -> tuple[Key | None, Node] | None:
        with suppress(FileNotFoundError, NotADirectoryError), opened(self.root, path) as (directory, name):
            began_ns = time.time_ns()
            try:
                fd = os.open(name, READ, dir_fd=directory)
            except PermissionError:
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                return key_of(info), _file(info, "")
            with open(fd, "rb") as file:
                info = os.fstat(fd)
                if not stat.S_ISREG(info.st_mode):
                    return None
                if info.st_size > MAX_FILE_BYTES:
                    return key_of(info), _file(info, "")
                data = file.read(MAX_FILE_BYTES + 1)
                after = os.fstat(fd)
            calm = key_of(after) == key_of(info) and max(info.st_mtime_ns, info.st_ctime_ns) < began_ns - RACY_NS
            ref = self._blobs.put(data)
            return (key_of(after) if calm else None), _file(after, ref)._replace(size=len(data))
        return None

    def save_cache(self, file: Path) -> None:
        """Keep what the next process need not read again; does nothing where that cannot be."""
        rows = {path: [*key, node.at] for path, (key, node) in self._known.items() if key is not None and node.at}
        body = json.dumps({"format": _CACHE, "root": self.root, "rows": rows}, separators=(",", ":")).encode()
        new = file.with_name(f".{file.name}.{os.getpid()}.new")
        with suppress(OSError):
            try:
                fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                with open(fd, "wb") as out:
                    out.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                os.replace(new, file)
            finally:
                new.unlink(missing_ok=True)

    def load_cache(self, file: Path) -> None:
        """Take over what an earlier process kept of this directory; a cache that is garbled or another's is none."""
        try:
            digest, _, body = read_plain(file).partition(b"\n")
            value = json.loads(body) if hashlib.sha256(body).hexdigest().encode() == digest else {}
            if value.get("format") != _CACHE or value.get("root") != self.root:
                return
            self._known = {path: _known(row) for path, row in value["rows"].items()}
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
            return


def _apply(nodes: Nodes, changed: dict[str, Change]) -> None:
    for path, (_, new) in changed.items():
        if new is None:
            nodes.pop(path, None)
        else:
            nodes[path] = new


def _file(info: os.stat_result, at: str) -> Node:
    return Node("f", stat.S_IMODE(info.st_mode), info.st_mtime_ns, info.st_size, at)


def _known(row: Sequence[int | str]) -> tuple[Key, Node]:
    inode, mode, size, mtime_ns, ctime_ns = (int(n) for n in row[:5])
    kind = "l" if stat.S_ISLNK(mode) else "f"
    node = Node(kind, 0o777 if kind == "l" else stat.S_IMODE(mode), mtime_ns, 0 if kind == "l" else size, str(row[5]))
    return (inode, mode, size, mtime_ns, ctime_ns), node
