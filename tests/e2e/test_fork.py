"""`fork`: the child's request begins as the parent's, its files are those of the moment, neither harms the other."""

import os
import shutil
from collections.abc import Callable
from typing import Any

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell, of_type, stop, wait_for
from tests.workspace.histories import state_of

Serve = Callable[..., ScriptedServer]


def sh(command: str) -> Any:
    return reply(calls=[call("shell", {"command": command})])


def a_parent(shell: Shell, serve: Serve, *more: Any) -> ScriptedServer:
    """Three turns, each of which leaves the file `n` with its number; the first makes more."""
    server = serve(
        sh("echo 1 > n; mkdir -p d/empty; ln -s n l; chmod 600 n"), reply("one"),
        sh("echo 2 > n; rm -r d"), reply("two"),
        sh("echo 3 > n"), reply("three"),
        *more,
    )  # fmt: skip
    assert shell.run("new", "turn 1", "-p", "--empty", "--mode", "yolo").code == 0
    for n in (2, 3):
        assert shell.run("resume", "--last", f"turn {n}", "-p").code == 0
    return server


def texts(messages: Any) -> list[str]:
    """What the user said, without what is told of the surroundings before it."""
    return [m["content"].rpartition("</changes>\n\n")[2] for m in messages if m["role"] == "user"]


def ends(shell: Shell) -> list[int]:
    return [e["seq"] for e in shell.events() if e["type"] == "turn_finished"]


def test_d78_at_each_turn_the_request_begins_as_the_parents(shell: Shell, serve: Serve) -> None:
    server = a_parent(shell, serve, *(reply(f"fork {n}") for n in range(3)))
    (parent,) = shell.ids
    asked = [r.messages for r in server.requests]
    for n, seq in enumerate(ends(shell), 1):
        made = shell.run("fork", parent, "--at", str(seq), "--json").events[0]
        here = shell.workspace(made["id"])
        assert (here / "n").read_text() == f"{n}\n"
        assert (here / "n").stat().st_mode & 0o777 == 0o600
        assert os.readlink(here / "l") == "n"
        assert (here / "d" / "empty").is_dir() == (n == 1)
        done = shell.run("resume", made["id"], f"other turn {n + 1}", "-p")
        assert (done.code, done.text) == (0, f"fork {n - 1}\n"), done.err
        messages = server.requests[-1].messages
        before = asked[2 * n - 1]  # the last request of the parent's turn n
        assert messages[: len(before)] == before
        said = texts(messages)
        assert str(here) in messages[len(before) + 1]["content"], "it is told that it works somewhere else now"
        assert said == [f"turn {k}" for k in range(1, n + 1)] + [f"other turn {n + 1}"]
        (init,) = [e for e in shell.events(made["id"]) if e["type"] == "session_init"]
        assert init["seq"] == seq + 1
        assert init["payload"]["id"] == made["id"]
        assert shell.inside("verify", made["id"]).code == 0
    assert shell.inside("verify", parent).code == 0


def test_deleting_the_parent_never_harms_the_child(shell: Shell, serve: Serve) -> None:
    server = a_parent(shell, serve, reply("the child goes on"))
    (parent,) = shell.ids
    before = state_of(shell.workspace())
    middle = shell.inside("fork", parent, "--json").events[0]["id"]
    child = shell.inside("fork", middle, "--json").events[0]["id"]
    assert state_of(shell.workspace(child)) == before
    for session in (parent, middle):
        shutil.rmtree(shell.home / "sessions" / session)
        shutil.rmtree(shell.workspace(session))
    for blob in (shell.home / "blobs").rglob("*.zst"):
        os.utime(blob, (1, 1))  # gc spares what is new
    assert shell.inside("gc").code == 0
    done = shell.run("resume", child, "on", "-p")
    assert (done.code, done.text) == (0, "the child goes on\n"), done.err
    assert "turn 1" in shell.inside("replay", child).text
    seq = next(e["seq"] for e in shell.events(child)) - 1
    assert shell.inside("rewind", child, "--to", str(seq - 8)).code == 0, "even before the branch"
    assert len(server.requests) == 7


def test_an_archived_session_is_forked_where_it_lies(shell: Shell, serve: Serve) -> None:
    a_parent(shell, serve, reply("the child goes on"))
    (parent,) = shell.ids
    second = ends(shell)[1]
    assert shell.run("archive", parent).code == 0
    done = shell.inside("fork", parent, "--at", str(second), "--json")
    assert done.code == 0, done.err
    child = done.events[0]["id"]
    assert (shell.workspace(child) / "n").read_text() == "2\n"
    done = shell.run("resume", child, "on", "-p")
    assert (done.code, done.text) == (0, "the child goes on\n"), done.err
    assert shell.inside("verify", "--all").code == 0
    assert not shell.log(parent).exists(), "the parent is an archive as before"


def test_c64_each_session_has_its_lock_alone(shell: Shell, serve: Serve) -> None:
    a_parent(shell, serve, sh("sleep 60"), reply("child"), reply("parent"))
    (parent,) = shell.ids
    process = shell.start("resume", parent, "long", "-p")
    wait_for(lambda: shell.log(parent).read_bytes().count(b'"type":"tool_started"') == 4)
    made = shell.inside("fork", parent, "--json")
    assert made.code == 0, "a session that somebody else has can be forked"
    child = made.events[0]["id"]
    (row,) = (row for row in shell.run("ls", "--json").events if row["id"] == child)
    assert row["state"] == "idle", "nothing crashed: it was forked in the middle of a turn"
    assert shell.run("resume", parent, "x", "-p").code == 4
    done = shell.run("resume", child, "short", "-p")
    assert (done.code, done.text) == (0, "child\n"), done.err
    assert of_type(shell.events(child), "turn_finished")[0]["reason"] == "interrupted", "the turn that was cut"
    assert "forked" in of_type(shell.events(child), "tool_result")[0]["for_model"], "the call that runs in the parent"
    assert not of_type(shell.events(child), "recovered")
    stop(process)
    assert shell.run("resume", parent, "again", "-p").code == 0
    assert (shell.workspace(parent) / "n").read_text() == "3\n"


def test_d77_fork_undo_resume_show_what_is_sent(shell: Shell, serve: Serve) -> None:
    server = a_parent(shell, serve, reply("fork"), reply("after"))
    child = shell.inside("fork", shell.ids[0], "--json").events[0]["id"]
    shell.run("resume", child, "turn 4", "-p")
    assert shell.inside("rewind", child, "--to", str(ends_of(shell, child)[1])).code == 0
    assert shell.inside("rewind", child, "--undo").code == 0
    shell.run("resume", child, "turn 5", "-p")
    said = texts(server.requests[-1].messages)
    assert said == [f"turn {n}" for n in range(1, 6)]
    shown = shell.inside("replay", child).text
    assert [n for n in range(1, 6) if f"› turn {n}\n" in shown] == [1, 2, 3, 4, 5]


def ends_of(shell: Shell, session: str) -> list[int]:
    return [e["seq"] for e in shell.inside("replay", session, "--json").events if e["type"] == "turn_finished"]


def test_what_the_user_did_since_is_in_a_fork_of_now(shell: Shell, serve: Serve) -> None:
    a_parent(shell, serve)
    (shell.workspace() / "mine").write_text("x")
    now, then = (shell.inside("fork", shell.ids[0], *at, "--json").events[0]["id"] for at in ((), ("--at", "5")))
    assert (shell.workspace(now) / "mine").read_text() == "x"
    assert not (shell.workspace(then) / "mine").exists()
    log = shell.home / "sessions" / now
    assert sum(f.stat().st_size for f in log.iterdir() if f.stat().st_nlink == 1) < 100_000


def test_a_fork_that_cannot_be_leaves_nothing(shell: Shell, serve: Serve) -> None:
    a_parent(shell, serve)
    (parent,) = shell.ids
    assert shell.inside("fork", parent, "--at", "99999").code == 2
    assert shell.inside("fork", "nosuch").code == 3
    blobs = set((shell.home / "blobs").rglob("*.zst"))
    first = of_type(shell.events(), "snapshot_taken")[-1]["snapshot"].removeprefix("sha256:")
    for path in blobs:
        if path.stem == first:
            path.unlink()
    shutil.rmtree(shell.workspace(parent))
    done = shell.inside("fork", parent)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert shell.ids == [parent]
    assert os.listdir(shell.home / "workspaces") == []
