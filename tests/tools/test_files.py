"""read, write, list and glob say exactly what is there, within their limits."""

import os
import stat
from importlib import import_module
from pathlib import Path

import pytest

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.tools.read import MAX_LINES
from agentsh.tools.textfile import MAX_SHOWN_BYTES
from tests.tools.conftest import Call


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\n\tb  \n", "a\n\tb  \n"),
        (b"a", "[f: no line end after the last line]\na\n"),
        (b"", "[f is empty]"),
        (b"\n", "\n"),
        (b"a\r\nb\r\n", "[f: CRLF line ends]\na\nb\n"),
        (b"a\r\nb\n", "[f: mixed line ends]\na\nb\n"),
        (b"\xef\xbb\xbfa\n", "[f: byte order mark]\na\n"),
        (b"caf\xe9\n", "[f: latin-1]\ncafé\n"),
        ("\ufeffü\n".encode("utf-16-be"), "[f: utf-16-be, byte order mark]\nü\n"),
        ("a\u2028b\x0cc\n".encode(), "a\u2028b\x0cc\n"),
    ],
)
async def test_read(root: Path, call: Call, data: bytes, text: str) -> None:
    (root / "f").write_bytes(data)
    assert (await call("read", path="f")).for_model == text


async def test_one_line_is_one_line(root: Path, call: Call) -> None:
    (root / "f").write_text("one\n")
    assert (await call("read", path="f")).for_user == "read f · 1 line"
    assert "only 1 line:" in (await call("read", path="f", offset=2)).for_model
    (root / "f").write_text("1\n2\n")
    assert "[1 more line: read on" in (await call("read", path="f", limit=1)).for_model


async def test_read_a_part(root: Path, call: Call) -> None:
    (root / "f").write_text("".join(f"{i}\n" for i in range(1, 11)))
    outcome = await call("read", path="f", offset=3, limit=2)
    assert outcome.for_model == "[f: lines 3-4 of 10]\n3\n4\n[6 more lines: read on with offset=5]"
    assert outcome.for_user == "read f · lines 3-4 of 10"
    assert (await call("read", path="f", offset=10)).for_model == "[f: lines 10-10 of 10]\n10\n"
    assert (await call("read", path="f", offset=0, limit=-5)).for_model.startswith("[f: lines 1-1 of 10]\n1\n")
    past = await call("read", path="f", offset=11)
    assert (past.status, "only 10 lines" in past.for_model) == ("error", True)
    assert (await call("read", path="f")).for_user == "read f · 10 lines"


async def test_read_stays_within_its_limits(root: Path, call: Call) -> None:
    (root / "many").write_text("x\n" * 5_000)
    text = (await call("read", path="many")).for_model
    assert text.endswith(f"[{5_000 - MAX_LINES} more lines: read on with offset={MAX_LINES + 1}]")
    (root / "long").write_text("ü" * 999 + "\n" + ("x" * 999 + "\n") * 100)
    text = (await call("read", path="long")).for_model
    assert len(text.encode()) < MAX_SHOWN_BYTES + 200
    assert "read on with offset=" in text
    (root / "line").write_text("€" * 100_000)
    text = (await call("read", path="line")).for_model
    assert len(text.encode()) < MAX_SHOWN_BYTES + 200
    assert "[line 1 is cut: it has 300,000 bytes]" in text
    assert "\ufffd" not in text


async def test_reading_on_gives_the_whole_file(root: Path, call: Call) -> None:
    whole = "".join(f"{i} {'y' * (i % 300)}\n" for i in range(3_000))
    (root / "f").write_text(whole)
    parts: list[str] = []
    offset = 1
    while offset:
        lines = (await call("read", path="f", offset=offset)).for_model.split("\n")[1:]
        parts += [line + "\n" for line in lines[:-1]]
        offset = int(lines[-1].rpartition("=")[2][:-1]) if lines[-1] else 0
    assert "".join(parts) == whole


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04" + bytes(100), "ZIP archive"),
        (b"\x7fELF" + bytes(100), "ELF binary"),
        (b"a\0b", "binary file"),
        (os.urandom(64) * 50 + b"\0", "binary file"),
    ],
)
async def test_read_something_that_is_no_text(root: Path, call: Call, data: bytes, kind: str) -> None:
    (root / "f.txt").write_bytes(data)
    outcome = await call("read", path="f.txt")
    assert f"f.txt is a {kind}, not text" in outcome.for_model
    assert len(outcome.for_model) < 600
    assert "\0" not in outcome.for_model


async def test_an_image_by_name_only_is_read_as_what_it_is(root: Path, call: Call) -> None:
    (root / "a.png").write_text("<html>\n")
    assert (await call("read", path="a.png")).for_model == "<html>\n"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n..", b"\xff\xd8\xff\xe0" + bytes(99), b"RIFF\0\0\0\0WEBPVP8 "])
async def test_read_a_damaged_image(root: Path, call: Call, data: bytes) -> None:
    (root / "f.txt").write_bytes(data)
    with pytest.raises(ToolFailed, match=r"f\.txt is damaged"):
        await call("read", path="f.txt")


async def test_read_refusals_say_what_to_do(root: Path, call: Call) -> None:
    (root / "src").mkdir()
    (root / "src" / "cart.py").write_text("x")
    (root / "huge").touch()
    os.truncate(root / "huge", 11 * 1024 * 1024)
    for path, why in (("src/card.py", "did you mean src/cart.py?"), ("src", "list tool"), ("huge", "use grep")):
        with pytest.raises(PathRefused, match=why.replace("?", "\\?")):
            await call("read", path=path)


async def test_write(root: Path, call: Call) -> None:
    outcome = await call("write", path="a/b/f.py", content="x\ny\n")
    assert (root / "a/b/f.py").read_text() == "x\ny\n"
    assert outcome.for_model == "created a/b/f.py (2 lines, 4 bytes)"
    assert outcome.for_user == "write a/b/f.py · created, 2 lines"
    assert [(e.path, e.before, e.after) for e in outcome.edits] == [("a/b/f.py", None, b"x\ny\n")]
    (root / "a/b/f.py").chmod(0o755)
    outcome = await call("write", path=str(root / "a/b/f.py"), content="ü")
    assert outcome.for_model == "replaced a/b/f.py (1 line, 2 bytes)"
    assert outcome.edits[0].before == b"x\ny\n"
    assert stat.S_IMODE((root / "a/b/f.py").stat().st_mode) == 0o755
    outcome = await call("write", path="a/b/f.py", content="ü")
    assert "already" in outcome.for_model
    assert outcome.edits == ()


async def test_write_exactly(root: Path, call: Call) -> None:
    for content in ("a\r\nb\r", "\ufeffa", "a\n\n\n", "", "\0\x1b"):
        await call("write", path="f", content=content)
        assert (root / "f").read_bytes() == content.encode()


async def test_write_refusals(root: Path, call: Call) -> None:
    (root / "dir").mkdir()
    (root / "file").write_text("x")
    for path, content, why in (
        ("dir", "x", "directory"),
        ("file/x", "x", "no directory"),
        ("f", "\ud800", "surrogate"),
        ("f", "x" * 11_000_000, "more than the limit"),
    ):
        with pytest.raises(ToolFailed, match=why):
            await call("write", path=path, content=content)
    assert sorted(os.listdir(root)) == ["dir", "file"]


@pytest.fixture
def tree(root: Path) -> Path:
    for path in ("a.py", "b.ts", "src/c.py", "src/deep/d.py", "src/deep/e.tsx", "src/x.log", "node_modules/m/i.ts"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to("src")
    return root


async def test_list_a_directory(tree: Path, call: Call) -> None:
    outcome = await call("list")
    assert outcome.for_model == ".gitignore\t6\na.py\t1\nb.ts\t1\nlink@\nnode_modules/\nsrc/"
    assert outcome.for_user == "list . · 6 entries"
    assert (await call("list", path="src")).for_model == "c.py\t1\ndeep/\nx.log\t1"
    assert (await call("list", path="")).for_model == outcome.for_model


async def test_list_says_what_to_use_instead(tree: Path, call: Call) -> None:
    for path, why in (("a.py", "no directory; use read"), ("src/*.py", "use glob"), ("absent", "no such")):
        with pytest.raises(PathRefused, match=why):
            await call("list", path=path)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"pattern": "*.py"}, ["a.py", "src/c.py", "src/deep/d.py"]),
        ({"pattern": "**/*.py"}, ["a.py", "src/c.py", "src/deep/d.py"]),
        ({"pattern": "{root}/src/*.py"}, ["src/c.py"]),
        ({"pattern": "src/*.py"}, ["src/c.py"]),
        ({"pattern": "src/*"}, ["src/c.py"]),
        ({"pattern": "src/**"}, ["src/c.py", "src/deep/d.py", "src/deep/e.tsx"]),
        ({"pattern": "src/"}, ["src/c.py", "src/deep/d.py", "src/deep/e.tsx"]),
        ({"pattern": "./src/**/d.*"}, ["src/deep/d.py"]),
        ({"pattern": "*.{ts,tsx}"}, ["b.ts", "src/deep/e.tsx"]),
        ({"pattern": "[ab].*"}, ["a.py", "b.ts"]),
        ({"pattern": "[!a].p?"}, ["src/c.py", "src/deep/d.py"]),
        ({"path": "src", "pattern": "*.py"}, ["src/c.py", "src/deep/d.py"]),
        ({"path": "src", "pattern": "deep/*"}, ["src/deep/d.py", "src/deep/e.tsx"]),
        ({"pattern": "*.log"}, []),
        ({"pattern": "../*"}, []),
        ({"pattern": "[z-a]"}, []),
        ({"pattern": "["}, []),
        ({"path": "node_modules", "pattern": "*.ts"}, ["node_modules/m/i.ts"]),
    ],
)
async def test_glob(tree: Path, call: Call, arguments: dict[str, str], names: list[str]) -> None:
    given = {name: value.replace("{root}", str(tree)) for name, value in arguments.items()}
    outcome = await call("glob", **given)
    text = outcome.for_model
    assert ([] if text.startswith("[") else [line.split("\t")[0] for line in text.split("\n")]) == names
    assert outcome.for_user.endswith(f" · {len(names)} file{'s' * (len(names) != 1)}")


async def test_names_are_capped(root: Path, call: Call) -> None:
    for i in range(600):
        (root / f"{i:03}").touch()
    for name, arguments in (("list", {}), ("glob", {"pattern": "*"})):
        lines = (await call(name, **arguments)).for_model.split("\n")
        assert len(lines) == 501
        assert lines[-1].startswith("[100 more names left out")


async def test_glob_patterns_cannot_hang(tree: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ("a" * 200)).touch()
    for pattern in ("*a" * 60 + "b", "**/" * 60 + "b", "?" * 200 + "*" * 200, "{a,b}" * 5):
        await call("glob", pattern=pattern)
    with pytest.raises(ToolFailed, match="alternatives"):
        await call("glob", pattern="{a,b}" * 40)
    monkeypatch.setattr(import_module("agentsh.tools.glob"), "LIMIT_S", 0.0)
    outcome = await call("glob", pattern="*")
    assert "stopped at the time limit" in outcome.for_model
    assert outcome.for_user.endswith("stopped early")


async def test_a_name_of_two_lines_makes_no_lines_of_its_own(root: Path, call: Call) -> None:
    (root / "a\nb.py:1:secret").write_text("x\n")
    assert (await call("list")).for_model == "a\\nb.py:1:secret\t2"
    assert (await call("glob", pattern="*")).for_model == "a\\nb.py:1:secret\t2"
    assert (await call("grep", pattern="x")).for_model == "a\\nb.py:1:secret:1:x"


async def test_a_link_that_leads_nowhere_is_named_as_one(root: Path, call: Call) -> None:
    (root / "l").symlink_to("nowhere")
    with pytest.raises(PathRefused, match="no such file or directory; it is a link to something that is not there"):
        await call("read", path="l")
