"""grep finds what is there, says when it stopped early, and no pattern can hang it."""

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.tools import grep as module
from agentsh.tools.searching import Searcher, portable, weight
from agentsh.workspace.local import LocalWorkspace
from tests.tools.conftest import Call


@pytest.fixture(params=["ripgrep", "library"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is found does not depend on whether ripgrep is installed."""
    if request.param == "ripgrep" and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if request.param == "library":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    return str(request.param)


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "a.py").write_text("import os\nx = 1\n\tindented(x)\n")
    (root / "src" / "b.py").write_text("IMPORT\r\nimport sys\r\n")
    (root / "src" / "c.txt").write_bytes(b"caf\xe9 import\n")
    (root / "binary").write_bytes(b"import\0import\n")
    (root / "ignored.log").write_text("import\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to("a.py")
    return root


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "import"}, ["a.py:1:import os", "src/b.py:2:import sys", "src/c.txt:1:café import"]),
        ({"pattern": "import", "glob": "*.py"}, ["a.py:1:import os", "src/b.py:2:import sys"]),
        ({"pattern": "import", "path": "src"}, ["src/b.py:2:import sys", "src/c.txt:1:café import"]),
        ({"pattern": "import", "path": "src", "glob": "b.*"}, ["src/b.py:2:import sys"]),
        ({"pattern": "import", "path": "a.py"}, ["a.py:1:import os"]),
        ({"pattern": "import", "path": "ignored.log"}, ["ignored.log:1:import"]),
        (
            {"pattern": "^import", "ignore_case": True, "path": "src/b.py"},
            ["src/b.py:1:IMPORT", "src/b.py:2:import sys"],
        ),
        ({"pattern": "sys$"}, ["src/b.py:2:import sys"]),
        ({"pattern": "é"}, ["src/c.txt:1:café import"]),
        ({"pattern": r"^\s+\w+\("}, ["a.py:3:\tindented(x)"]),
        ({"pattern": r"os(?!\s*x)"}, ["a.py:1:import os"]),
        ({"pattern": r"\Ax"}, ["a.py:2:x = 1"]),
        ({"pattern": r"os\s+x"}, []),
        ({"pattern": "nowhere"}, []),
    ],
)
@pytest.mark.usefixtures("engine")
async def test_grep(tree: Path, call: Call, arguments: dict[str, object], lines: list[str]) -> None:
    text = (await call("grep", **arguments)).for_model
    assert ([] if text.startswith("[no match") else text.split("\n")) == lines


@pytest.mark.usefixtures("engine")
async def test_summary(tree: Path, call: Call) -> None:
    assert (await call("grep", pattern="import")).for_user == "grep import · 3 matches in 3 files"
    assert (await call("grep", pattern="sys")).for_user == "grep sys · 1 match in 1 file"
    assert (await call("grep", pattern="zzz")).for_model == "[no match]"
    assert (
        await call("grep", pattern="zzz", glob="*.py")
    ).for_model == "[no match in the 2 files that the glob fits]"
    assert (await call("grep", pattern="os", glob="*.rs")).for_model == "[no match in the 0 files that the glob fits]"


@pytest.mark.usefixtures("engine")
async def test_caps(root: Path, call: Call) -> None:
    (root / "f").write_text("match\n" * 1_000)
    outcome = await call("grep", pattern="match")
    lines = outcome.for_model.split("\n")
    assert len(lines) == module.MAX_MATCHES + 1
    assert "there may be more" in lines[-1]
    assert outcome.for_user.endswith("stopped early")
    (root / "f").write_text(("match" + "x" * 10_000 + "\n") * 150)
    text = (await call("grep", pattern="match")).for_model
    assert len(text.encode()) < 30_000
    assert "…" in text
    assert "bytes of matches" in text


@pytest.mark.usefixtures("engine")
async def test_large_files_are_named(root: Path, call: Call) -> None:
    (root / "f").write_bytes(b"match\n" * 1_000_000)
    assert "1 file larger than 4 MB" in (await call("grep", pattern="match")).for_model


@pytest.mark.usefixtures("engine")
async def test_control_characters_do_not_pass(root: Path, call: Call) -> None:
    (root / "f").write_text("match \x1b[2J\x1b]0;title\x07end\n")
    assert (await call("grep", pattern="match")).for_model == "f:1:match end"


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{2,1}", "(?P<n", "\\", "(?<=a+)b(", "x" * 2_000])
async def test_what_is_no_pattern_says_so(tree: Path, call: Call, pattern: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        await call("grep", pattern=pattern)
    assert "regular expression" in caught.value.message or "too large" in caught.value.message


async def test_a_path_that_is_not_there(tree: Path, call: Call) -> None:
    with pytest.raises(PathRefused):
        await call("grep", pattern="x", path="absent")


@pytest.mark.parametrize(
    "pattern", [r"(a|aa)+$", r"(a|a)*b", r"^(a?){40}a{40}b", r"(.*)*(.*)*(.*)*(.*)*=x", r"(a*)*c\1"]
)
async def test_no_pattern_hangs(root: Path, call: Call, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.5)
    (root / "f").write_text(("a" * 3_000 + "!\n") * 50)
    start_s = time.monotonic()
    outcome = await call("grep", pattern=pattern)
    assert time.monotonic() - start_s < 40
    assert outcome.for_model.startswith("[no match]")


async def test_the_loop_lives_on_meanwhile(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)  # it finds in no time that nothing matches
    (root / "f").write_text("a" * 3_000 + "!\n")
    task = asyncio.ensure_future(call("grep", pattern=r"(a|aa)+$"))
    beats = 0
    while not task.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert beats > 5
    assert "time limit" in (await task).for_model


async def test_cancellation_is_quick(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (root / "f").write_text(("a" * 3_000 + "!\n") * 100)
    task = asyncio.ensure_future(call("grep", pattern=r"(a|aa)+$"))
    await asyncio.sleep(0.05)
    start_s = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start_s < 40


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("abc", 1, 10),
        ("a{1000}", 1000, 1100),
        ("((a{1000}){1000}){1000}", 10**9, 10**11),
        (r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", 20, 100),
        (r"\{5\}(\(){3}[{9999}]", 1, 50),
        ("a{,5}b{3,}{x}", 5, 30),
        (")" * 50, 1, 100),
        ("a{99999999999999999999}", 10**8, 10**10),
    ],
)
def test_weight(pattern: str, least: int, most: int) -> None:
    assert least <= weight(pattern) <= most


@pytest.mark.parametrize("pattern", ["((a{1000}){1000}){1000}", "(?:(?:(?:a|b){100}){100}){100}", "a{99999999}"])
def test_a_pattern_that_would_fill_the_memory_is_refused(pattern: str) -> None:
    with pytest.raises(ToolFailed, match="too large"):
        Searcher(pattern, ignore_case=False)


@pytest.fixture
def odd(root: Path) -> Path:
    """A project with everything on which two searches might differ."""
    files = {
        "utf8": "größe é € \U0001f600 end\n".encode(),
        "latin1": b"caf\xe9 end\nna\xefve\nfoo\xa9\nabc\xff",
        "latin1.crlf": b"caf\xe9 end\r\nnext end\r\n",
        "cp1252": b"\x93quoted\x94 end\n",
        "bom": b"\xef\xbb\xbffirst end\n",
        "utf16": "\ufefffirst gr\u00f6\u00dfe end\n".encode("utf-16-le"),
        "crlf": b"one end\r\ntwo\r\n\r\nend \r\n",
        "cr": b"one end\rtwo end\n",
        "nul": b"x" * 9_000 + b"\nlate end\n\0\nafter end\n",
        "binary": b"end\0end\n",
        "no-newline": b"the end",
        "empty": b"",
        "tabs": b"\tindented(x)\n  two  blanks\n",
        "code.py": b"def a(b):\n    return {'x': [1, 2]} # end\n",
        "-dash": b"dash end\n",
        "a b": b"blank end\n",
        ".hidden": b"hidden end\n",
        ".github/x.yml": b"yml end\n",
        "node_modules/m.js": b"cache end\n",
        "keep/.gitignore": b"!node_modules\n*.log\n",
        "keep/node_modules/m.js": b"kept end\n",
        "keep/x.log": b"log end\n",
        "build/out": b"ignored end\n",
        "build/sub/out": b"ignored end\n",
        ".git/config": b"git end\n",
        ".ignore": b"a.txt\n",
        "a.txt": b"text end\n",
        "deep/er/x.log": b"log end\n",
        "deep/er/y.txt": b"y end\n",
        ".gitignore": b"build/\ndeep/**/*.log\n# end\n",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / os.fsdecode(b"name\xff")).write_bytes(b"name end\n")
    (root / "link").symlink_to("utf8")
    (root / "link-dir").symlink_to("deep")
    return root


PATTERNS = (
    "end", "end$", "^end", "^one", r"\bend\b", "é", "caf.", "caf. end", r"\w+ end$", r"foo\b", r"foo\W", ".", "^.$",
    "^$", r"\s$", r"\S+\s\S+", r"^\tindented\(x\)", r"(late|after) end", r"gr\w{2}e", r"gr[^x]{2}e", r"[a-c]+\b",
    "“", r"x{100}", r"\d, \d", r"[\d,]+ ", r"\{'x'", "END", r"(?i)END", r"n(?=d)", r"(e)nd\1?", r"\Aone", "ÿ",
    "one end.two", "", "e?n?d??$", "[[:alpha:]]end", "[a&&b]", "a++", r"\x65nd", r"\p{L}nd", "-", "[-e]nd", "[e-]nd",
    "two  blanks", "naïve", "\\.",
)  # fmt: skip


async def test_ripgrep_and_the_library_find_the_same(odd: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    asked: list[dict[str, Any]] = [{"pattern": pattern} for pattern in PATTERNS]
    asked += [{"pattern": pattern, "ignore_case": True} for pattern in ("END$", "GRÖSSE", "Größe", r"\bOne\b")]
    places = ("deep", "./deep/er/", "build", "build/sub", "keep", "link-dir", "keep/x.log", "-dash", ".github")
    asked += [{"pattern": r"\bend", "path": path} for path in places]
    asked += [{"pattern": "end", "glob": "*.txt"}, {"pattern": "e.d", "path": "deep", "glob": "er/*"}]
    one = [(await call("grep", **arguments)) for arguments in asked]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    other = [(await call("grep", **arguments)) for arguments in asked]
    for arguments, a, b in zip(asked, one, other, strict=True):
        assert a == b, arguments
    assert sum(not each.for_model.startswith("[no match") for each in one) > 30


async def test_ripgrep_names_the_files(odd: Path, workspace: LocalWorkspace, engine: str) -> None:
    wanted = portable("caf. end", ignore_case=False)
    assert wanted is not None
    found = await workspace.mentions(wanted, ".", limit_s=20)
    if engine == "library":
        assert found is None
    else:  # those that may: all that are not UTF-8 among them
        assert found is not None
        assert {"latin1", "latin1.crlf"} <= set(found) <= {"latin1", "latin1.crlf", "cp1252", "nul", "cr"}
        assert await workspace.mentions(wanted, "utf8", limit_s=20) is None, "a file is searched at once"
        assert await workspace.mentions(wanted, "absent", limit_s=20) is None


async def test_what_ripgrep_is_too_slow_for_is_searched_without_it(
    odd: Path, workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "rg"
    wanted = portable("end", ignore_case=False)
    assert wanted is not None
    for script in ("sleep 99", "exit 2", "yes | tr '\\n' '\\0'"):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(shutil, "which", lambda name: str(program))
        assert await workspace.mentions(wanted, ".", limit_s=20 if "yes" in script else 0.5) is None


@pytest.mark.parametrize(
    ("pattern", "is_portable"),
    [
        ("plain text", True),
        ("a+b*?c{2,3}", True),
        (r"\bdef \w+\(", True),
        ("[a-z_]+", True),
        ("(?:a|b)", True),
        ("(?=a)", False),
        ("(?<n>a)", False),
        ("(?i)a", False),
        ("a++", False),
        ("a{,5}", False),
        ("[a[b]]", False),
        ("[a--b]", False),
        (r"\Z", False),
        (r"\1", False),
        (r"\N{DASH}", False),
        ("a{2}{3}", True),
        ("", False),
        ("a\nb", False),
    ],
)
def test_which_patterns_mean_the_same_everywhere(pattern: str, is_portable: bool) -> None:
    assert (portable(pattern, ignore_case=False) is not None) is is_portable
