"""Field reports A: broken chains of records. The order is that of `seq`, nothing points to what is not there."""

import errno
import json
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.repairing import WORDS
from agentsh.base.errors import LogWriteFailed
from agentsh.log.frame import resealed
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.repair import repairing
from agentsh.testing.server import ScriptedServer, call, reply
from tests.app.homes import TS, events, log_of, sid
from tests.e2e.harness import COMMAND
from tests.field.conftest import Case
from tests.log.disks import FaultyFiles, UnsyncedFiles
from tests.log.logs import header, line

Serve = Callable[..., ScriptedServer]
SAID: dict[str, Any] = {
    "text": "", "reasoning": None, "model": "scripted", "finish": "tool_calls", "usage": None, "cost_usd": None,
}  # fmt: skip


def store(case: Case) -> JsonlStore:
    return JsonlStore(case.shell.home / "sessions", FileBlobs(case.shell.home / "blobs"), files=UnsyncedFiles())


def dangling(found: list[dict[str, Any]]) -> list[int]:
    """Return the seqs of events whose cause is not there before them."""
    known: set[int] = set()
    odd = []
    for event in found:
        if event.get("cause") is not None and event["cause"] not in known:
            odd.append(event["seq"])
        known.add(event["seq"])
    return odd


@pytest.mark.parametrize("doubled", range(1, 13))
def test_a22_a_line_that_stands_there_twice_hides_nothing(case: Case, doubled: int) -> None:
    """A22 anthropics/claude-code#36583: records with ids of others, and 25 % of the history cannot be reached."""
    lines = case.lines
    for at in (doubled + 1, len(lines)):
        case.put(b"".join([*lines[:at], lines[doubled], *lines[at:]]))
        assert [r.raw for r in store(case).read(case.id)] == lines[1:]


@pytest.mark.parametrize("k", range(1, 9))
async def test_a23_only_what_is_in_the_file_is_named(tmp_path: Path, k: int) -> None:
    """A23 anthropics/claude-code#22107: parents that were never written. EIO on append k, and the session goes on."""
    disk = FaultyFiles(UnsyncedFiles(), k, errno.EIO, only=("write",))
    sessions = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), files=disk)
    try:
        log = await sessions.create(sid(1), by="test")
    except LogWriteFailed:
        assert sessions.sessions() == []
        return
    for n in range(8):
        cause = log.last_seq or None
        try:
            await log.append([Draft("note", TS, {"text": f"{n}"}, cause), Draft("note", TS, {"text": "b"}, cause)])
        except LogWriteFailed:
            continue
    await log.close()
    found = [json.loads(record.raw) for record in sessions.read(sid(1))]
    assert dangling(found) == []
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert sessions.damages(sid(1)) == []


def test_a24_nothing_dangles_in_a_real_session(case: Case, serve: Serve) -> None:
    """A24 anthropics/claude-code#22526: a session of four messages with phantom parents already.

    The same is looked for in every session of every end-to-end test, behind it (`tests/e2e/contexts.py`).
    """
    serve(*[reply(f"answer {n}") for n in range(2)])
    for n in range(2):
        assert case.shell.run("resume", case.id, f"question {n}", "-p").code == 0
    assert dangling(case.shell.events(case.id)) == []
    assert case.shell.run("verify", case.id).code == 0


def test_a25_a28_a_hole_is_bridged_and_told(case: Case, serve: Serve) -> None:
    """A25 anthropics/claude-code#58554, A28 QwenLM/qwen-code#6501: what is before and after a hole is all there."""
    lines = case.lines
    case.put(b"".join([*lines[:5], *lines[7:]]))
    server = serve(reply("Still here."))
    done = case.shell.run("resume", case.id, "go on", "-p")
    assert done.code == 0, done.err
    sent = server.requests[0].body.decode()
    assert "do 0 of" in sent
    assert "do 3 of" in sent
    assert "damage" in done.err or "missing" in done.err or "read" in done.err
    assert case.shell.run("repair", case.id, "--yes").code == 0
    assert "events 5 to 6 are lost" in case.shown(), "and where it was is marked"


def test_a29_of_two_tips_one_is_live_and_the_other_is_named(case: Case) -> None:
    """A29 delexw/claude-code-trace#40: readers must pick the live branch among dead ends."""
    head, data = header(session=case.id), log_of(case.id, events(case.id, case.log.parent, 2))
    common = data.splitlines(keepends=True)[1:]
    shared = [resealed(text, head.salt) for text in common]
    last = len(shared)
    mine = [line(last + n, head.salt, dur=last - 1, text=f"mine {n}") for n in (1, 2)]
    yours = [line(last + n, head.salt, dur=last - 1, text=f"yours {n}") for n in (1, 2, 3)]
    case.put(head.raw + b"".join([*shared, *mine, *yours]))
    done = case.shell.run("resume", case.id, "go on", "-p", "--model", "demo")
    assert done.code == 5
    assert "agentsh repair" in done.err
    with repairing(str(case.shell.home / "sessions"), case.id, WORDS) as repairer:
        plan = repairer.plan()
        assert plan is not None
        repairer.repair(plan)
    texts = [record.payload.get("text", "") for record in store(case).read(case.id)]
    assert [t for t in texts if str(t).startswith("yours")] == ["yours 1", "yours 2", "yours 3"]
    assert any("2 events that another program wrote" in str(t) for t in texts)
    assert b"".join(mine) in case.quarantine()


def test_a11_a_kill_between_call_and_result(case: Case, serve: Serve) -> None:
    """A11 github/copilot-cli#3183: an orphan call makes the session unusable. The request has a result for it."""
    drafts = events(case.id, case.shell.home / "workspaces" / case.id, 1)[:2]
    asked = {"call": "call_1", "name": "shell", "arguments": '{"command":"sleep 9"}'}
    started = {"call": "call_1", "effects": ["exec"], "sandbox": "none", "pid": None, "decision": "auto"}
    drafts += [("agent_message", SAID), ("tool_call", asked), ("tool_started", started)]
    case.put(log_of(case.id, drafts, {4: 3, 5: 4}))
    server = serve(reply("It may have run."))
    done = case.shell.run("resume", case.id, "go on", "-p")
    assert done.code == 0, done.err
    messages = json.loads(server.requests[0].body)["messages"]
    (result,) = [m for m in messages if m["role"] == "tool"]
    assert result["tool_call_id"] == "call_1"
    assert "may have run" in result["content"]


def test_a19_little_memory_and_a_kill_inside_a_tool(case: Case, serve: Serve) -> None:
    """A19 MoonshotAI/kimi-cli#2336: memory pressure, the session is gone from the list, and a resume gets a 400."""
    limit = 1 << 30  # of addresses, most of which are never touched
    server = serve(reply(calls=[call("shell", {"command": "sleep 300"})]), reply("I am back."))
    process = subprocess.Popen(
        [COMMAND, "resume", case.id, "sleep", "-p", "--mode", "yolo"], cwd=case.shell.cwd, env=case.shell.env(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    case.shell.started.append(process)
    end = time.monotonic() + 60
    while b'"tool_started"' not in case.log.read_bytes():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait(20)
    assert [row["state"] for row in case.shell.run("ls", "--json").events if row["id"] == case.id] == ["crashed"]
    done = case.shell.run("resume", case.id, "go on", "-p")
    assert (done.code, done.text.strip()) == (0, "I am back."), done.err
    assert server.problems == [], "the server judges each request as a provider would"
    (result,) = [m for m in json.loads(server.requests[-1].body)["messages"] if m["role"] == "tool"]
    assert "may have run" in result["content"]


def test_a32_two_calls_with_one_id(case: Case, serve: Serve) -> None:
    """A32 OpenHands/software-agent-sdk#2550: KeyError on a doubled tool id. The log stays as it is."""
    drafts = events(case.id, case.shell.home / "workspaces" / case.id, 1)[:2]
    for n in range(2):
        asked = {"call": "call_1", "name": "list", "arguments": "{}"}
        result = {"call": "call_1", "status": "ok", "for_model": f"out {n}", "for_user": "", "duration_ms": 1}
        drafts += [("agent_message", SAID), ("tool_call", asked), ("tool_result", result)]
    case.put(log_of(case.id, drafts, {4: 3, 5: 4, 7: 6, 8: 7}))
    server = serve(reply("Fine."))
    before = case.log.read_bytes()
    done = case.shell.run("resume", case.id, "go on", "-p")
    assert done.code == 0, done.err
    messages = json.loads(server.requests[0].body)["messages"]
    ids = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert len(ids) == 2
    assert len(set(ids)) == 2
    assert case.log.read_bytes().startswith(before)
