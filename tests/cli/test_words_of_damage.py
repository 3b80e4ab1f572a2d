"""What commands say of one damage agrees with what the others say of it, and each names the way out."""

import subprocess
from pathlib import Path

import pytest

from tests.app.homes import add, events, log_of, sid
from tests.cli.test_odd_files import Said, run
from tests.cli.test_verify_repair_doctor import run as a_process

ID = sid(1)


def damaged(tmp_path: Path, data: bytes | None = None, *, flip: int = 0, double: int = 0) -> list[Said]:
    """Return what the commands say of a log with other content, a flipped byte or a line that stands there twice."""
    log = add(tmp_path / "home", 1)
    old = bytearray(log.read_bytes())
    old[flip] ^= 4 if flip else 0
    lines = old.splitlines(keepends=True)
    log.write_bytes(
        b"".join([*lines[:double], *lines[double - 1 :]]) if double else bytes(old) if data is None else data
    )
    replayed = a_process(tmp_path / "home", "replay", ID)  # it writes bytes
    verify, show, repair = run(tmp_path / "home", ["verify", ID], ["show", ID], ["repair", ID, "--yes"])
    return [verify, show, (replayed.code, replayed.out, replayed.err), repair]


def test_a_damaged_header_costs_nothing(tmp_path: Path) -> None:
    verify, show, replay, repair = damaged(tmp_path, flip=20)
    assert (verify[0], "1 place (every event reads all the same)" in verify[1]) == (1, True), verify
    assert f"1 place of the log does not read, all else does (`agentsh verify {ID}` tells where)" in show[1]
    assert f"1 place of the log of {ID} does not read; the rest was shown (`agentsh verify {ID}`" in replay[2]
    assert (repair[0], "is repaired: nothing was lost" in repair[1]) == (0, True), repair


def test_an_entry_that_is_lost(tmp_path: Path) -> None:
    verify, _, _, repair = damaged(tmp_path, flip=len(add(tmp_path / "other", 1).read_bytes()) // 2)
    assert "1 place (something is lost there); `agentsh repair" in verify[1], verify
    assert "is lost" in repair[1]


def test_a_line_that_stands_there_twice(tmp_path: Path) -> None:
    verify, _, _, repair = damaged(tmp_path, double=2)
    assert "1 place (every event reads all the same)" in verify[1], verify
    assert "leave out 1 line that stands there twice" in repair[1]


@pytest.mark.parametrize("data", [b"", b"\x9d\0k" * 4000], ids=["empty", "garbage"])
def test_nothing_reads(tmp_path: Path, data: bytes) -> None:
    verify, show, replay, repair = damaged(tmp_path, data)
    assert f"`agentsh repair {ID}`" in verify[1], verify
    assert "next opening begins" not in verify[1]
    assert f"`agentsh repair {ID}` begins it anew" in show[1]
    assert "all else does" not in show[1]
    assert "agentsh resume" not in show[1], "which is refused"
    assert ("nothing was shown" in replay[2] or "no event" in replay[2], len(replay[2].splitlines())) == (True, 1)
    assert "0 events" not in repair[1], repair
    assert "begin the log anew" in repair[1]
    assert repair[0] == 0


def test_a_directory_in_the_place_of_the_lock(tmp_path: Path) -> None:
    (add(tmp_path / "home", 1).parent / "lock").mkdir()
    for code, _, err in run(tmp_path / "home", ["resume", ID, "x", "-p", "--model", "demo"], ["repair", ID, "--yes"]):
        assert (code, f"(`agentsh verify {ID}` tells more)" in err) == (1, True), err


def test_line_ends_of_another_system_are_a_byte_each(tmp_path: Path) -> None:
    log = add(tmp_path / "home", 1)
    subprocess.run(["sed", "-i", "s/$/\\r/", str(log)], check=True)
    assert "crlf at 000000:" in (said := run(tmp_path / "home", ["verify", ID])[0][1])
    assert "1 bytes" not in said


def test_what_no_repair_mends_is_not_nothing_to_repair(tmp_path: Path) -> None:
    log = add(tmp_path / "home", 1)
    ((code, out, _),) = run(tmp_path / "home", ["repair", ID, "--yes"])
    assert (code, "nothing to repair" in out, "in use by" in out) == (0, True, False)
    gone = {"blob": "sha256:" + "0" * 64, "bytes": 30_000, "head": "", "tail": ""}
    log.write_bytes(log_of(ID, [*events(ID, tmp_path, 1), ("note", {"text": gone})]))
    ((code, out, _),) = run(tmp_path / "home", ["repair", ID, "--yes"])
    assert (code, "there is nothing that `repair` could mend" in out, "blobs back" in out) == (1, True, True), out
