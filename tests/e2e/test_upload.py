"""Sessions that are copied while they run: nothing waits for the server, and nothing is lost with the process."""

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.uploading import open_bucket
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.pull import Puller
from agentsh.testing.server import ScriptedServer
from agentsh.testing.server_replies import hang, reply
from agentsh.testing.server_script import Gate as Held
from agentsh.testing.server_script import Text
from tests.buckets import S3, SECRET, Cloud, Gate
from tests.e2e.harness import Shell, of_type, stop, wait_for

Serve = Callable[..., ScriptedServer]


def configured(shell: Shell, url: str, timeout_s: float = 20) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(f'[checkpoint]\nupload = "{url}"\nupload_timeout_s = {timeout_s}\n')


def state(shell: Shell, session: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((shell.home / "sessions" / session / "upload.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def last_seq(shell: Shell, session: str) -> int:
    return int(shell.events(session)[-1]["seq"])


def copied(url: str, session: str, place: Path) -> bytes:
    """Return the open segment that a pull of this moment gives."""
    Puller(open_bucket(url, 20, os.environ), str(place)).pull(session)
    return (place / "sessions" / session / "events.jsonl").read_bytes()


def test_a_session_is_copied_without_a_word(shell: Shell, serve: Serve, cloud: Cloud, tmp_path: Path) -> None:
    serve(reply("One."), reply("Two."))
    configured(shell, cloud.url)
    done = shell.run("new", "first " + "x" * 30_000, "-p")
    assert (done.code, done.text, done.err) == (0, "One.\n", "")
    (session,) = shell.ids
    wait_for(lambda: state(shell, session).get("last_seq") == last_seq(shell, session))
    assert copied(cloud.url, session, tmp_path / "a") == shell.log(session).read_bytes()
    assert shell.run("resume", session, "second", "-p").code == 0
    wait_for(lambda: state(shell, session).get("last_seq") == last_seq(shell, session))
    assert copied(cloud.url, session, tmp_path / "b") == shell.log(session).read_bytes()
    other = shell.run("pull", session, "--home", str(tmp_path / "other"))
    assert (other.code, other.err) == (0, "")
    assert "Every hash and every crc fits" in other.text
    for path in shell.home.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(secret.encode() in data for secret in cloud.secrets), path


def test_what_is_not_there_is_one_line(shell: Shell, serve: Serve, cloud: Cloud) -> None:
    serve(reply("One."))
    shell.run("new", "first", "-p")
    (session,) = shell.ids
    nowhere = cloud.url_of("nowhere")
    for words in (["push", session, "--to", nowhere], ["pull", session, "--from", nowhere],
                  ["pull", "--list", "--from", nowhere]):  # fmt: skip
        done = shell.run(*words)
        assert (done.code, done.text, done.err.count("\n")) == (6, "", 1)
        assert "there is no such bucket" in done.err
    configured(shell, nowhere)
    told = [line for line in shell.run("doctor", "--json").events if line["subject"] == "upload"]
    assert [line["state"] for line in told] == ["fail", "warn"]  # the place, and the push
    assert "there is no such bucket" in told[0]["text"]
    done = shell.run("pull", session, "--from", cloud.url)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "no session" in done.err


@pytest.mark.parametrize("place", ["a file", "below a file", "refused"])
def test_where_no_copy_can_be_made_the_first_turn_tells(
    shell: Shell, serve: Serve, place: str, tmp_path: Path
) -> None:
    """Nobody waits for it: the copier looks while the model thinks. Here the model thinks until that is done."""
    answer = Held()
    serve(reply(then=[answer, Text("One.")]))
    (tmp_path / "file").touch()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = {"a file": f"file://{tmp_path}/file", "below a file": f"file://{tmp_path}/file/nas"}.get(place)
        configured(shell, url or "s3://bucket/x")
        process = shell.start("new", "hello", "-p", **S3(unused.getsockname()[1], "bucket").env())
        wait_for(lambda: bool(shell.ids) and state(shell, shell.ids[0]).get("problem"))
        answer.open()
        out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (0, b"One.\n")
    assert err.count(b"\n") == 1
    assert b"the copy of this session is behind" in err
    assert (b"there is no connection" if place == "refused" else b"Not a directory") in err
    assert not (tmp_path / "file").is_dir()


def test_what_was_known_too_late_is_told_by_what_comes_next(
    shell: Shell, serve: Serve, s3: S3, tmp_path: Path
) -> None:
    serve(reply("One."), reply("Two."), reply("Three."))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        env = s3.env(silent.getsockname()[1])
        configured(shell, s3.url, 1)
        done = shell.run("new", "hello", "-p", also=env)
        assert (done.code, done.text, done.err) == (0, "One.\n", "")
        (session,) = shell.ids
        assert state(shell, session)["url"] == s3.url  # whatever becomes of its copier, this is to be brought up
        wait_for(lambda: state(shell, session).get("problem"))
        listed = shell.run("ls", also=env)
        assert listed.err.count("\n") == 1
        assert f"the copy of {session} is behind" in listed.err
        assert session in listed.text
        again = shell.run("resume", session, "again", "-p", also=env)  # and nothing new is known yet
        assert (again.code, again.text, again.err.count("\n")) == (0, "Two.\n", 1)
        assert "does not answer" in again.err
    (shell.home / "agentsh.toml").unlink()
    assert shell.run("ls").err == ""
    assert shell.run("resume", session, "third", "-p").err == ""


def test_a_server_that_hangs_delays_nothing(shell: Shell, serve: Serve, s3: S3) -> None:
    """The session has ended while its upload still waits for the first answer."""
    serve(reply("Answer."))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(20)
        configured(shell, s3.url, 2)
        done = shell.run("new", "hello", "-p", also=s3.env(silent.getsockname()[1]))
        assert (done.code, done.text, done.err) == (0, "Answer.\n", "")
        (session,) = shell.ids
        waiting, _ = silent.accept()
        assert state(shell, session).get("problem") is None
        with waiting:
            waiting.setblocking(False)
            wait_for(lambda: state(shell, session).get("problem"))
    assert "does not answer" in state(shell, session)["problem"]
    assert shell.run("verify", session).code == 0


def test_what_does_not_work_is_one_line_at_the_end_and_told_by_doctor(
    shell: Shell, serve: Serve, gate: Gate, s3: S3
) -> None:
    answer = Held()
    serve(reply("One."), reply(then=[answer, Text("Two.")]))
    gate.rule = lambda n, method, path: 403
    configured(shell, s3.url)
    env = s3.env(gate.port)
    assert shell.run("new", "hello", "-p", also=env).code == 0
    (session,) = shell.ids
    wait_for(lambda: state(shell, session).get("problem"))
    process = shell.start("resume", session, "go on", "-p", **env)
    wait_for(lambda: of_type(shell.events(session), "user_message")[1:])
    typed = [e["ts"] for e in shell.events(session) if e["type"] == "user_message"]
    wait_for(lambda: state(shell, session)["at"] > typed[1])  # before, the first one's helper may be trying
    answer.open()
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (0, b"Two.\n")
    assert err.count(b"\n") == 1
    assert b"the copy of this session is behind" in err
    told = [
        line for line in map(json.loads, shell.run("doctor", "--json", also=env).text.splitlines())
        if line["subject"] == "upload"
    ]  # fmt: skip
    assert [line["state"] for line in told] == ["fail", "warn"]
    refused = shell.run("push", session, also=env)
    assert refused.code == 6
    assert refused.err.count("\n") == 1
    assert "credentials" in refused.err
    said = [
        refused.err,
        err.decode(),
        json.dumps(told),
        shell.log(session).read_text(),
        json.dumps(state(shell, session)),
    ]
    assert not any(SECRET in text for text in said)
    gate.rule = lambda n, method, path: None
    assert shell.run("push", session, also=env).code == 0


def test_a_push_to_elsewhere_leaves_what_is_remembered_of_the_copy(
    shell: Shell, serve: Serve, tmp_path: Path
) -> None:
    """Else nobody would know any more that the copy at the configured place is behind."""
    serve(reply("One."))
    (tmp_path / "file").touch()
    configured(shell, f"file://{tmp_path}/file")
    shell.run("new", "first", "-p")
    (session,) = shell.ids
    wait_for(lambda: state(shell, session).get("problem"))
    assert shell.run("push", session, "--to", f"file://{tmp_path}/usb").code == 0
    assert shell.run("push", session, "--to", f"file://{tmp_path}/file/x").code == 6
    assert state(shell, session)["url"] == f"file://{tmp_path}/file"
    (tmp_path / "file").unlink()
    assert shell.run("push", session).code == 0
    assert state(shell, session)["problem"] is None


def test_a_place_that_cannot_be_written_does_not_answer_well(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    """A directory that takes nothing looks, to who only asks what is in it, like one that holds nothing yet."""
    serve(reply("One."))
    (tmp_path / "file").touch()
    configured(shell, f"file://{tmp_path}/file/place")
    assert shell.run("new", "hello", "-p").code == 0
    wait_for(lambda: state(shell, shell.ids[0]).get("problem"))
    told = [line for line in shell.inside("doctor", "--json").events if line["subject"] == "upload"]
    assert told
    assert "ok" not in [line["state"] for line in told]


def test_a_session_of_another_home_is_copied_as_the_settings_in_force_say(
    shell: Shell, serve: Serve, tmp_path: Path
) -> None:
    """It is resumed from a home whose configuration names a place; its own home's names none, or another."""
    serve(reply("One."), reply("Two."))
    user = {"HOME": str(tmp_path), "AGENTSH_HOME": ""}
    shell.run("new", "first", "-p", also=user)
    (session,) = [path.name for path in (tmp_path / ".agentsh" / "sessions").iterdir()]
    assert shell.run("init", also=user).code == 0
    with (shell.cwd / "agentsh.toml").open("a") as file:
        file.write(f'\n[checkpoint]\nupload = "file://{tmp_path}/nas"\n')
    assert shell.run("trust", also=user).code == 0
    assert shell.run("resume", session, "second", "-p", also=user).text == "Two.\n"
    wait_for(lambda: (tmp_path / "nas" / "sessions" / session / "manifest.json").exists())


def test_a_missing_package_is_told_at_once_and_remembered(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    serve(reply("One."))
    configured(shell, "s3://bucket/path")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['obstore'] = None\n")
    path = f"{tmp_path / 'hidden'}:{os.environ.get('PYTHONPATH', '')}"
    done = shell.run("new", "hello", "-p", PYTHONPATH=path)
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert "needs the package obstore (`pip install 'agentsh[upload]'" in done.err
    wait_for(lambda: "obstore" in (state(shell, shell.ids[0]).get("problem") or ""))


def test_kill_9_of_the_session_loses_no_upload(shell: Shell, serve: Serve, s3: S3, tmp_path: Path) -> None:
    """The pipe closes with the process, and what was acknowledged goes up all the same."""
    server = serve(reply("One."), hang("half an answer"))
    configured(shell, s3.url)
    assert shell.run("new", "first", "-p").code == 0
    (session,) = shell.ids
    process = shell.start("resume", session, "second", "--json")
    wait_for(lambda: len(server.requests) >= 2)
    stop(process)
    wait_for(lambda: state(shell, session).get("last_seq") == last_seq(shell, session))
    assert copied(s3.url, session, tmp_path / "a") == shell.log(session).read_bytes()


async def test_the_last_copy_waits_for_a_lock_that_outlives_the_pipe(
    shell: Shell, serve: Serve, tmp_path: Path
) -> None:
    """As that of a killed process does: else what it had not known to be durable was left out, and not missed."""
    serve(reply("One."))
    url = f"file://{tmp_path}/nas"
    assert shell.run("new", "first", "-p").code == 0
    (session,) = shell.ids
    store = JsonlStore(shell.home / "sessions", FileBlobs(shell.home / "blobs"), durability="none")
    log = (await store.open(session)).log
    await log.append([Draft("notice", "2026-11-29T16:20:01.118204Z", {"text": f"later {n}"}, None) for n in range(3)])
    process = shell.start("push", session, "--outbox", "--to", url)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    await log.close()
    assert process.wait(20) == 0
    assert state(shell, session)["last_seq"] == last_seq(shell, session) == log.last_seq
    assert state(shell, session)["stamp"]


def test_what_was_left_behind_is_brought_up_by_the_next_session(shell: Shell, serve: Serve) -> None:
    serve(reply("One."), reply("Two."))
    nas = shell.cwd.parent / "nas"
    nas.write_text("not mounted: a file stands here")
    configured(shell, f"file://{nas}")
    shell.run("new", "first", "-p")
    (first,) = shell.ids
    wait_for(lambda: state(shell, first).get("problem"))
    nas.unlink()
    shell.run("new", "second", "-p")
    wait_for(lambda: state(shell, first).get("last_seq") == last_seq(shell, first))
    wait_for(lambda: sorted(p.name for p in (nas / "sessions").iterdir()) == shell.ids)
