"""Every log of the corpus, old as it may be, reads, opens, verifies and repairs as its report says."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentsh.log.chain import LogScan
from agentsh.log.files import RealFiles
from tests.golden.cases import CASES, SESSION
from tests.golden.make import CORPUS, ranges, report_of

READER = Path(__file__).parents[2] / "docs" / "read_log.py"
LOGS = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
MENDED_BY_OPENING = {"torn", "missing", "empty", "unended"}


def expected(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((CORPUS / f"{name}.report.json").read_text())
    return report


def reader() -> Any:
    spec = importlib.util.spec_from_file_location("read_log", READER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_taken_as_its_report_says(name: str) -> None:
    assert report_of(CORPUS / name) == expected(name)


@pytest.mark.parametrize("name", LOGS)
def test_the_corpus_is_not_touched(name: str) -> None:
    """Every case is there as it was made: nobody has changed or dropped one."""
    files = {p.name: p.read_bytes() for p in (CORPUS / name).iterdir()}
    assert name in CASES, "cases are added and never taken away"
    assert files == CASES[name]()


def test_every_case_is_in_the_corpus() -> None:
    assert set(CASES) == set(LOGS)
    assert len(LOGS) >= 45


@pytest.mark.parametrize("name", LOGS)
def test_the_reader_for_strangers_agrees(name: str) -> None:
    """It reads the same events, the same bytes of them, and sees damage where `verify` does."""
    report = expected(name)
    if report["newer"]:
        return
    events, problems = reader().read(CORPUS / name)
    kinds = {d["kind"] for d in report["damages"]}
    assert ranges(sorted(events)) == report["reads"] or "late" in kinds  # it holds all lines at once: none is late
    scan = LogScan(RealFiles(), str(CORPUS / name), SESSION)
    for seq, text, _, _ in scan.entries():
        if events[seq]["type"] != "unreadable":
            body = json.loads(text[:-18] + b"}")
            assert {
                k: v for k, v in events[seq].items() if k != "crc"
            } == body  # another copy may be sealed elsewhere
    scan.close()
    if "late" not in kinds:
        costs = kinds - {"bom", "crlf", "blank", "newline", "session", "chain", "dur"}
        assert bool(problems) == bool(costs or "torn" in report["remarks"]), problems


def test_the_reader_as_a_command(tmp_path: Path) -> None:
    def run(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", READER, CORPUS / name], capture_output=True, text=True, check=False, timeout=30
        )

    whole, broken = run("good_whole"), run("flipped_bit_in_a_saved_line")
    assert whole.returncode == 0
    assert len(whole.stdout.splitlines()) == 17
    assert whole.stdout.startswith('1 2026-11-29T16:20:01.123456Z session_init {"id": "20261129-k3v9qd"')
    assert broken.returncode == 1
    assert [row for row in broken.stdout.splitlines() if row.startswith("! ")] == [
        '! events.jsonl:1163 293 bytes of which something does not read: b\'{"seq":5,"ts":"2026-\'',
        "! event 5 is missing",
    ]


def test_the_reader_stays_small() -> None:
    """A stranger has to be able to read it in a few minutes."""
    code = [
        row for row in READER.read_text().splitlines() if row.strip() and not row.strip().startswith(("#", '"""'))
    ]
    assert len(code) <= 90
