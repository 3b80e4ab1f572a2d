"""`rewind` and what it leaves: files, conversation, the log, the next request."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from typing import Any

from agentsh.stores.blobs import FileBlobs
from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.repl.pty import Terminal
from tests.workspace.histories import state_of

Serve = Callable[..., ScriptedServer]


def sh(command: str) -> Any:
    return reply(calls=[call("shell", {"command": command})])


def users(request: Any) -> list[str]:
    return [m["content"] for m in request.messages if m["role"] == "user"]


def turn_seqs(shell: Shell) -> list[int]:
    return [e["seq"] for e in shell.events() if e["type"] == "user_message"]


def two_turns(shell: Shell, serve: Serve, *more: Any) -> ScriptedServer:
    """A first turn that writes two files, a second that changes and removes them by edit tool and shell."""
    (shell.cwd / "mine.txt").write_text("mine\n")
    server = serve(
        reply(calls=[call("write", {"path": "a.txt", "content": "one\n"})]),
        sh("mkdir -p d/empty && echo two > d/b.txt && ln -s b.txt d/l && chmod 750 d/b.txt"),
        reply("first done"),
        reply(calls=[call("edit", {"path": "a.txt", "old": "one", "new": "ONE"})]),
        sh("rm -r d; echo c > c.txt"),
        reply("second done"),
        *more,
    )
    assert shell.run("new", "turn one", "-p", "--mode", "yolo").code == 0
    assert shell.run("resume", "--last", "turn two", "-p").code == 0
    return server


def test_snapshots_are_facts(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    taken = of_type(shell.events(), "snapshot_taken")
    assert [t.get("by", "tool") for t in taken] == ["start", "tool", "tool"]
    assert [t["files"] for t in taken] == [1, 4, 3]
    edits = of_type(shell.events(), "code_edit")
    assert all(edit["snapshot"].startswith("sha256:") for edit in edits)
    assert len({edit["snapshot"] for edit in edits} | {t["snapshot"] for t in taken}) == 5


def test_back_and_forth(shell: Shell, serve: Serve) -> None:
    """Field report M191: a rewind keeps what was there, and its undoing brings all of it back."""
    server = two_turns(shell, serve, reply("third done"), reply("fourth done"))
    before = state_of(shell.workspace())
    second = turn_seqs(shell)[1]
    listed = shell.run("rewind", shell.ids[0], "--json").events
    assert [(m["to"], m["prompt"], m["files"]) for m in listed] == [
        (turn_seqs(shell)[0] - 1, "turn one", 4), (second - 1, "turn two", 5),
    ]  # fmt: skip
    done = shell.inside("rewind", shell.ids[0], "--to", str(second - 1))
    assert done.code == 0, done.err
    assert "undo with" in done.text
    here = shell.workspace()
    assert (here / "a.txt").read_text() == "one\n"
    assert (here / "d" / "b.txt").read_text() == "two\n"
    assert (here / "d" / "b.txt").stat().st_mode & 0o777 == 0o750
    assert os.readlink(here / "d" / "l") == "b.txt"
    assert list((here / "d" / "empty").iterdir()) == []
    assert not (here / "c.txt").exists()
    assert shell.run("resume", "--last", "turn three", "-p").text == "third done\n"
    assert users(server.requests[-1]) == ["turn one", "turn three"]
    done = shell.inside("rewind", shell.ids[0], "--undo")
    assert done.code == 0, done.err
    assert state_of(here) == before
    assert shell.run("resume", "--last", "turn four", "-p").text == "fourth done\n"
    assert users(server.requests[-1]) == ["turn one", "turn two", "turn four"], "what was undone is there again"
    assert shell.inside("rewind", shell.ids[0], "--undo").code == 2, "none is left"
    checked = shell.inside("verify", shell.ids[0], "--contexts")
    assert checked.code == 0, checked.text


def test_redo_after_new_work_and_back_to_that(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve, sh("echo three > a.txt; echo n > new.txt; rm -r d"), reply("third done"))
    session, before = shell.ids[0], state_of(shell.workspace())
    shell.inside("rewind", session, "--to", str(turn_seqs(shell)[1] - 1))
    assert shell.run("resume", session, "other work", "-p").text == "third done\n"
    worked, last = state_of(shell.workspace()), shell.events()[-1]["seq"]
    assert shell.inside("rewind", session, "--undo").code == 0
    assert state_of(shell.workspace()) == before
    assert shell.inside("rewind", session, "--to", str(last)).code == 0, "the new work is not lost by that"
    assert state_of(shell.workspace()) == worked


def test_the_picker_shows_the_diff_of_each_turn(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    argv = [str(COMMAND), "resume", shell.ids[0]]
    with Terminal(90, 24, argv=argv, cwd=shell.cwd, **shell.env(TERM="xterm-256color")) as t:
        t.wait(lambda: "›" in t.page, 60)
        t.type("/rewind\r")
        t.wait(lambda: "▸ turn two" in t.page and "M a.txt +1 -1" in t.page and "+ONE" in t.page, 60)
        assert "-one" in t.page
        t.type("\x1b[A")
        t.wait(lambda: "▸ turn one" in t.page and "A a.txt +1 -0" in t.page, 60)
        t.type("\x1b")
        t.wait(lambda: "Back to before which turn?" not in t.page, 60)
        t.look(0.2)
        t.type("/exit\r")
        assert t.ended() == 0


def test_files_alone_and_talk_alone(shell: Shell, serve: Serve) -> None:
    server = two_turns(shell, serve, reply("a"), reply("b"), reply("c"))
    before = state_of(shell.workspace())
    to = str(turn_seqs(shell)[1] - 1)
    assert shell.inside("rewind", shell.ids[0], "--to", to, "--what", "conversation").code == 0
    assert state_of(shell.workspace()) == before
    shell.run("resume", "--last", "more", "-p")
    first, told = users(server.requests[-1])
    assert first == "turn one"
    assert re.fullmatch(r"<changes>\n.*left the files as they are.*\n</changes>\n\nmore", told, re.DOTALL)
    assert shell.inside("rewind", shell.ids[0], "--to", to, "--what", "files").code == 0
    assert (shell.workspace() / "a.txt").read_text() == "one\n"
    shell.run("resume", "--last", "and more", "-p")
    assert users(server.requests[-1])[:2] == [first, told]
    assert re.search(
        r"files back to how they were at another time: a\.txt.*\n</changes>\n\nand more",
        users(server.requests[-1])[2],
        re.DOTALL,
    )
    assert shell.inside("rewind", shell.ids[0], "--undo").code == 0
    assert state_of(shell.workspace()) == before
    shell.run("resume", "--last", "last", "-p")
    assert "at another time: a.txt" in users(server.requests[-1])[3]
    table = shell.inside("context", shell.ids[0], "--format", "json").text
    rows = [row for row in json.loads(table)["events"] if row["type"] in ("rewound", "rewind_undone")]
    assert [row["fate"] for row in rows] == ["kept"] * 3
    assert shell.inside("verify", shell.ids[0], "--contexts").code == 0


def test_m190_conflicts_are_listed_and_the_exit_code_says_so(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    here = shell.workspace()
    (here / "a.txt").write_text("the user's own\n")
    (here / "mine.txt").write_text("also the user's\n")
    done = shell.inside("rewind", shell.ids[0], "--to", str(turn_seqs(shell)[0] - 1))
    assert done.code == 1
    assert "left alone, changed by somebody else too: a.txt" in done.text
    assert (here / "a.txt").read_text() == "the user's own\n"
    assert (here / "mine.txt").read_text() == "also the user's\n"
    assert not (here / "c.txt").exists()
    (rewound,) = of_type(shell.events(), "rewound")
    assert rewound["conflicts"] == ["a.txt"]
    assert "left alone, changed by somebody else too: a.txt" in shell.inside("replay", "--last").text


def test_a_rewind_that_died_half_way_is_finished_at_the_next_opening(shell: Shell, serve: Serve) -> None:
    server = two_turns(shell, serve, reply("on"))
    ws, saved = shell.workspace(), shell.home.parent / "saved"
    shutil.copytree(ws, saved, symlinks=True)
    to = turn_seqs(shell)[1] - 1
    assert shell.inside("rewind", shell.ids[0], "--to", str(to)).code == 0
    target = state_of(ws)
    lines = shell.log().read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"type":"rewound"' in line)
    shell.log().write_bytes(b"".join(lines[: at + 1]))  # the intent is there, what came of it is not
    shutil.rmtree(ws)
    shutil.copytree(saved, ws, symlinks=True)
    shutil.copystat(saved, ws)
    (ws / "a.txt").write_text("one\n")  # one file was done already
    os.utime(ws / "a.txt", ns=(1, dict(target)["a.txt"][2]))
    assert shell.run("resume", "--last", "go on", "-p").text == "on\n"
    assert users(server.requests[-1]) == ["turn one", "go on"]
    found, wanted = state_of(ws), dict(target)
    assert {path: row[0::3] for path, row in found.items()} == {path: row[0::3] for path, row in wanted.items()}
    assert [t.get("by") for t in of_type(shell.events(), "snapshot_taken")][-1] == "rewind"


def test_the_user_works_in_the_same_directory_between_commands(shell: Shell, serve: Serve) -> None:
    """What was changed from outside is told apart from what the session did."""
    server = serve(sh("echo 1 > ours"), reply("ok"), sh("echo 2 >> ours"), reply("ok"))
    shell.run("new", "one", "-p", "--mode", "yolo", "--in-place")
    assert (shell.cwd / "ours").read_text() == "1\n"
    (shell.cwd / "theirs").write_text("x")
    shell.run("resume", "--last", "two", "-p")
    taken = of_type(shell.events(), "snapshot_taken")
    assert [t.get("by", "tool") for t in taken] == ["start", "tool", "outside", "tool"]
    assert shell.inside("rewind", shell.ids[0], "--to", "2").code == 0
    assert sorted(os.listdir(shell.cwd)) == ["theirs"]
    assert len(server.requests) == 4


def test_wrong_words(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    session = shell.ids[0]
    for argv, code in (
        (("--to", "99999"), 2), (("--to", "0"), 2), (("--undo",), 2), (("--to", "3", "--undo"), 2),
        (("--to", "3", "--what", "x"), 2),
    ):  # fmt: skip
        before = shell.log().read_bytes()
        done = shell.inside("rewind", session, *argv)
        assert done.code == code, (argv, done.err)
        assert "Traceback" not in done.err
        assert b'"rewound"' not in shell.log().read_bytes()[len(before) :]
    assert shell.inside("rewind", "nosuch", "--to", "1").code == 3


def test_a_missing_blob_is_told_and_nothing_is_changed(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    first = of_type(shell.events(), "snapshot_taken")[0]["snapshot"].removeprefix("sha256:")
    (shell.home / "blobs" / first[:2] / f"{first}.zst").unlink()
    before = state_of(shell.workspace())
    done = shell.inside("rewind", shell.ids[0], "--to", "3", "--what", "files")
    assert done.code == 1
    assert "blob" in done.err
    assert len(done.err.splitlines()) == 1
    assert state_of(shell.workspace()) == before


def test_the_events_read_as_json(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    done = shell.inside("rewind", shell.ids[0], "--to", str(turn_seqs(shell)[1] - 1), "--json")
    told = json.loads(done.text)
    assert told["conflicts"] == []
    assert set(told["paths"]) == {"a.txt", "c.txt", "d", "d/b.txt", "d/empty", "d/l"}


def test_gc_leaves_what_rewinds_and_undos_need(shell: Shell, serve: Serve) -> None:
    two_turns(shell, serve)
    now, to = state_of(shell.workspace()), str(turn_seqs(shell)[1] - 1)
    old_s = time.time() - 90 * 86_400
    blobs = list((shell.home / "blobs").rglob("*.zst"))
    for path in blobs:
        os.utime(path, (old_s, old_s))
    stray = FileBlobs(shell.home / "blobs").put(b"nobody names this").removeprefix("sha256:")
    (path,) = (shell.home / "blobs").rglob(f"{stray}.zst")
    os.utime(path, (old_s, old_s))
    done = shell.inside("gc")
    assert done.code == 0, done.err
    assert not path.exists()
    assert shell.inside("rewind", shell.ids[0], "--to", to).code == 0
    assert (shell.workspace() / "a.txt").read_text() == "one\n"
    assert (shell.workspace() / "d" / "b.txt").read_text() == "two\n"
    assert shell.inside("gc").code == 0
    assert shell.inside("rewind", shell.ids[0], "--undo").code == 0
    assert state_of(shell.workspace()) == now
