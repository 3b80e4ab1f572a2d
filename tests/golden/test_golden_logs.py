"""Every log of the corpus, old as it may be, reads, opens, verifies and repairs as its report says."""

import importlib.util
import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agentsh.log.archive import archive
from agentsh.log.chain import LogScan
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_header
from agentsh.log.packed import NAME as ARCHIVE
from agentsh.log.seal import seal_closed
from agentsh.log.segment import closed_name
from tests.golden.cases import CASES, SESSION
from tests.golden.make import CORPUS, ranges, report_of
from tests.log.logs import TS, header, lines
from tests.log.sealed_logs import unpacked

READER = Path(__file__).parents[2] / "docs" / "read_log.py"
OF_DAMAGE = READER.with_name("read_damaged_log.py")
LOGS = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
MENDED_BY_OPENING = {"torn", "missing", "empty", "unended"}


BEYOND_THE_SMALL_ONE = {
    "a16_two_writers_tear_one_line",
    "a_line_end_missing_in_the_middle",
    "a_record_glued_behind_half_of_one",
    "a_rescue_whose_header_is_damaged",
    "header_gone",
    "header_with_one_wrong_byte",
}
"""Logs that take the reader of damaged ones: a header that does not read, a record behind half of another."""


def expected(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((CORPUS / f"{name}.report.json").read_text())
    return report


def reader(path: Path = READER) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
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
def test_the_readers_for_strangers_agree(name: str) -> None:
    """They read the same events, the same bytes of them, and see damage where `verify` does.

    The small one does so for every log whose damage is whole lines, and says for each other that it is damaged.
    """
    report = expected(name)
    if report["newer"]:
        return
    kinds = {d["kind"] for d in report["damages"]}
    costs = kinds - {"bom", "crlf", "blank", "newline", "session", "chain", "dur"}
    seen = {}
    for path in (READER, OF_DAMAGE):
        log = reader(path).Log(CORPUS / name)
        seen[path] = {seq: log.event(seq) for seq in log.bodies}
        if path == READER and name in BEYOND_THE_SMALL_ONE:
            assert log.wrong
        elif "late" not in kinds:  # it holds all lines at once: none is late
            assert bool(log.wrong) == bool(costs or "torn" in report["remarks"]), log.wrong
    events = seen[OF_DAMAGE]
    assert ranges(sorted(events)) == report["reads"] or "late" in kinds
    assert seen[READER] == events or (name in BEYOND_THE_SMALL_ONE and seen[READER].items() < events.items())
    scan = LogScan(RealFiles(), str(CORPUS / name), SESSION)
    for seq, text, _, _ in scan.entries():
        if events[seq]["type"] != "unreadable":
            body = json.loads(text[:-18] + b"}")
            assert {
                k: v for k, v in events[seq].items() if k != "crc"
            } == body  # another copy may be sealed elsewhere
    scan.close()


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
        '! events.jsonl: something on line 6 does not read: b\'{"seq":5,"ts":"2026-\'',
        "! event 5 is missing",
    ]


def test_the_reader_stays_small() -> None:
    """A stranger has to be able to read it in a few minutes."""
    code = [
        row for row in READER.read_text().splitlines() if row.strip() and not row.strip().startswith(("#", '"""'))
    ]
    assert len(code) <= 75


def test_the_reader_of_damaged_logs_as_a_command() -> None:
    def run(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", OF_DAMAGE, CORPUS / name], capture_output=True, text=True, check=False, timeout=30
        )

    whole, broken, nothing = run("good_whole"), run("header_with_one_wrong_byte"), run("no_such_case")
    assert (whole.returncode, len(whole.stdout.splitlines())) == (0, 17)
    assert broken.returncode == 1
    assert broken.stdout.splitlines()[:-1] == whole.stdout.splitlines()
    assert broken.stdout.splitlines()[-1] == "! events.jsonl: the header does not read"
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr == f"usage: {OF_DAMAGE} DIRECTORY, a session's\n"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return a log of 100 events: two sealed segments, a closed one, and a rescue that supersedes its last ten."""
    before = None
    for ordinal, first in enumerate((1, 21, 41)):
        head = encode_header(
            SESSION, ordinal=ordinal, first_seq=first, nonce=f"{ordinal:016x}", created=TS, by="t", prev_sha256=before
        )
        data = head.raw + b"".join(lines(head, first, first + 19))
        (tmp_path / closed_name(ordinal, first)).write_bytes(data)
        before = sha256(data).hexdigest()
    rescue = header(3, 51, rescue=True)
    (tmp_path / "events.jsonl").write_bytes(rescue.raw + b"".join(lines(rescue, 51, 100)))
    seal_closed(RealFiles(), str(tmp_path), SESSION, below=2, min_bytes=0, frame_bytes=700)
    return tmp_path


unpacks = pytest.mark.skipif(shutil.which("zstd") is None, reason="the program zstd is not here")


@unpacks
def test_the_reader_for_strangers_reads_sealed_segments(mixed: Path) -> None:
    for path in (READER, OF_DAMAGE):
        log = reader(path).Log(mixed)
        assert (sorted(log.bodies), log.wrong) == (list(range(1, 101)), [])
    sealed = mixed / (closed_name(0, 1) + ".zst")
    whole = sealed.read_bytes()
    at = whole.find(b"\x28\xb5\x2f\xfd", 1) + 40
    sealed.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    small, log = reader().Log(mixed), reader(OF_DAMAGE).Log(mixed)
    assert [p for p in log.wrong if p.startswith(sealed.name)] == [f"{sealed.name}: 1 parts of it do not unpack"]
    missing = [n for n in range(1, 101) if n not in log.bodies]
    assert 0 < len(missing) < 8
    assert [p for p in log.wrong if "is missing" in p] == [f"event {n} is missing" for n in missing]
    assert small.wrong[0].startswith(f"{sealed.name}: ")
    assert len(small.wrong) == 1 + sum(n not in small.bodies for n in range(1, 101))
    sealed.write_bytes(whole)
    plain = mixed / closed_name(0, 1)  # sealing was interrupted: both forms are there, and either will do
    plain.write_bytes(unpacked(whole))
    for path in (READER, OF_DAMAGE):
        log = reader(path).Log(mixed)
        assert (sorted(log.bodies), log.wrong) == (list(range(1, 101)), [])


@unpacks
def test_the_readers_for_strangers_read_an_archive(mixed: Path) -> None:
    archive(RealFiles(), str(mixed), SESSION, {})
    assert [p.name for p in mixed.iterdir()] == [ARCHIVE]
    for path in (READER, OF_DAMAGE):
        log = reader(path).Log(mixed)
        assert (sorted(log.bodies), log.wrong) == (list(range(1, 101)), [])


def test_the_reader_says_what_sealed_segments_take(mixed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", READER, mixed], capture_output=True, text=True, check=False, env={"PATH": "/nowhere"}
    )
    assert done.returncode == 1
    assert done.stderr == "sealed segments (.zst) take the program zstd\n"
    assert done.stdout == ""


def test_the_reader_says_how_it_is_called() -> None:
    for words in ([], ["/nowhere"], [str(CORPUS), "more"]):
        done = subprocess.run([sys.executable, "-I", READER, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.splitlines()[1:]) == (1, "", [])
        assert done.stderr.startswith("usage: ")
