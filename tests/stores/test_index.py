"""The index is a cache in every respect: garbled, deleted, locked, older, newer, it never stands in anybody's way."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agentsh.stores.index import SCHEMA, SummaryIndex

ROWS = [("a", "1", '{"x":1}'), ("b", "2", "\u2028 any text")]
KEPT = {"a": ("1", '{"x":1}'), "b": ("2", "\u2028 any text")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def test_rows_come_back(path: Path) -> None:
    index = SummaryIndex(path)
    assert index.get_many(["a"]) == {}
    assert not path.exists()
    index.put_many(ROWS)
    assert SummaryIndex(path).get_many(["a", "b", "c"]) == KEPT
    index.put_many([("a", "3", "new")])
    index.forget(["b", "nobody"])
    assert index.get_many(["a", "b"]) == {"a": ("3", "new")}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_thousands(path: Path) -> None:
    index = SummaryIndex(path)
    index.put_many((f"s{n}", "1", "x") for n in range(3000))
    assert len(index.get_many(f"s{n}" for n in range(0, 6000, 2))) == 1500


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def scrambled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    path.write_bytes(bytes(data))


def older(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version=0")
        db.execute("DROP TABLE summaries")
        db.execute("CREATE TABLE summaries (id INTEGER)")


def without_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE summaries")


def stray_wal(path: Path) -> None:
    path.with_name("index.db-wal").write_bytes(os.urandom(5000))
    garbage(path)


@pytest.mark.parametrize("damage", [garbage, empty, half, scrambled, older, without_table, stray_wal])
def test_a_file_that_is_of_no_use_is_begun_anew(path: Path, damage: Callable[[Path], None]) -> None:
    SummaryIndex(path).put_many(ROWS)
    damage(path)
    index = SummaryIndex(path)
    assert index.get_many(["a", "b"]) == {}
    index.put_many(ROWS)
    assert index.get_many(["a", "b"]) == KEPT


def test_a_newer_schema_is_left_alone(path: Path) -> None:
    SummaryIndex(path).put_many(ROWS)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version={SCHEMA + 1}")
    before = path.read_bytes()
    index = SummaryIndex(path)
    assert index.get_many(["a"]) == {}
    index.put_many(ROWS)
    index.forget(["a"])
    assert path.read_bytes() == before


def test_a_locked_file_is_done_without(path: Path) -> None:
    index = SummaryIndex(path)
    index.put_many(ROWS)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        index.put_many([("a", "9", "9")])
        index.forget(["a"])
        index.get_many(["a"])
        db.rollback()
    assert index.get_many(["a", "b"]) == KEPT


def test_places_where_nothing_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "no" / "where.db", tmp_path, tmp_path / "file" / "index.db", Path("a\0b")):
        index = SummaryIndex(place)
        assert index.get_many(["a"]) == {}
        index.put_many(ROWS)
        index.forget(["a"])


def test_odd_ids_and_odd_rows(path: Path) -> None:
    index = SummaryIndex(path)
    index.put_many([("a", "1", "\ud800")])
    assert index.get_many(["\ud800", ""]) == {}
    index.put_many(ROWS)
    assert index.get_many(["a", "b"]) == KEPT


@pytest.mark.parametrize("text", [b"any text", b"b2"])
def test_a_row_with_a_changed_byte_is_none(path: Path, text: bytes) -> None:
    """SQLite reads it without a word."""
    SummaryIndex(path).put_many(ROWS)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    at = data.index(text) + len(text) - 1
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    found = SummaryIndex(path).get_many(["a", "b"])
    assert found == {"a": KEPT["a"]}
