"""`verify`, `repair` and `doctor` as commands: what they say, their exit codes, and that they keep out of the way."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentsh.log.files import RealFiles
from agentsh.log.lease import take
from tests.app.homes import add, sid


@dataclass
class Done:
    code: int
    out: str
    err: str


def run(home: Path, *words: str, cwd: Path | None = None, **more: str) -> Done:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTSH_", "OPENAI_"))}
    env |= {"AGENTSH_HOME": str(home), "HOME": str(home.parent), **more}
    done = subprocess.run(
        [sys.executable, "-m", "agentsh", *words], env=env, cwd=cwd or home.parent, capture_output=True, text=True,
        timeout=50, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    add(place, 1)
    return place


def damage(log: Path) -> bytes:
    data = bytearray(log.read_bytes())
    data[900] ^= 4
    log.write_bytes(bytes(data))
    return bytes(data)


def test_verify_says_ok(home: Path) -> None:
    add(home, 2)
    done = run(home, "verify", sid(1), sid(2)[-6:])
    assert done.code == 0
    assert [row.split()[:2] for row in done.out.splitlines()] == [[sid(1), "ok"], [sid(2), "ok"]]
    assert done.err == ""
    done = run(home, "verify", "--all")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "2 sessions, 0 damaged"


def test_verify_says_what_is_wrong_and_what_to_do(home: Path) -> None:
    damage(add(home, 2))
    done = run(home, "verify", "--all")
    assert done.code == 1
    (row,) = [row for row in done.out.splitlines() if row.startswith(sid(2))]
    assert "damaged" in row
    assert f"`agentsh repair {sid(2)}`" in row
    assert "  an entry does not read (crc at 000000:" in done.out
    (found,) = [json.loads(row) for row in run(home, "verify", sid(2), "--json").out.splitlines()]
    assert (found["id"], found["ok"], found["damages"][0]["kind"]) == (sid(2), False, "crc")


def test_verify_of_nothing(home: Path) -> None:
    assert run(home, "verify", "20200101-000000").code == 3
    assert run(home, "verify").code == 2
    assert run(home, "verify", sid(1), "--all").code == 2
    assert run(home.parent / "empty", "verify", "--all").out == "No sessions.\n"


def test_verify_reads_only_what_is_new_when_told_so(home: Path) -> None:
    first = json.loads(run(home, "verify", "--all", "--json").out)
    again = json.loads(run(home, "verify", "--all", "--json", "--incremental").out)
    full = json.loads(run(home, "verify", "--all", "--json", "--jobs", "2").out)
    assert first["checked_bytes"] == full["checked_bytes"] > again["checked_bytes"] == 0
    (home / "verified.json").unlink()
    assert json.loads(run(home, "verify", "--all", "--json", "--incremental").out) == first


def test_verify_and_repair_load_no_pydantic(home: Path) -> None:
    """Apart from typer's own parsing of the words; the work itself needs no models."""
    damage(add(home, 2))
    code = (
        "import sys\nfrom agentsh.cli import repair, verify\n"
        "verify.run([], everything=True, incremental=False, jobs=2, blobs=True, contexts=False, as_json=False)\n"
        f"repair.run('{sid(2)}', yes=True)\n"
        "print(sorted({'pydantic', 'openai', 'prompt_toolkit', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "AGENTSH_HOME": str(home)}, capture_output=True, text=True,
        timeout=50, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_verify_of_a_home_that_is_not_trusted_changes_nothing(home: Path) -> None:
    (home / "agentsh.toml").write_text("")
    names = sorted(home.iterdir())
    done = run(home, "verify", "--all", cwd=home, AGENTSH_HOME="")
    assert done.code == 0, done.err
    assert "1 session, 0 damaged" in done.out
    assert sorted(home.iterdir()) == names
    assert run(home, "repair", sid(1), "--yes", cwd=home, AGENTSH_HOME="").code == 2


def test_repair_asks_keeps_and_is_done_once(home: Path) -> None:
    log = add(home, 2)
    data = damage(log)
    done = run(home, "repair", sid(2))
    assert done.code == 2, "nobody can be asked"
    assert "--yes" in done.err
    assert log.read_bytes() == data
    done = run(home, "repair", sid(2), "--yes")
    assert done.code == 0, done.err
    assert "event 3 is lost" in done.out or "events" in done.out
    (kept,) = (log.parent / "quarantine").iterdir()
    assert kept.read_bytes() == data
    assert str(kept.name) in done.out
    assert run(home, "verify", sid(2)).code == 0
    done = run(home, "repair", sid(2), "--yes")
    assert (done.code, "nothing to repair" in done.out) == (0, True)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_repair_asks_on_a_terminal(home: Path, answer: str, code: int) -> None:
    log = add(home, 2)
    data = damage(log)
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentsh", "repair", sid(2)], stdin=theirs, stdout=subprocess.PIPE,
        env={**os.environ, "AGENTSH_HOME": str(home)}, text=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(mine, answer.encode() or b"\x04")
    out, _ = process.communicate(timeout=50)
    os.close(mine)
    assert process.returncode == code
    assert "Go on? [y/N]" in out
    assert (log.read_bytes() == data) == bool(code)
    assert ("Nothing was changed." in out) == bool(code)


def test_repair_of_a_session_that_is_in_use(home: Path) -> None:
    log = add(home, 2)
    data = damage(log)
    lease = take(RealFiles(), str(log.parent), sid(2))
    done = run(home, "repair", sid(2), "--yes")
    assert done.code == 4
    assert str(os.getpid()) in done.err
    assert log.read_bytes() == data
    assert f"in use by pid {os.getpid()}" in run(home, "verify", sid(2)).out
    lease.release()
    assert run(home, "repair", "20200101-000000", "--yes").code == 3


def test_doctor_finds_nothing(home: Path) -> None:
    done = run(home, "doctor", "--json")
    found = [json.loads(row) for row in done.out.splitlines()]
    assert done.code == 0, [line for line in found if line["state"] == "fail"]
    subjects = {line["subject"]: line for line in found}
    assert {"python", "agentsh", "terminal", "locale", "git", "home", "disk", "permissions"} <= set(subjects)
    assert subjects["permissions"]["state"] == "ok"
    assert subjects["sessions"]["text"] == "1 of 1 session read without a flaw"
    assert subjects["OPENAI_API_KEY"]["text"] == "not set"


def test_doctor_says_what_to_do(home: Path) -> None:
    log = add(home, 2)
    damage(log)
    log.chmod(0o644)
    (home / "index.db").write_text("rubbish " * 1000)
    (home / "workspaces" / "20200101-000000").mkdir()
    (home / "sessions" / "my backup").mkdir(mode=0o700)
    (home / "blobs" / "ab").mkdir(mode=0o700)
    stale = home / "blobs" / "ab" / ".x.1.new"
    stale.touch(mode=0o600)
    os.utime(stale, (1, 1))
    done = run(home, "doctor", OPENAI_API_KEY="sk-very-secret", OPENAI_BASE_URL="http://u:pw@127.0.0.1:9/v1?k=v")
    assert done.code == 1
    for words in (
        f"{sid(2)}: damaged", "events.jsonl can be read by others", "chmod -R go-rwx",
        "index            does not read",
        "workspaces/20200101-000000", "sessions/my backup", "1 file of writes that were cut short",
    ):  # fmt: skip
        assert words in done.out, words
    assert "OPENAI_API_KEY   set" in done.out
    assert "OPENAI_BASE_URL  http://127.0.0.1:9" in done.out
    assert "secret" not in done.out
    assert "pw" not in done.out
    rows = done.out.splitlines()
    for n, row in enumerate(rows):
        if row.startswith(("warn", "fail")):
            assert rows[n + 1].startswith("      → "), row


@pytest.mark.parametrize("words", [["doctor"], ["repair", sid(2), "--yes"]])
def test_long_work_shows_a_bar_on_a_terminal_and_takes_it_away(home: Path, words: list[str]) -> None:
    """As if a second were over: how far the reading is."""
    damage(add(home, 2, 2_000))
    mine, theirs = pty.openpty()
    code = (
        "import sys\nfrom agentsh.cli import main, progress\nprogress.AFTER_S = progress.EVERY_S = 0\n"
        "sys.exit(main.run(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
        env={**os.environ, "AGENTSH_HOME": str(home), "HOME": str(home.parent), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    with suppress(OSError):  # EIO: nobody has the other end any more
        while data := os.read(mine, 4096):
            said += data
    os.close(mine)
    assert process.wait(50) == (1 if words == ["doctor"] else 0)
    assert (b"reading the sessions: " if words == ["doctor"] else b"100% of ") in said
    assert said.endswith(b"\r\x1b[2K"), "and it is gone"
