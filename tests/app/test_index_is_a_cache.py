"""Whatever is wrong with the index, `ls` prints the same rows: the logs are the truth, the index only saves time."""

import ctypes
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.app.homes import add, sid

HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA locking_mode=EXCLUSIVE")
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def no_override() -> None:
    """Give up CAP_DAC_OVERRIDE in the program that is started, where this is root's."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP; for anybody else it fails, and is not needed


def ls(home: Path, *words: str, humble: bool = False) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("AGENTSH_")}
    done = subprocess.run(
        [sys.executable, "-m", "agentsh", "ls", *(words or ("--all", "--json"))],
        env={**env, "AGENTSH_HOME": str(home), "HOME": str(home.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=home, capture_output=True, text=True, timeout=50, check=False,
        preexec_fn=no_override if humble else None,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    for n in range(8):
        add(place, n, turns=n % 3 + 1)
    damaged = place / "sessions" / sid(5) / "events.jsonl"
    when = damaged.stat().st_mtime_ns
    data = bytearray(damaged.read_bytes())
    data[700] ^= 4
    damaged.write_bytes(bytes(data))
    os.utime(damaged, ns=(when, when))
    return place


def garbled(index: Path) -> None:
    data = bytearray(index.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    index.write_bytes(bytes(data))


def text(index: Path) -> None:
    index.write_text("this is no database\n" * 900)


def empty(index: Path) -> None:
    index.write_bytes(b"")


def half(index: Path) -> None:
    os.truncate(index, index.stat().st_size // 2)


def deleted(index: Path) -> None:
    index.unlink()


def directory(index: Path) -> None:
    index.unlink()
    (index / "x").mkdir(parents=True)


def dangling_link(index: Path) -> None:
    index.unlink()
    index.symlink_to("nowhere/at/all")


def changed(index: Path, *statements: str) -> None:
    with closing(sqlite3.connect(index)) as db, db:
        for statement in statements:
            db.execute(statement)


def older_schema(index: Path) -> None:
    changed(index, "PRAGMA user_version=0", "DROP TABLE summaries", "CREATE TABLE summaries (id INTEGER, what TEXT)")


def newer_schema(index: Path) -> None:
    changed(index, "PRAGMA user_version=99", "DROP TABLE summaries", "CREATE TABLE other (id INTEGER)")


def rows_of_other_logs(index: Path) -> None:
    changed(index, 'UPDATE summaries SET stamp = \'x\' || stamp, summary = \'{"version":1,"title":"a lie"}\'')


def rows_that_are_no_json(index: Path) -> None:
    changed(index, "UPDATE summaries SET summary = 'x' || summary")


def rows_of_an_older_shape(index: Path) -> None:
    changed(index, 'UPDATE summaries SET summary = \'{"version":0,"title":"a lie"}\'')


def rows_of_sessions_that_are_gone(index: Path) -> None:
    changed(index, "INSERT INTO summaries SELECT '20200101-000000', stamp, summary, crc FROM summaries LIMIT 1")


def half_of_the_rows(index: Path) -> None:
    changed(index, "DELETE FROM summaries WHERE session < '20261129-000004'")


def a_stray_journal(index: Path) -> None:
    index.with_name("index.db-wal").write_bytes(os.urandom(5000))
    index.with_name("index.db-journal").write_bytes(os.urandom(5000))


KINDS = [
    garbled, text, empty, half, deleted, directory, dangling_link, older_schema, newer_schema, rows_of_other_logs,
    rows_that_are_no_json, rows_of_an_older_shape, rows_of_sessions_that_are_gone, half_of_the_rows, a_stray_journal,
]  # fmt: skip


@pytest.mark.parametrize("damage", KINDS)
def test_ls_prints_the_same_rows(home: Path, damage: Callable[[Path], None]) -> None:
    """Field reports A17, A34 and A35: MoonshotAI/kimi-code#1925, anomalyco/opencode#30157 and #37821."""
    wanted = ls(home)
    assert len(wanted.splitlines()) == 8
    assert (home / "index.db").exists()
    damage(home / "index.db")
    assert ls(home) == wanted, "right away"
    assert ls(home) == wanted, "and with what that has left"


def test_an_index_that_another_process_has_locked(home: Path) -> None:
    wanted = ls(home)
    add(home, 20)
    later = ls(home)
    (home / "index.db").unlink()
    ls(home)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home / "index.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert ls(home) == later
        assert wanted != later
    finally:
        holder.communicate("")


@pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux, so that modes hold for root too")
@pytest.mark.parametrize("there", [True, False])
def test_a_home_that_cannot_be_written(home: Path, there: bool) -> None:
    """Field report A35 anomalyco/opencode#37821: a crash loop over an index, in a directory that is read-only."""
    wanted = ls(home)
    if not there:
        for file in home.glob("index.db*"):
            file.unlink()
    for path in [*home.rglob("*"), home]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert ls(home, humble=True) == wanted
        assert (home / "index.db").exists() == there
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_without_an_index_the_newest_come_first_all_the_same(home: Path) -> None:
    with_index = [ls(home, "--json", "--limit", "3") for _ in range(2)]
    (home / "index.db").unlink()
    assert [ls(home, "--json", "--limit", "3"), *with_index] == [with_index[0]] * 3
