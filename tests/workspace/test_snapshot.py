"""Snapshots: what they hold, what they pass over and say so, and when a file is read again."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from agentsh.base.errors import BlobMissing, WorkspaceError
from agentsh.ports.snapshots import By, Step
from agentsh.ports.tool import Edit
from agentsh.testing import MemoryBlobs
from agentsh.workspace import snapshot as module
from agentsh.workspace import snapshot_walk
from agentsh.workspace.copy import TooMuch
from agentsh.workspace.git_names import KEEP_MARK
from agentsh.workspace.snapshot import Snapshotter
from agentsh.workspace.snapshot_diff import content
from agentsh.workspace.snapshot_restore import Restorer, plan
from agentsh.workspace.snapshot_walk import Git
from agentsh.workspace.trees import MAX_DEPTH, Manifests, Node, decode, manifest_refs


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def shot(root: Path, blobs: MemoryBlobs, git: Git = "own") -> Snapshotter:
    snapshotter = Snapshotter(str(root), blobs, git=git)
    snapshotter.take("start")
    return snapshotter


def write(root: Path, path: str, data: bytes = b"x") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_nothing_new_is_no_snapshot(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "a/b")
    one = shot(root, blobs)
    assert one.take("tool") == ([], {})
    assert one.take_paths(["a/b", "nothing/here"], "tool") == ([], {})


def test_caches_are_passed_over_and_named(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "node_modules/m/i.js")
    write(root, "pkg/__pycache__/m.pyc")
    write(root, "env/pyvenv.cfg")
    write(root, "env/bin/python")
    write(root, "target/CACHEDIR.TAG")
    write(root, "sub/.gitignore", b"build/\n")
    write(root, "sub/build/out.o")
    write(root, "build/setup.sh")  # nobody says that this one is a cache
    write(root, "kept/.gitignore", b"!node_modules\n")
    write(root, "kept/node_modules/mine.js")
    write(root, "debug.log")
    write(root, ".gitignore", b"*.log\n")
    one = shot(root, blobs)
    assert one.left_out == ("env", "node_modules", "pkg/__pycache__", "sub/build", "target")
    files = {path for path, node in one.nodes.items() if node.kind == "f"}
    assert files == {
        "build/setup.sh", "sub/.gitignore", "kept/.gitignore", "kept/node_modules/mine.js", "debug.log", ".gitignore",
    }  # fmt: skip
    assert Manifests(blobs).tree(one.ref or "").left_out == one.left_out


def test_a_file_that_a_tool_wrote_into_a_cache_counts(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "node_modules/m/i.js")
    one = shot(root, blobs)
    file = write(root, "node_modules/m/patched.js", b"1")
    (taken,) = one.take_edits([Edit("node_modules/m/patched.js", None, b"1")])
    assert taken.by == "tool"
    again = Snapshotter(str(root), blobs)
    again.load(taken.ref)
    assert again.take("outside")[1] == {}
    file.write_bytes(b"22")
    assert "node_modules/m/patched.js" in again.take("outside")[1]
    file.unlink()
    assert again.take("outside")[1]["node_modules/m/patched.js"][1] is None


def test_nested_repositories_empty_directories_and_odd_names(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "nested/file")
    subprocess.run(["git", "init", "-q", "nested"], cwd=root, check=True)
    subprocess.run(["git", "init", "-q", "unborn"], cwd=root, check=True)
    (root / "empty" / "er").mkdir(parents=True)
    write(root, os.fsdecode(b"caf\xe9"))
    (root / "link").symlink_to("/etc")
    os.mkfifo(root / "fifo")
    one = shot(root, blobs)
    nodes = Manifests(blobs).tree(one.ref or "").nodes
    assert nodes == one.nodes
    assert {"nested/.git/HEAD", "nested/file", "unborn/.git/HEAD", "empty/er", os.fsdecode(b"caf\xe9")} <= set(nodes)
    assert nodes["link"].at == "/etc"
    assert "fifo" not in nodes
    assert not any(path.startswith("link/") for path in nodes)


def test_git_rules(root: Path, blobs: MemoryBlobs) -> None:
    for name in ("pack-base.pack", "pack-base.idx", "pack-own.pack", "pack-own.keep"):
        write(root, f".git/objects/pack/{name}")
    write(root, ".git/objects/pack/pack-base.keep", KEEP_MARK + b"\n")
    write(root, ".git/objects/info/alternates")
    write(root, "sub/.git/objects/info/alternates")
    write(root, "file")
    own, shared, none = (shot(root, blobs, rule) for rule in ("own", "shared", "none"))
    assert ".git/objects/pack/pack-base.pack" in own.nodes
    packs = {path for path in shared.nodes if path.startswith(".git/objects/pack/")}
    assert packs == {".git/objects/pack/pack-own.pack", ".git/objects/pack/pack-own.keep"}
    assert ".git/objects/info/alternates" not in shared.nodes
    assert "sub/.git/objects/info/alternates" in shared.nodes
    assert {path for path in none.nodes if none.nodes[path].kind == "f"} == {"file"}


def test_a_file_that_was_written_just_now_is_read_again(root: Path, blobs: MemoryBlobs) -> None:
    """Two writes within one tick of the kernel's clock can leave the same stamps: git's racy rule."""
    file = write(root, "f", b"1")
    one = shot(root, blobs)
    assert one._known["f"][0] is None
    time.sleep(3 * module.RACY_NS / 1e9)
    one.take("tool")
    assert one._known["f"][0] == snapshot_walk.key_of(file.stat())
    file.write_bytes(b"2")
    one.take("tool")
    assert one._known["f"][0] is None


def test_unchanged_files_are_not_read(root: Path, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    old = 10**18
    for n in range(20):
        os.utime(write(root, f"f{n}"), ns=(old, old))
    monkeypatch.setattr(module, "RACY_NS", -(10**12))  # as if they had been written long ago
    one = shot(root, blobs)
    reads: list[str] = []
    really = one._content

    def counted(path: str) -> tuple[snapshot_walk.Key | None, Node] | None:
        reads.append(path)
        return really(path)

    monkeypatch.setattr(one, "_content", counted)
    write(root, "f3", b"new")
    assert set(one.take("tool")[1]) == {"f3"}
    assert reads == ["f3"]


def test_a_manifest_says_only_what_differs_and_names_what_it_needs(root: Path, blobs: MemoryBlobs) -> None:
    for n in range(300):
        write(root, f"d/f{n}", b"%d" % n)
    one = shot(root, blobs)
    first = one.ref or ""
    depths = []
    for n in range(MAX_DEPTH + 5):
        write(root, "d/f1", b"changed %d" % n)
        one.take_paths(["d/f1"], "tool")
        depths.append(decode(blobs.get(one.ref or "")).depth)
    assert depths[:3] == [1, 2, 3]
    assert max(depths) == MAX_DEPTH - 1
    assert 0 in depths
    read = decode(blobs.get(one.ref or ""))
    assert read.base is not None
    assert set(read.nodes) <= {"d", "d/f1"}
    assert manifest_refs(blobs.get(one.ref or "")) == [one.nodes["d/f1"].at, read.base]
    assert len(manifest_refs(blobs.get(first))) == 300
    assert Manifests(blobs).tree(one.ref or "").nodes == one.nodes


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"null", b'{"format":"agentsh-tree/2"}', b'{"format":"agentsh-tree/1"}', b"\xff",
        b'{"format":"agentsh-tree/1","snapshot":null,"depth":0,"left_out":[],"gone":[],"set":{"a":["f",1]}}',
        b'{"format":"agentsh-tree/1","snapshot":7,"depth":0,"left_out":[],"gone":[],"set":{}}',
        b'{"format":"agentsh-tree/1","snapshot":null,"depth":0,"left_out":[],"gone":[],"set":{"a":["x",1,1,1,""]}}',
        b'{"format":"agentsh-tree/1","snapshot":null,"depth":0,"left_out":[],"gone":[],"set":{"a":["f","7",1,1,""]}}',
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_told(blobs: MemoryBlobs, data: bytes) -> None:
    ref = blobs.put(data)
    with pytest.raises(BlobMissing):
        Manifests(blobs).tree(ref)
    with pytest.raises(ValueError):
        manifest_refs(data)


def test_a_manifest_that_rests_on_itself_ends(blobs: MemoryBlobs) -> None:
    """No honest hash does that; a store that lies must not hang us."""
    ref = "sha256:" + "0" * 64
    blobs._bytes[ref] = b'{"format":"agentsh-tree/1","snapshot":"%b","depth":0,"left_out":[],"gone":[],"set":{}}' % (
        ref.encode()
    )
    with pytest.raises(BlobMissing):
        Manifests(blobs).tree(ref)


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "", "a//b", "./a", "nul\0"])
def test_a_manifest_cannot_lead_outside(root: Path, blobs: MemoryBlobs, path: str) -> None:
    node = Node("f", 0o644, 1, 1, blobs.put(b"x"))
    with pytest.raises((WorkspaceError, ValueError)):
        Restorer(str(root), blobs, {}, {path: node}).run([path])
    assert sorted(p.name for p in root.parent.iterdir()) == ["outside", "ws"]
    assert list(root.iterdir()) == []


def test_a_link_on_the_way_is_not_followed(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "d/secret", b"mine")
    one = shot(root, blobs)
    was = dict(one.nodes)
    (root / "d").rename(root / "e")
    (root / "d").symlink_to("../outside")
    with pytest.raises(WorkspaceError):
        Restorer(str(root), blobs, {}, was).run(["d/secret"])
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret of somebody else"
    one.take("tool")
    assert one.nodes["d"].kind == "l"
    assert "d/secret" not in one.nodes


def test_a_file_that_is_too_large_is_named_and_cannot_be_made_again(
    root: Path, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    big = write(root, "big", b"y" * 11)
    one = shot(root, blobs)
    assert one.left_out == ("big",)
    steps = [Step(1, one.ref or "", "start")]
    big.unlink()
    steps += [Step(2, t.ref, "tool") for t in one.take("tool")[0]]
    winding = plan(one.manifests, blobs, str(root), steps, 1, ())
    assert (winding.paths, winding.lost) == ((), ("big",))


def test_a_directory_that_is_too_large_is_refused(
    root: Path, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_walk, "MAX_ENTRIES", 3)
    for n in range(4):
        write(root, f"f{n}")
    with pytest.raises(TooMuch):
        shot(root, blobs)


def test_the_cache_is_used_and_a_wrong_one_is_not(root: Path, blobs: MemoryBlobs, tmp_path: Path) -> None:
    old = write(root, "f", b"old")
    one = shot(root, blobs)
    one._known = {path: (snapshot_walk.key_of(os.lstat(root / path)), node) for path, node in one.nodes.items()}
    cache = tmp_path / "cache"
    one.save_cache(cache)
    assert cache.stat().st_mode & 0o777 == 0o600

    def reads(name: Path) -> bool:
        again = Snapshotter(str(root), blobs)
        again.load_cache(name)
        return "f" not in again._known

    assert not reads(cache)
    for damage in (b"", b"x", cache.read_bytes()[:-2] + b" }", cache.read_bytes().replace(b'"f"', b'"g"')):
        (tmp_path / "bad").write_bytes(damage)
        assert reads(tmp_path / "bad")
    other = Snapshotter(str(tmp_path), blobs)
    other.load_cache(cache)
    assert other._known == {}
    old.write_bytes(b"new")
    again = Snapshotter(str(root), blobs)
    again.load_cache(cache)
    again.take("start")
    assert content(blobs, again.nodes["f"]) == b"new"


def test_what_the_user_changed_before_an_edit_is_kept_apart(root: Path, blobs: MemoryBlobs) -> None:
    file = write(root, "f", b"one")
    one = shot(root, blobs)
    file.write_bytes(b"two, by the user")
    file.write_bytes(b"three, by the tool")
    outside, ours = one.take_edits([Edit("f", b"two, by the user", b"three, by the tool")])
    assert (outside.by, ours.by) == ("outside", "tool")
    assert content(blobs, Manifests(blobs).tree(outside.ref).nodes["f"]) == b"two, by the user"
    assert content(blobs, one.nodes["f"]) == b"three, by the tool"


def test_what_was_just_written_from_a_tree_need_not_be_read(
    root: Path, blobs: MemoryBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a/f", b"1")
    (root / "l").symlink_to("a")
    one = shot(root, blobs)
    target = tmp_path / "new"
    target.mkdir()
    Restorer(str(target), blobs, {}, one.nodes).run(list(one.nodes))
    other = Snapshotter(str(target), blobs)
    other.load(one.ref or "")
    other.adopt(Manifests(blobs).tree(one.ref or ""))
    monkeypatch.setattr(other, "_content", lambda path: pytest.fail("read"))
    assert other.take("outside") == ([], {})


def moves(root: Path, blobs: MemoryBlobs) -> tuple[Snapshotter, list[Step]]:
    one = shot(root, blobs)
    return one, [Step(1, one.ref or "", "start")]


def then(one: Snapshotter, steps: list[Step], by: By) -> None:
    steps += [Step(len(steps) + 1, taken.ref, taken.by) for taken in one.take(by)[0]]


def back(one: Snapshotter, blobs: MemoryBlobs, steps: list[Step], seq: int) -> tuple[str, ...]:
    then(one, steps, "outside")
    winding = plan(one.manifests, blobs, one.root, steps, seq, ())
    Restorer(one.root, blobs, one.nodes, one.manifests.tree(winding.target).nodes).run(winding.paths)
    then(one, steps, "rewind")
    return winding.conflicts


def test_m190_a_user_edit_is_a_conflict_and_nothing_is_overwritten(root: Path, blobs: MemoryBlobs) -> None:
    shared, mine = write(root, "shared", b"0"), write(root, "mine", b"0")
    one, steps = moves(root, blobs)
    shared.write_bytes(b"agent")
    write(root, "only agent", b"agent")
    then(one, steps, "tool")
    shared.write_bytes(b"agent and user")
    mine.write_bytes(b"user")
    assert back(one, blobs, steps, 1) == ("shared",)
    assert shared.read_bytes() == b"agent and user"
    assert mine.read_bytes() == b"user"
    assert not (root / "only agent").exists()


def test_m190_also_where_the_agent_went_on_from_the_user_edit(root: Path, blobs: MemoryBlobs) -> None:
    shared = write(root, "shared", b"0")
    one, steps = moves(root, blobs)
    for data, by in ((b"agent", "tool"), (b"user", "outside"), (b"agent again", "tool")):
        shared.write_bytes(data)
        then(one, steps, by)  # type: ignore[arg-type]
    assert back(one, blobs, steps, 1) == ("shared",)
    assert shared.read_bytes() == b"agent again"
    assert back(one, blobs, steps, 3) == ()  # since then only the agent has written
    assert shared.read_bytes() == b"user"


def test_m192_a_file_that_came_back_goes_again(root: Path, blobs: MemoryBlobs) -> None:
    file = write(root, "f", b"0")
    one, steps = moves(root, blobs)
    file.unlink()
    then(one, steps, "tool")
    write(root, "f", b"recreated")
    then(one, steps, "tool")
    assert back(one, blobs, steps, 2) == ()
    assert not file.exists()


def test_a_file_of_the_user_where_the_session_removed_a_directory(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "d/deep/f", b"0")
    one, steps = moves(root, blobs)
    subprocess.run(["rm", "-r", "d"], cwd=root, check=True)
    then(one, steps, "tool")
    write(root, "d", b"the user's")
    assert back(one, blobs, steps, 1) == ("d",)
    assert (root / "d").read_bytes() == b"the user's"


def test_a_directory_with_something_of_the_user_in_it_stays(root: Path, blobs: MemoryBlobs) -> None:
    one, steps = moves(root, blobs)
    write(root, "d/agent")
    then(one, steps, "tool")
    write(root, "d/user")
    assert back(one, blobs, steps, 1) == ()
    assert [p.name for p in (root / "d").iterdir()] == ["user"]


def test_a_repository_goes_back_whole_or_not_at_all(root: Path, blobs: MemoryBlobs) -> None:
    write(root, ".git/HEAD", b"ref: refs/heads/main\n")
    write(root, ".git/refs/heads/main", b"1\n")
    one, steps = moves(root, blobs)
    write(root, ".git/refs/heads/main", b"2\n")
    write(root, ".git/index", b"2\n")
    then(one, steps, "tool")
    write(root, ".git/refs/heads/main", b"3, by the user\n")
    assert back(one, blobs, steps, 1) == (".git",)
    assert (root / ".git" / "index").read_bytes() == b"2\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_forbids_writing_goes_back_too(root: Path, blobs: MemoryBlobs) -> None:
    write(root, "d/f", b"0")
    one, steps = moves(root, blobs)
    write(root, "d/f", b"1")
    (root / "d").chmod(0o500)
    then(one, steps, "tool")
    assert back(one, blobs, steps, 1) == ()
    assert (root / "d" / "f").read_bytes() == b"0"
    assert (root / "d").stat().st_mode & 0o777 == 0o755
