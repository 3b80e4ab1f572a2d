"""archive, rm, restore, gc, tag, rename, push and pull as commands: what they say, and their exit codes."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsh.cli.main import run as agentsh
from agentsh.log.files import RealFiles
from agentsh.log.lease import take
from tests.app.homes import add, sid


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    add(place, 1)
    return place


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command line, in this process: starting one for each would take longer than all else."""
    for name in [n for n in os.environ if n.startswith(("AGENTSH_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTSH_HOME", str(home))
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.chdir(home.parent)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115 - for the whole test
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]

    def call(*words: str, **env: str) -> Done:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code = agentsh([*words])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    yield call
    import sys

    sys.stdin.close()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def listed(run: Run, *words: str) -> dict[str, dict[str, object]]:
    rows = [json.loads(line) for line in run("ls", "--json", *words).out.splitlines()]
    return {row["id"]: row for row in rows}


def test_a_list_of_none_but_archived_ones_says_where_they_are(run: Run, home: Path) -> None:
    sessions = [place.name for place in (home / "sessions").iterdir()]
    for session in sessions:
        assert run("archive", session).code == 0
    assert run("ls").out == f"No sessions but {len(sessions)} archived. See them: agentsh ls --all\n"
    assert run("ls", "zebra").out == "No sessions match. Archived ones too: agentsh ls --all\n"
    assert run("ls", "zebra", "--all").out == "No sessions match.\n"


def test_archived_sessions_read_as_before_and_come_back(run: Run, home: Path) -> None:
    add(home, 2)
    log = home / "sessions" / sid(1) / "events.jsonl"
    before, row = log.read_bytes(), listed(run)[sid(1)]
    replayed, shown = run("replay", sid(1)), run("show", sid(1), "--json")
    done = run("archive", sid(1))
    assert (done.code, log.exists()) == (0, False)
    assert "saved" not in done.out, "parity makes a short one longer"
    assert "already" in run("archive", sid(1)).out
    assert set(listed(run)) == {sid(2)}
    archived = listed(run, "--all")[sid(1)]
    assert archived["state"] == "archived"
    for name in ("title", "turns", "created", "updated", "cost_usd", "last_seq"):
        assert archived[name] == row[name]
    (home / "index.db").unlink()
    assert listed(run, "--all")[sid(1)] == archived
    assert run("replay", sid(1)).out == replayed.out
    assert run("replay", sid(1), "--json").out.encode() == before.split(b"\n", 1)[1]
    assert {**json.loads(run("show", sid(1), "--json").out), "state": "idle", "bytes": len(before)} == json.loads(
        shown.out
    )
    assert "ok" in run("verify", sid(1)).out
    assert run("verify", "--all").code == 0
    refused = run("tag", sid(1), "+x")
    assert (refused.code, "unarchive" in refused.err) == (5, True)
    assert run("replay", "--last").out == run("replay", sid(2)).out
    assert run("unarchive", sid(1)).code == 0
    assert log.read_bytes() == before
    assert listed(run)[sid(1)] == row
    assert "not archived" in run("unarchive", sid(1)).out


def test_a_log_whose_change_of_segments_was_interrupted_is_archived_too(run: Run, home: Path) -> None:
    directory = home / "sessions" / sid(1)
    before = (directory / "events.jsonl").read_bytes()
    (directory / "events.jsonl").rename(directory / "000000-000000000001.jsonl")
    assert "is archived: " in run("archive", sid(1)).out
    replayed = run("replay", sid(1), "--json").out.encode()  # opening wrote the last line again, with another crc
    assert [line[:-12] for line in replayed.splitlines()] == [line[:-12] for line in before.splitlines()[1:]]
    assert run("unarchive", sid(1)).code == 0
    assert (directory / "000000-000000000001.jsonl").read_bytes() == before


def test_what_is_saved_by_archiving_is_told(run: Run, home: Path) -> None:
    add(home, 9, 200)
    assert " saved\n" in run("archive", sid(9)).out


def test_archiving_that_was_killed_behind_its_last_decision_is_archived(run: Run, home: Path) -> None:
    """`events.jsonl` is gone, closed segments are still there: they are leftovers, whatever is in them."""
    run("archive", sid(1))
    replayed = run("replay", sid(1)).out
    left = home / "sessions" / sid(1) / "000000-000000000001.jsonl"
    left.write_bytes(b"a leftover")
    assert listed(run) == {}
    assert listed(run, "--all")[sid(1)]["state"] == "archived"
    assert run("replay", sid(1)).out == replayed
    assert run("verify", sid(1)).code == 0
    assert "already" in run("archive", sid(1)).out
    assert not left.exists()


def test_a_pipe_that_stands_for_an_archive_is_not_waited_for(run: Run, home: Path) -> None:
    directory = home / "sessions" / sid(1)
    (directory / "events.jsonl").unlink()
    os.mkfifo(directory / "archive.jsonl.zst")
    assert run("replay", sid(1)).code == 5
    assert listed(run, "--all")[sid(1)]["state"] == "damaged"


def test_a_damaged_archive_is_listed_as_damaged_and_shows_what_reads(run: Run, home: Path) -> None:
    run("archive", sid(1))
    (home / "index.db").unlink(missing_ok=True)
    path = home / "sessions" / sid(1) / "archive.jsonl.zst"
    data = path.read_bytes()[:1100]
    path.write_bytes(data)
    found = run("verify", sid(1))
    assert (found.code, "archive is damaged" in found.out, "repair" in found.out) == (1, True, True)
    assert run("replay", sid(1)).code == 0
    assert path.read_bytes() == data


def test_a_session_that_somebody_has_open_is_left_alone(run: Run, home: Path) -> None:
    log = home / "sessions" / sid(1) / "events.jsonl"
    before = log.read_bytes()
    lease = take(RealFiles(), str(log.parent), sid(1))
    try:
        for words in (("archive",), ("unarchive",), ("rm", "--yes"), ("tag", "+x"), ("rename", "x")):
            done = run(words[0], sid(1), *words[1:])
            assert done.code == 4, words
            assert str(os.getpid()) in done.err
    finally:
        lease.release()
    assert log.read_bytes() == before


def test_rm_asks_where_the_workspace_holds_something_new(run: Run, home: Path) -> None:
    """Field reports N205, B37: nothing is unlinked, and what is nowhere else is not even moved unasked."""
    work = home / "workspaces" / sid(1)
    (work / "__pycache__").mkdir()
    (work / "__pycache__" / "x.pyc").write_bytes(b"nobody's work")
    (work / "made.py").write_text("x = 1\n")
    refused = run("rm", sid(1))
    assert (refused.code, "made.py" in refused.out, "x.pyc" in refused.out) == (2, True, False)
    assert "--yes" in refused.err
    assert (work / "made.py").exists()
    done = run("rm", sid(1), "--yes")
    assert (done.code, work.exists(), listed(run, "--all")) == (0, False, {})
    back = run("restore", sid(1)[-6:])
    assert (back.code, (work / "made.py").read_text()) == (0, "x = 1\n")
    assert set(listed(run)) == {sid(1)}
    assert run("restore", sid(1)).code == 3
    (work / "made.py").unlink()
    assert run("rm", sid(1)).code == 0  # nothing in it that is not somewhere else
    assert run("rm", sid(1)).code == 3


def test_rm_of_a_copy_compares_with_where_it_came_from(run: Run, home: Path, tmp_path: Path) -> None:
    from agentsh.log.frame import encode_event, encode_header
    from agentsh.log.record import Draft
    from tests.app.homes import TS, events

    origin, work = tmp_path / "shop", home / "workspaces" / sid(1)
    origin.mkdir()
    (origin / "a.py").write_text("same")
    (work / "a.py").write_text("same")
    drafts = events(sid(1), work, 1)
    drafts[0][1]["workspace"] = {"kind": "copy", "origin": str(origin), "base": None}
    head = encode_header(sid(1), ordinal=0, first_seq=1, nonce="0" * 16, created=TS, by="t")
    lines = [encode_event(Draft(k, TS, p), seq=n, dur=n - 1, salt=head.salt) for n, (k, p) in enumerate(drafts, 1)]
    (home / "sessions" / sid(1) / "events.jsonl").write_bytes(head.raw + b"".join(lines))
    (work / "a.py").write_text("other")
    assert "a.py" in run("rm", sid(1)).out
    (origin / "a.py").write_text("other")  # taken over
    assert run("rm", sid(1)).code == 0
    assert (origin / "a.py").read_text() == "other"


def test_gc_says_what_it_would_do_and_does_it_only_then(run: Run, home: Path) -> None:
    """Field reports B42, N204: nothing goes by itself, and nothing unseen."""
    run("rm", sid(1), "--yes")
    assert run("gc").code == 0
    assert run("restore", sid(1)).code == 0
    run("rm", sid(1), "--yes")
    told = run("gc", "--dry-run", "--older-than", "0")
    assert (told.code, sid(1) in told.out, "would be" in told.out) == (0, True, True)
    assert run("restore", sid(1)).code == 0
    run("rm", sid(1), "--yes")
    assert sid(1) in run("gc", "--older-than", "0").out
    assert run("restore", sid(1)).code == 3


def test_gc_stops_where_a_log_does_not_read(run: Run, home: Path) -> None:
    log = home / "sessions" / sid(1) / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[900] ^= 4
    log.write_bytes(bytes(data))
    done = run("gc")
    assert (done.code, "nothing was removed" in done.err, sid(1) in done.err) == (1, True, True)


def test_tags_and_titles(run: Run, home: Path) -> None:
    assert run("tag", sid(1)).out.strip() == ""
    assert run("tag", sid(1), "+wip", "+later").out == "wip later\n"
    assert run("tag", sid(1), "-wip", "+done", "-none").out == "later done\n"
    size = (home / "sessions" / sid(1) / "events.jsonl").stat().st_size
    assert run("tag", sid(1), "+done", "-wip").out == "later done\n"
    assert (home / "sessions" / sid(1) / "events.jsonl").stat().st_size == size  # nothing to record
    assert run("rename", sid(1), "Fix", "the", "cart").code == 0
    row = listed(run, "--tag", "done")[sid(1)]
    assert (row["title"], row["tags"]) == ("Fix the cart", ["later", "done"])
    for words in (("tag", sid(1), "plain"), ("tag", sid(1), "+"), ("tag", sid(1), "+a b"), ("rename", sid(1), " ")):
        assert run(*words).code == 2, words
    assert run("rename", "Fix the cart", "Other").code == 0
    assert run("verify", sid(1)).code == 0


def test_push_and_pull(run: Run, home: Path, tmp_path: Path) -> None:
    add(home, 2)
    url = f"file://{tmp_path}/nas"
    assert run("push", sid(1)).code == 2  # nowhere to push to
    assert run("push", sid(1), "--to", "s3://a:b@c").code == 2
    assert run("push", "--all", "--to", url).out.count("up to event 10") == 2
    (home / "agentsh.toml").write_text(f'[checkpoint]\nupload = "{url}"\n')
    assert "there already" in run("push", sid(1)).out
    rows = [json.loads(line) for line in run("pull", "--list", "--json").out.splitlines()]
    assert [(row["id"], row["last_seq"]) for row in rows] == [(sid(2), 10), (sid(1), 10)]
    assert f"do 0 of {sid(1)}" in run("pull", "--list").out
    other = tmp_path / "other"
    assert run("pull", "20261129", "--home", str(other)).code == 3
    assert run("pull", "nothing", "--home", str(other)).code == 3
    done = run("pull", sid(1)[-6:], "--home", str(other))
    assert (done.code, "--dir PATH" in done.out) == (0, True)
    log = home / "sessions" / sid(1) / "events.jsonl"
    assert (other / "sessions" / sid(1) / "events.jsonl").read_bytes() == log.read_bytes()
    assert "here already" in run("pull", sid(1)).out
    run("tag", sid(1), "+here")
    run("tag", sid(1), "+there", AGENTSH_HOME=str(other))
    run("push", sid(1), "--to", url)
    refused = run("push", sid(1), AGENTSH_HOME=str(home))
    assert (refused.code, "--replace" in refused.err) == (1, True)
    refused = run("pull", sid(1))
    assert (refused.code, "another way" in refused.err) == (1, True)
    lines = run("doctor", "--json").out.splitlines()
    said = [line for line in map(json.loads, lines) if line["subject"] == "upload"]
    assert [line["state"] for line in said] == ["warn"]
    assert f"`agentsh push {sid(1)}`" in said[0]["do"]


def test_an_archived_session_is_pushed_and_pulled_too(run: Run, home: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/nas"
    before = (home / "sessions" / sid(1) / "events.jsonl").read_bytes()
    run("archive", sid(1))
    assert "up to event 10" in run("push", sid(1), "--to", url).out
    assert "here already" in run("pull", sid(1), "--from", url).out
    run("pull", sid(1), "--from", url, "--home", str(tmp_path / "other"))
    assert (tmp_path / "other" / "sessions" / sid(1) / "events.jsonl").read_bytes() == before


def test_a_home_that_is_not_trusted_is_left_alone(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "agentsh.toml").write_text("")
    monkeypatch.delenv("AGENTSH_HOME")
    monkeypatch.chdir(home)
    for words in (("archive",), ("rm", "--yes"), ("tag", "+x"), ("rename", "x")):
        assert run(words[0], sid(1), *words[1:]).code == 2
    assert run("gc").code == 0
    assert (home / "sessions" / sid(1) / "events.jsonl").exists()
