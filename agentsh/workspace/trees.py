"""What a directory held at one moment, as a value: paths to nodes, and the manifest that keeps it as a blob.

A manifest is one line of JSON. It is whole, or says only what differs from the one that it names as `snapshot`, so
that a snapshot of a large tree in which one file changed costs one short blob. Every blob that it needs stands in
it as `sha256:` and 64 digits, the one that it rests on as `"snapshot":"sha256:…"`: so `gc` can follow it without
knowing its form. docs/workspaces.md describes it.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agentsh.base.errors import BlobMissing, WorkspaceError
from agentsh.log.store import BlobStore

FORMAT = "agentsh-tree/1"
MAX_DEPTH = 64
"""Manifests between one and the whole one that it rests on: a lost blob costs no more, and reading is quick."""
MAX_LEFT_OUT = 200
KEPT_TREES = 16


class Node(NamedTuple):
    """What stands at a path. kind: `f` a file, `l` a link, `d` a directory. mode: permission bits.

    size: bytes of a file, else 0. at: the ref of a file's content, empty where that was not kept (too large, or not
    readable); the target of a link; empty for a directory.
    """

    kind: str
    mode: int
    mtime_ns: int
    size: int
    at: str

    @property
    def content(self) -> tuple[str, int, str]:
        """All but the time and a directory's mode: whether two nodes differ for somebody who looks at them."""
        return (self.kind, 0 if self.kind in "dl" else self.mode, self.at or str(self.size))


Nodes = dict[str, Node]
Change = tuple[Node | None, Node | None]
"""Before and after; None where there is nothing."""


class Tree(NamedTuple):
    """A directory's content. left_out: caches that were passed over, and files that were too large."""

    nodes: Nodes
    left_out: tuple[str, ...] = ()


def changes(before: Nodes, after: Nodes) -> dict[str, Change]:
    """Return what differs between two trees, by path."""
    found: dict[str, Change] = {}
    for path, node in after.items():
        old = before.get(path)
        if old != node:
            found[path] = (old, node)
    if len(before) + sum(old is None for old, _ in found.values()) != len(after):
        found.update((path, (node, None)) for path, node in before.items() if path not in after)
    return found


def sizes(nodes: Mapping[str, Node]) -> tuple[int, int]:
    """Return (files and links, bytes of the files)."""
    files = [node.size for node in nodes.values() if node.kind != "d"]
    return len(files), sum(files)


def encode(tree: Tree, differs: Mapping[str, Change] | None = None, base: str | None = None, depth: int = 0) -> bytes:
    """Return a manifest: of the whole tree, or with `base` of what differs from that."""
    if base is None or differs is None:
        nodes, gone, base, depth = tree.nodes, [], None, 0
    else:
        nodes = {path: new for path, (_, new) in differs.items() if new is not None}
        gone = sorted(path for path, (_, new) in differs.items() if new is None)
    manifest = {
        "format": FORMAT,
        "snapshot": base,
        "depth": depth,
        "left_out": tree.left_out[:MAX_LEFT_OUT],
        "gone": gone,
        "set": {path: nodes[path] for path in sorted(nodes)},
    }
    return json.dumps(manifest, separators=(",", ":")).encode()


class Manifest(NamedTuple):
    """A manifest as it was read. nodes, gone: relative to base, where it has one."""

    base: str | None
    depth: int
    left_out: tuple[str, ...]
    nodes: Nodes
    gone: tuple[str, ...]


def decode(data: bytes) -> Manifest:
    """Return what a manifest says.

    Raises:
        ValueError: it is none, or of a newer format.
    """
    try:
        value: Any = json.loads(data)
        if value["format"] != FORMAT:
            raise ValueError(f"a manifest of another format, {str(value['format'])[:40]!r}")
        base = value["snapshot"]
        nodes = {path: Node(*row) for path, row in value["set"].items()}
        good = all(
            type(n.mode) is int and type(n.mtime_ns) is int and type(n.size) is int and n.kind in ("f", "l", "d")
            and isinstance(n.at, str) for n in nodes.values()
        )  # fmt: skip
        if not good or not (base is None or isinstance(base, str)):
            raise ValueError("a manifest whose members are of the wrong kind")
        return Manifest(base, int(value["depth"]), tuple(value["left_out"]), nodes, tuple(value["gone"]))
    except (KeyError, TypeError, OverflowError, RecursionError, AttributeError) as error:
        raise ValueError(f"no manifest: {type(error).__name__}") from None


def manifest_refs(data: bytes) -> list[str]:
    """Return the refs of all blobs that a manifest needs: contents, and the manifest it rests on. For `gc`.

    The manifest it rests on needs more; follow it too.

    Raises:
        ValueError: it is no manifest.
    """
    read = decode(data)
    refs = {node.at for node in read.nodes.values() if node.kind == "f" and node.at}
    return sorted(refs) + ([read.base] if read.base is not None else [])


class Manifests:
    """Trees by the ref of their manifest; the last ones are kept."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._kept: OrderedDict[str, tuple[Tree, int]] = OrderedDict()

    def tree(self, ref: str) -> Tree:
        """Return a tree; not to be changed.

        Raises:
            BlobMissing: a manifest that it takes is missing or damaged.
        """
        return self._load(ref)[0]

    def depth(self, ref: str) -> int:
        """Return how many manifests this one rests on.

        Raises:
            BlobMissing: as `tree`.
        """
        return self._load(ref)[1]

    def _load(self, ref: str) -> tuple[Tree, int]:
        chain: list[Manifest] = []
        at: str | None = ref
        nodes: Nodes = {}
        while at is not None:
            kept = self._kept.get(at)
            if kept is not None:
                nodes = kept[0].nodes if not chain else dict(kept[0].nodes)
                break
            if len(chain) > MAX_DEPTH:
                raise BlobMissing(f"the manifest {ref} rests on more than {MAX_DEPTH} others")
            chain.append(self._read(at))
            at = chain[-1].base
        if not chain:
            self._kept.move_to_end(ref)
            return self._kept[ref]
        for read in reversed(chain):
            for path in read.gone:
                nodes.pop(path, None)
            nodes.update(read.nodes)
        found = (Tree(nodes, chain[0].left_out), chain[0].depth)
        self._kept[ref] = found
        while len(self._kept) > KEPT_TREES:
            self._kept.popitem(last=False)
        return found

    def _read(self, ref: str) -> Manifest:
        try:
            return decode(self._blobs.get(ref))
        except ValueError as error:
            raise BlobMissing(f"the snapshot {ref} does not read: {error}") from None


def unreadable(error: BlobMissing) -> WorkspaceError:
    """Return what to say of a snapshot of which a blob is not there."""
    why = "a copy that `pull` brings holds no snapshots; else `agentsh verify` tells what is gone"
    return WorkspaceError(f"the snapshot of its files is not here whole: {error.message}", hint=why)


def below(paths: Iterable[str], directory: str) -> list[str]:
    """Return the paths inside a directory."""
    return [path for path in paths if path.startswith(directory + "/")]
