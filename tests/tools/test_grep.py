"""grep finds what is there, says when it stopped early, and no pattern can hang it."""

import asyncio
import time
from pathlib import Path

import pytest

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.tools import grep as module
from agentsh.tools.searching import Searcher, weight
from tests.tools.conftest import Call


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
async def test_grep(tree: Path, call: Call, arguments: dict[str, object], lines: list[str]) -> None:
    text = (await call("grep", **arguments)).for_model
    assert ([] if text.startswith("[no match") else text.split("\n")) == lines


async def test_summary(tree: Path, call: Call) -> None:
    assert (await call("grep", pattern="import")).for_user == "grep import · 3 matches in 3 files"
    assert (await call("grep", pattern="sys")).for_user == "grep sys · 1 match in 1 file"
    assert (await call("grep", pattern="zzz")).for_model == "[no match in 5 files]"


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


async def test_large_files_are_named(root: Path, call: Call) -> None:
    (root / "f").write_bytes(b"match\n" * 1_000_000)
    assert "1 file larger than 4 MB" in (await call("grep", pattern="match")).for_model


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
    assert outcome.for_model.startswith("[no match in 1 file]")


async def test_the_loop_lives_on_meanwhile(root: Path, call: Call) -> None:
    (root / "f").write_text("a" * 3_000 + "!\n")
    task = asyncio.ensure_future(call("grep", pattern=r"(a|aa)+$"))
    beats = 0
    while not task.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert beats > 5
    assert "time limit" in (await task).for_model


async def test_cancellation_is_quick(root: Path, call: Call) -> None:
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
