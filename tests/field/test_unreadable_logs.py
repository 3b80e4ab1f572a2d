"""Field reports A: torn, corrupt and unreadable logs. The session lists, opens, goes on, and says so."""

from collections.abc import Callable

import pytest

from agentsh.testing.server import ScriptedServer, reply
from tests.app.homes import add, sid
from tests.e2e.harness import Done, Shell, of_type
from tests.field.conftest import Case

Serve = Callable[..., ScriptedServer]


def goes_on(case: Case, serve: Serve) -> Done:
    """Resume the session with a prompt, as its user would; the answer comes."""
    serve(reply("I am back."))
    done = case.shell.run("resume", case.id, "go on", "-p")
    assert done.code == 0, done.err
    assert done.text.strip() == "I am back."
    return done


def events(case: Case) -> list[dict[str, object]]:
    """Return the events that read, in order."""
    done = case.shell.run("replay", case.id, "--json")
    return done.events


def test_a1_garbage_over_the_last_bytes(case: Case, serve: Serve) -> None:
    """A1 github/copilot-cli#1864: "Session file is corrupted (line 7103…)", and no way back."""
    garbage = bytes(range(1, 201))
    case.put(case.data[:-200] + garbage)
    before = len(case.lines) - 1
    done = goes_on(case, serve)
    found = case.shell.events(case.id)
    assert [e["seq"] for e in found[: before - 1]] == list(range(1, before))
    assert found[before - 1]["type"] == "opened", "all but the last event are there"
    (recovered,) = of_type(found, "recovered")
    assert recovered["cut_bytes"] >= 200
    assert "set aside" in done.err or "recovered" in done.err.lower() or "bytes" in done.err, done.err
    assert any(garbage in kept for kept in case.quarantine())


def test_a2_nul_bytes_at_the_end(case: Case, serve: Serve) -> None:
    """A2 github/copilot-cli#2217: 1,728 NUL bytes after a kill; "No session matched"."""
    case.put(case.data + bytes(1728))
    assert "do 0 of" in case.listed()
    assert "Done 3." in case.shown()
    goes_on(case, serve)
    assert case.quarantine() == [bytes(1728)]
    assert case.log.read_bytes().startswith(case.data)
    assert b"\0" not in case.log.read_bytes()


def test_a3_nul_bytes_a_broken_sidecar_and_a_stale_lock(case: Case, serve: Serve) -> None:
    """A3 github/copilot-cli#2927: all three at once after a shutdown, and nothing works."""
    case.put(case.data + bytes(4096))
    case.put(b"", "meta.json")
    case.put(b'{"pid": 1, "host": "gone", "tty": "/dev/pts/0", "since": "2026-11-29T16:20:01.118204Z"}\n', "lock")
    assert "pid" not in case.listed(), "nobody holds it"
    goes_on(case, serve)
    assert case.shell.run("verify", case.id).code == 0


def test_a13_a_byte_order_mark_in_one_of_twenty(case: Case, serve: Serve) -> None:
    """A13 openai/codex#28139: one BOM broke reads of all threads."""
    for n in range(2, 21):
        add(case.shell.home, n, 1)
    case.put(b"\xef\xbb\xbf" + case.data)
    rows = case.shell.run("ls", "--all", "--json").events
    assert len(rows) == 20
    assert [row["id"] for row in rows if row["turns"] == 0] == []
    assert "Done 3." in case.shown()
    for n in range(2, 21):
        done = case.shell.inside("replay", sid(n), "--format", "text")
        assert (done.code, "Done 0." in done.text) == (0, True), "and each of the others"
    done = case.shell.run("resume", sid(20), "go on", "-p", "--model", "demo")
    assert done.code == 0, done.err
    goes_on(case, serve)
    done = case.shell.run("verify", case.id)
    assert done.code == 1
    assert "byte-order mark" in done.text
    assert case.shell.run("repair", case.id, "--yes").code == 0
    assert case.shell.run("verify", case.id).code == 0


def test_a14_a_doubled_and_a_missing_number(case: Case, serve: Serve) -> None:
    """A14 openai/codex#38341: an ordinal that does not fit, and the thread is left out of the list."""
    lines = case.lines
    case.put(b"".join([*lines[:4], lines[3], *lines[4:6], *lines[7:]]))
    assert "damaged" in case.listed()
    done = case.shell.run("doctor")
    assert done.code == 1
    assert case.id in done.text
    assert "agentsh repair" in done.text
    done = case.shell.run("verify", case.id)
    assert "twice" in done.text
    assert "entries are missing" in done.text
    goes_on(case, serve)


def test_a14_no_usable_header(case: Case, serve: Serve) -> None:
    """A14 openai/codex#38341: no usable header."""
    case.put(b"{}\n" + b"".join(case.lines[1:]))
    assert "do 0 of" in case.listed()
    goes_on(case, serve)
    assert [e["seq"] for e in events(case)] == list(range(1, len(events(case)) + 1))


def test_a15_a_newer_and_an_older_writer_in_one_log(case: Case) -> None:
    """A15 openai/codex#45150: mixed records of two versions, unresumable. A newer format is read-only and says so."""
    case.log.rename(case.log.with_name("000000-000000000001.jsonl"))
    case.put(b'{"format":"agentsh-log/2","session":"x"}\n')
    assert case.id in case.listed()
    done = case.shell.run("replay", case.id, "--format", "text")
    assert "Done 3." in done.text, "what can be read is shown"
    assert (done.code, "update agentsh" in done.err) == (5, True)
    done = case.shell.run("resume", case.id, "go on", "-p", "--model", "demo")
    assert (done.code, "update agentsh" in done.err) == (5, True)
    assert case.shell.run("repair", case.id, "--yes").code == 5
    assert "newer" in case.shell.run("verify", case.id).text


def test_a16_two_writers_tear_one_line(case: Case, serve: Serve) -> None:
    """A16 MoonshotAI/kimi-code#3181: AppendLogCorruptedError, and the session is dead for ever."""
    lines = case.lines
    case.put(b"".join([*lines[:5], lines[5][:60], lines[6], lines[5][60:], *lines[7:]]))
    bad = lines[5][60:]
    done = goes_on(case, serve)
    assert "damage" in done.err or "read" in done.err, done.err
    assert bad in case.log.read_bytes(), "damage in the middle stays where it is"
    assert case.shell.run("repair", case.id, "--yes").code == 0
    assert any(bad in kept for kept in case.quarantine()), "and is kept when it is repaired"
    assert case.shell.run("verify", case.id).code == 0
    goes_on(case, serve)


def test_a20_the_last_page_is_gone(case: Case, serve: Serve) -> None:
    """A20 anthropics/claude-code#53821: resume opens blank after a power loss."""
    log = add(case.shell.home, 2, 40, words="long " * 40)
    data = log.read_bytes()
    log.write_bytes(data[:-4096])
    whole = data[:-4096].count(b"\n") - 1
    shown = case.shell.run("replay", sid(2), "--json").events
    assert [e["seq"] for e in shown] == list(range(1, whole + 1))
    assert "Done 30." in case.shell.run("replay", sid(2), "--format", "text").text
    serve(reply("Here."))
    assert case.shell.run("resume", sid(2), "go on", "-p").code == 0


def test_a20_the_end_is_gone_and_no_line_tells(case: Case, serve: Serve) -> None:
    """A20 anthropics/claude-code#53821: cut where a line ends, or an older copy is back: a checkpoint knew more."""
    (case.shell.home / "agentsh.toml").write_text("[checkpoint]\nevery_events = 1\n")
    goes_on(case, serve)
    before, lines = events(case), case.lines
    case.put(b"".join(lines[: len(lines) // 2]))
    left = len(lines) // 2 - 1
    done = case.shell.run("verify", case.id)
    assert (done.code, "entries are missing" in done.text) == (1, True), done.text
    assert "damaged" in case.listed()
    done = goes_on(case, serve)
    assert "1 damaged place" in done.err
    seqs = [int(str(e["seq"])) for e in events(case)]
    assert seqs[:left] == list(range(1, left + 1))
    assert seqs[left] > max(int(str(e["seq"])) for e in before) - 5, "what is gone keeps its numbers"
    assert len([e for e in of_type(case.shell.events(case.id), "recovered") if e["damages"]]) == 1


def test_a30_nul_bytes_in_the_middle(case: Case, serve: Serve) -> None:
    """A30 neilberkman/ccrider#11: a reader crashes on NUL bytes."""
    at = len(b"".join(case.lines[:5])) + 30
    case.put(case.data[:at] + bytes(300) + case.data[at + 300 :])
    shown = case.shown()
    assert "Done 0." in shown
    assert "Done 3." in shown
    goes_on(case, serve)


@pytest.mark.parametrize("data", [b"", b"\n", bytes(4096)])
def test_a31_an_empty_log_beside_good_ones(case: Case, data: bytes) -> None:
    """A31 OpenHands/OpenHands#16727: a zero-byte file after a crash, and nothing loads."""
    log = add(case.shell.home, 2, 1)
    log.write_bytes(data)
    rows = case.shell.run("ls", "--all", "--json").events
    assert {row["id"] for row in rows} == {sid(1), sid(2)}
    done = case.shell.run("resume", sid(2), "go on", "-p", "--model", "demo")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "empty" in done.err


def test_a31_an_empty_blob(case: Case, serve: Serve, shell: Shell) -> None:
    """A31 OpenHands/OpenHands#16727: likewise a blob. The event that names it reads, and `verify` tells."""
    serve(reply("x" * 40_000), reply("again"), reply("and again"))
    assert shell.run("new", "long", "--empty", "-p").code == 0
    session = next(i for i in shell.ids if i != case.id)
    (ref,) = [p["text"]["blob"] for p in of_type(shell.events(session), "agent_message")]
    name = ref.removeprefix("sha256:")
    (shell.home / "blobs" / name[:2] / f"{name}.zst").write_bytes(b"")
    done = shell.run("verify", session)
    assert done.code == 1
    assert name in done.text
    assert shell.run("replay", session, "--format", "text").code == 0
    assert "xxxx" in shell.run("replay", session, "--format", "text").text
    done = shell.run("resume", session, "go on", "-p")
    assert (done.code, done.text.strip()) == (0, "again"), done.err
    assert done.err.count("1 long text missing or damaged") == 1, done.err
    assert shell.run("resume", session, "on", "-p").err == "", "told once"
