"""`pull` as a user meets it: nothing there, a copy that is damaged, a disk that is full, a path that is no URL."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer
from agentsh.testing.server_replies import reply
from tests.crash.test_full_disk import disk_of
from tests.e2e.harness import Shell, wait_for
from tests.stores.copies import SESSION, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a session of about 1.5 MB, half of that in blobs, that is copied to a directory."""
    found = Machine(tmp_path / "machine", f"file://{tmp_path}/nas", segment_bytes=200_000)
    found.begin()
    for _ in range(6):
        found.write(*(os.urandom(1_000).hex() for _ in range(60)), os.urandom(60_000).hex(), os.urandom(60_000).hex())
    found.pusher().push(SESSION)
    return found


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    yield from disk_of(tmp_path / "small", 256 << 10)


def test_a_full_disk_is_one_line_and_more_room_goes_on(shell: Shell, machine: Machine, small: Path) -> None:
    home, told = small / "home", []
    for size in (0, 300 << 10, 700 << 10, 1100 << 10, 8 << 20):
        if size:
            subprocess.run(["mount", "-o", f"remount,size={size}", str(small)], check=True)
        done = shell.run("pull", SESSION, "--from", machine.url, "--home", str(home))
        if done.code:
            assert (done.code, done.text, done.err.count("\n")) == (1, "", 1)
            assert "No space left on device" in done.err
            assert not (home / "sessions" / SESSION).exists()
            told.append(done.err)
    assert len(told) >= 3
    assert all(f"`agentsh pull {SESSION}` goes on" in line for line in told[1:])
    assert done.code == 0
    assert Machine(home, machine.url).lines() == machine.lines()
    assert not (home / "incoming").exists()


def test_a_damaged_copy_is_one_line_that_says_what_makes_it_good(shell: Shell, machine: Machine) -> None:
    nas = Path(machine.url.removeprefix("file://"))
    part = nas / machine.puller().manifest(SESSION).segments[0].parts[0].key
    blob = next((nas / "blobs").glob("*/*.zst"))
    for path in (part, blob, nas / "sessions" / SESSION / "manifest.json"):
        whole = path.read_bytes()
        for bad in (b"", whole[:-9], whole[:40] + b"?" + whole[41:], None):
            path.unlink()
            if bad is not None:
                path.write_bytes(bad)
            done = shell.run("pull", SESSION, "--from", machine.url)
            absent = bad is None and path.name == "manifest.json"
            assert (done.code, done.text, done.err.count("\n")) == (3 if absent else 1, "", 1)
            assert absent or f"`agentsh push {SESSION} --replace`" in done.err
            assert shell.ids == []
            healed = shell.run("push", SESSION, "--replace", "--to", machine.url, AGENTSH_HOME=str(machine.root))
            assert (healed.code, healed.err) == (0, "")
            assert "bytes sent" in healed.text
    path = nas / machine.puller().manifest(SESSION).segments[0].parts[0].key
    path.unlink()
    path.mkdir()
    elsewhere = str(shell.cwd / "elsewhere")  # what came into the first home needs not come again
    done = shell.run("pull", SESSION, "--from", machine.url, "--home", elsewhere)
    assert (done.code, done.err.count("\n")) == (6, 1)
    assert path.name in done.err
    path.rmdir()
    assert shell.run("push", SESSION, "--replace", "--to", machine.url, AGENTSH_HOME=str(machine.root)).code == 0
    for home in (elsewhere, str(shell.home)):
        assert shell.run("pull", SESSION, "--from", machine.url, "--home", home).code == 0
    assert shell.run("verify", SESSION).code == 0


def test_a_copied_session_is_archived_removed_forked_and_still_the_same(
    shell: Shell, serve: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Whatever becomes of it here, the copy goes on from where it is, and comes back."""
    serve(reply("One."), reply("Two."))
    url = f"file://{tmp_path}/n\u00e4s"
    shell.run("new", "first " + "x" * 30_000, "-p")
    (session,) = shell.ids
    shell.home.joinpath("agentsh.toml").write_text(f'[checkpoint]\nupload = "{url}///"\n')
    assert shell.run("push", session).code == 0
    assert shell.run("archive", session).code == 0
    assert "it was there already" in shell.run("push", session).text
    assert "is here already" in shell.run("pull", session).text
    other = {"AGENTSH_HOME": str(tmp_path / "other")}
    assert shell.run("pull", session, "--from", url, also=other).code == 0
    assert shell.run("archive", session, also=other).code == 0
    assert shell.run("resume", session, "second", "-p").text == "Two.\n"
    wait_for(lambda: "it was there already" in shell.run("push", session).text)
    forward = shell.run("pull", session, "--from", url, also=other)
    assert forward.code == 0
    assert "What was here, a part of it, is in" in forward.text
    assert shell.run("verify", session, also=other).code == 0
    shown = shell.run("replay", session, "--format", "json", also=other).text
    assert shown == shell.run("replay", session, "--format", "json").text
    assert shell.run("fork", session).code == 0
    fork = next(name for name in shell.ids if name != session)
    assert shell.run("push", fork).code == 0
    assert shell.run("rm", "-y", session).code == 0
    assert shell.ids == [fork]
    assert shell.run("pull", session).code == 0
    assert shell.ids == sorted([fork, session])
    assert shell.run("replay", session, "--format", "json").text == shown
    assert [line["id"] for line in shell.run("pull", "--list", "--json").events] == sorted([fork, session])[::-1]


def test_where_there_is_nothing_that_is_said(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("pull", "--list", "--from", f"file://{tmp_path}/never")
    assert (done.code, done.text, done.err) == (0, f"No sessions at file://{tmp_path}/never.\n", "")
    assert not (tmp_path / "never").exists()
    assert shell.run("pull", "--list", "--json", "--from", f"file://{tmp_path}/never").text == ""


@pytest.mark.parametrize("given", ["copies", "./copies/", "../project/copies"])
def test_a_path_is_answered_with_its_url(shell: Shell, given: str) -> None:
    done = shell.run("pull", "--list", "--from", given)
    assert (done.code, done.text, done.err.count("\n")) == (2, "", 1)
    assert f"file://{shell.cwd}/copies)" in done.err


def test_sessions_of_before_are_counted_by_doctor(shell: Shell, machine: Machine, tmp_path: Path) -> None:
    """Who configures another place has the older sessions not there, which nothing else would say."""
    (machine.root / "agentsh.toml").write_text(f'[checkpoint]\nupload = "file://{tmp_path}/other"\n')
    home = str(machine.root)
    told = [line["text"] for line in shell.run("doctor", "--json", AGENTSH_HOME=home).events]
    assert any("1 session of before never came there; `agentsh push --all`" in text for text in told)
    assert shell.run("push", "--all", AGENTSH_HOME=home).code == 0
    told = [line["text"] for line in shell.run("doctor", "--json", AGENTSH_HOME=home).events]
    assert not any("of before" in text for text in told)
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text(f'[checkpoint]\nupload = "file://{tmp_path}/other"\n')
    assert shell.run("pull", SESSION).code == 0
    told = [line["text"] for line in shell.run("doctor", "--json").events if line["subject"] == "upload"]
    assert told == [f"file://{tmp_path}/other answers"]
