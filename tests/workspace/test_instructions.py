"""AGENTS.md files: found from the root of a workspace down, never above it, and never through a way out."""

from pathlib import Path

from agentsh.workspace import instructions
from agentsh.workspace.instructions import find, read


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"in {name}")


def test_the_root_is_first_then_what_is_nearest_to_it(root: Path) -> None:
    put(root, "web/AGENTS.md", "AGENTS.md", "api/v1/AGENTS.md", "api/AGENTS.md", "web/other.md")
    assert find(str(root)) == ["AGENTS.md", "api/AGENTS.md", "web/AGENTS.md", "api/v1/AGENTS.md"]
    assert read(str(root), "api/v1/AGENTS.md") == "in api/v1/AGENTS.md"


def test_the_look_up_stops_at_the_root(root: Path) -> None:
    put(root.parent, "AGENTS.md")
    put(root, "a.txt")
    assert find(str(root)) == []


def test_what_is_nobodys_work_is_passed_over(root: Path) -> None:
    put(root, "node_modules/x/AGENTS.md", ".hidden/AGENTS.md", ".git/AGENTS.md", "vendor/x/AGENTS.md", "b/AGENTS.md")
    (root / ".gitignore").write_text("vendor/\n")
    assert find(str(root)) == ["b/AGENTS.md"]
    (root / "b" / ".gitignore").write_text("gen\n")
    put(root, "b/gen/deep/AGENTS.md", "b/src/AGENTS.md")
    assert find(str(root)) == ["b/AGENTS.md", "b/src/AGENTS.md"]


def test_links(root: Path) -> None:
    put(root, "CLAUDE.md", "real/AGENTS.md")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    (root / "loop").symlink_to(root)
    (root / "real" / "sub").mkdir()
    (root / "real" / "sub" / "AGENTS.md").symlink_to(root.parent / "outside" / "secret")
    assert find(str(root)) == ["AGENTS.md", "real/AGENTS.md", "real/sub/AGENTS.md"]
    assert read(str(root), "AGENTS.md") == "in CLAUDE.md", "a link inside is followed"
    assert read(str(root), "real/sub/AGENTS.md") is None, "a link that leads out is not"


def test_what_cannot_be_read_is_none(root: Path) -> None:
    (root / "AGENTS.md").mkdir()
    assert read(str(root), "AGENTS.md") is None
    assert read(str(root), "gone/AGENTS.md") is None
    (root / "bad").mkdir()
    (root / "bad" / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9")
    assert read(str(root), "bad/AGENTS.md") == "caf\ufffd"


def test_of_a_file_of_megabytes_the_start_is_read(root: Path) -> None:
    (root / "AGENTS.md").write_bytes(b"x" * (instructions.MAX_FILE_BYTES + 5))
    assert read(str(root), "AGENTS.md") == "x" * instructions.MAX_FILE_BYTES


def test_a_large_tree_is_not_walked_to_its_end(root: Path) -> None:
    for n in range(2_100):
        (root / f"d{n:04}").mkdir()
    put(root, "d0001/AGENTS.md", "d2099/AGENTS.md")
    assert find(str(root)) == ["d0001/AGENTS.md"]
