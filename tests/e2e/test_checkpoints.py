"""Sessions with checkpoints, through the command: the same as without, and damage that they skip is told."""

import shutil
from collections.abc import Callable
from pathlib import Path

from agentsh.log.checkpoint import checkpoint_seqs, read_checkpoint, write_checkpoint
from agentsh.log.files import RealFiles
from agentsh.log.frame import decode_header, resealed
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.server import ScriptedServer, call, reply
from tests.app.rig import USAGE, a_home, an_id
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
OFTEN = "[checkpoint]\nevery_events = 1\n"


def configure(shell: Shell, text: str) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(text)


def checkpoints(shell: Shell) -> Path:
    return shell.log().parent / "checkpoints"


def test_a_session_without_its_checkpoints_sends_the_same_bytes(shell: Shell, serve: Serve) -> None:
    looks = reply("I look.", calls=[call("list", {"path": "."})])
    server = serve(looks, reply("one"), looks, reply("two"), looks, reply("three"), looks, reply("three"))
    configure(shell, OFTEN)
    shell.run("new", "first", "-p")
    shell.run("resume", "--last", "second", "-p")
    saved = of_type(shell.events(), "checkpoint")
    names = sorted(path.name for path in checkpoints(shell).glob("*.zst"))
    assert names == sorted(fact["file"] for fact in saved)[-3:]
    assert {path.stat().st_mode & 0o777 for path in checkpoints(shell).glob("*.zst")} == {0o600}
    done = shell.run("verify", shell.ids[-1])
    assert (done.code, "3 checkpoints" in done.text) == (0, True), done.text

    session = shell.log().parent
    before = shell.cwd / "before"
    shutil.copytree(session, before)
    assert shell.run("resume", shell.ids[-1], "third", "-p").text == "three\n"
    shutil.rmtree(session)
    shutil.copytree(before, session)
    shutil.rmtree(checkpoints(shell))
    assert shell.run("resume", shell.ids[-1], "third", "-p").text == "three\n"
    bodies = [request.body for request in server.requests]
    assert bodies[4] == bodies[6]
    assert b"third" in bodies[4]
    assert len(of_type(shell.events(), "checkpoint")) > len(saved), "and they are made again"


def test_resume_folds_what_is_behind_a_checkpoint_and_nothing_else(shell: Shell, serve: Serve) -> None:
    """Every process is another one. What stands before the checkpoint says something else now, and nobody reads it.

    Unless there is none that holds: of another reducer, or damaged.
    """
    server = serve(*(reply("well"),) * 5)
    configure(shell, OFTEN)
    shell.run("new", "the very first", "-p")
    lines = shell.log().read_bytes().splitlines(keepends=True)
    salt = decode_header(lines[0]).salt
    shell.log().write_bytes(b"".join(
        resealed(line.replace(b"the very first", b"THE VERY FIRST"), salt) if line.startswith(b'{"seq":') else line
        for line in lines
    ))  # fmt: skip
    anchored = max(checkpoint_seqs(RealFiles(), str(shell.log().parent)))
    assert anchored > next(n for n, line in enumerate(lines) if b"the very first" in line)

    def asked() -> list[bool]:
        assert shell.run("resume", "--last", "and", "-p").text == "well\n"
        body = server.requests[-1].body
        return [b"the very first" in body, b"THE VERY FIRST" in body]

    assert asked() == [True, False]
    assert asked() == [True, False], "one that was made by a process that had begun at one"
    files, directory = RealFiles(), str(shell.log().parent)
    for seq in checkpoint_seqs(files, directory):
        found = read_checkpoint(files, directory, seq)
        assert found is not None
        write_checkpoint(files, directory, found._replace(reducer=found.reducer + "x"))
    assert asked() == [False, True]
    for path in checkpoints(shell).glob("*.zst"):
        data = path.read_bytes()
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    assert asked() == [False, True]
    shutil.rmtree(shell.home / "sessions")  # what the log says is not what was sent


def test_damage_that_opening_skipped_is_told_once(shell: Shell, serve: Serve) -> None:
    slow = reply("slowly said.", chunk=1, gap_s=0.25)
    serve(reply("one"), slow, slow)
    configure(shell, OFTEN)
    shell.run("new", "the very first", "-p")
    data = shell.log().read_bytes()
    place = data.index(b"the very first")
    shell.log().write_bytes(data[:place] + b"The" + data[place + 3 :])
    done = shell.run("resume", "--last", "go on", "-p")
    assert (done.code, done.text) == (0, "slowly said.\n")
    assert len([line for line in done.err.splitlines() if "damaged" in line or "do not read" in line]) == 1, done.err
    (told,) = of_type(shell.events(), "recovered")
    assert [d["kind"] for d in told["damages"]] == ["crc"]
    done = shell.run("resume", "--last", "go on", "-p")
    assert (done.code, done.err) == (0, "")
    assert len(of_type(shell.events(), "recovered")) == 1


async def test_a_long_session_shows_its_newest_turns_and_says_what_it_left_out(shell: Shell) -> None:
    session, home = an_id(1), a_home(shell.home)
    store = JsonlStore(home.sessions, FileBlobs(home.blobs), segment_bytes=60_000)
    log = await store.create(session, by="t")
    init = {
        "id": session, "title": "long", "cwd": "/", "project": None, "model": "demo", "mode": "ask",
        "workspace": {"kind": "empty", "origin": None, "base": None},
    }  # fmt: skip
    spent = {"usage": USAGE, "cost_usd": None}
    answer = {"reasoning": None, "model": "demo", "finish": "stop", **spent}
    drafts = [Draft("session_init", "2026-11-29T16:20:00.000000Z", init)]
    for turn in range(50):
        ts = f"2026-11-29T17:{turn:02}:00.000000Z"
        drafts += [
            Draft("user_message", ts, {"text": f"question {turn} " + "x" * 3_000, "attachments": []}),
            Draft("agent_message", ts, {"text": f"answer {turn}", **answer}),
            Draft("turn_finished", ts, {"reason": "done", "steps": 1, **spent, "duration_ms": 1}),
        ]
        await log.append(drafts)
        drafts = []
        await log.turn_ended()
    await log.close()
    shell.workspace(session).mkdir(parents=True)
    env = shell.env(TERM="xterm-256color")
    with Terminal(100, 200, argv=[str(COMMAND), "resume", session], cwd=shell.cwd, **env) as live:
        live.wait(lambda: "answer 49" in live.page, 40)
        live.look(0.5)
        live.type("/exit\r")
        assert live.ended() == 0
        page = live.page
    assert [n for n in range(50) if f"answer {n}" in page.split()] == []
    assert [n for n in range(50) if f"answer {n}\n" in page + "\n"] == [47, 48, 49]
    assert f"141 earlier events not shown here: `agentsh replay {session}` shows all" in page
    assert f"agentsh resume {session}" in page, "the beginning is there"
