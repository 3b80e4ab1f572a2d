"""`resume` where something is not as it was: the workspace, the configuration, the host, the log itself."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, hang, reply
from tests.app.rig import a_home, a_session, an_id
from tests.e2e.harness import COMMAND, Shell, of_type, stop
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
A = an_id(1)
PROFILE = """
[models.mine]
base_url = "{url}"
model = "big"
price = {{ prompt = 1000.0, completion = 1000.0 }}
"""


def configure(shell: Shell, text: str) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(text)


def test_read_only_shows_and_changes_nothing(shell: Shell, serve: Serve) -> None:
    server = serve(reply("the answer"), hang("busy"))
    shell.run("new", "the prompt", "-p")
    process = shell.start("resume", "--last", "more", "-p")
    server.wait_for_requests(2, 20)
    before = shell.log().read_bytes()
    done = shell.run("resume", shell.ids[0], "--read-only")
    assert done.code == 0, "even of a session that somebody else has"
    assert "the prompt" in done.text
    assert "the answer" in done.text
    stop(process)
    assert shell.log().read_bytes().startswith(before)
    before = shell.log().read_bytes()
    assert shell.run("resume", "--last", "--read-only").code == 0
    assert shell.log().read_bytes() == before


def test_a_workspace_that_is_gone_is_refused_and_dir_goes_on_in_another(
    shell: Shell, serve: Serve, tmp_path: Path
) -> None:
    write = call("write", {"path": "b.txt", "content": "b\n"})
    server = serve(reply("one"), reply(calls=[write]), reply("two"), reply("three"))
    shell.run("new", "first", "-p", "--empty")
    shutil.rmtree(shell.workspace())
    before = shell.log().read_bytes()
    done = shell.run("resume", "--last", "second", "-p")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "--dir" in done.err
    assert shell.run("resume", "--last", "second", "-p", "--dir", str(tmp_path / "no")).code == 2
    assert shell.log().read_bytes() == before
    assert len(server.requests) == 1

    place = tmp_path / "restored"
    place.mkdir()
    done = shell.run("resume", "--last", "second", "-p", "--dir", str(place), "--mode", "yolo")
    assert (done.code, done.text) == (0, "two\n"), done.err
    assert (place / "b.txt").read_text() == "b\n"
    assert [p["path"] for p in of_type(shell.events(), "workspace_moved")] == [str(place)]
    assert shell.run("resume", "--last", "third", "-p").text == "three\n", "it is remembered"
    assert str(place) in shell.run("show", "--last").text


def test_max_cost_ends_a_turn(shell: Shell, serve: Serve) -> None:
    server = serve(*(reply(calls=[call("list", {"path": "."})]) for _ in range(2)), reply("at last"))
    configure(shell, PROFILE.format(url=server.base_url))
    done = shell.run("new", "go", "-p", "--model", "mine", "--max-cost", "0.000001")
    assert (done.code, "limit of cost" in done.err) == (7, True)
    (finished,) = of_type(shell.events(), "turn_finished")
    assert (finished["reason"], finished["steps"]) == ("max_cost", 1)
    assert finished["cost_usd"] > 0
    again = shell.run("resume", "--last", "go on", "-p", "--max-cost", "1000")
    assert (again.code, again.text) == (0, "at last\n"), again.err


def test_a_profile_that_is_gone_sends_nothing_anywhere(shell: Shell, serve: Serve) -> None:
    server = serve(reply("one"), reply("two"))
    configure(shell, PROFILE.format(url=server.base_url))
    assert shell.run("new", "secret plans", "-p", "--model", "mine").code == 0
    before = shell.log().read_bytes()
    configure(shell, "")
    done = shell.run("resume", "--last", "go on", "-p")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "'mine'" in done.err
    assert (len(server.requests), shell.log().read_bytes()) == (1, before)
    done = shell.run("resume", "--last", "go on", "-p", "--model", "scripted")
    assert (done.code, done.text) == (0, "two\n"), done.err


def test_a_session_is_not_sent_to_another_host(shell: Shell, serve: Serve) -> None:
    server = serve(reply("one"), reply("two"))
    assert shell.run("new", "secret plans", "-p").code == 0
    host = server.base_url.removesuffix("/v1")
    (environment,) = of_type(shell.events(), "environment_changed")
    assert environment["request"]["host"] == host
    before = shell.log().read_bytes()
    done = shell.run("resume", "--last", "go on", "-p", OPENAI_BASE_URL="http://192.0.2.1/v1")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert host in done.err
    assert "http://192.0.2.1" in done.err
    assert (len(server.requests), shell.log().read_bytes()) == (1, before)

    found = shell.run("resume", "--last", "go on", "-p", OPENAI_BASE_URL="")
    assert (found.code, found.text) == (0, "two\n"), found.err
    assert "sk-test" not in str(server.requests[1].headers), "a key of the environment is not for it"
    assert of_type(shell.events(), "model_changed") == []


def test_a_session_that_never_began_says_so(shell: Shell) -> None:
    log = a_session(a_home(shell.home), A)
    log.write_bytes(log.read_bytes().partition(b"\n")[0] + b"\n")
    assert '"state": "empty"' in shell.run("ls", "--json").text
    done = shell.run("resume", A, "go on", "-p")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "is empty" in done.err
    assert f"`agentsh repair {A}` begins it anew" in done.err


def test_a_held_session_is_told_before_anything_heavy_is_loaded(shell: Shell, serve: Serve) -> None:
    server = serve(hang("busy"))
    process = shell.start("new", "go", "-p", "--name", "my session")
    server.wait_for_requests(1, 20)
    code = (
        "import sys, atexit\n"
        "heavy = {'typer', 'pydantic', 'asyncio', 'rich', 'openai', 'sqlite3'}\n"
        "atexit.register(lambda: print('LOADED', *sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "from agentsh.cli.entry import main\nmain()\n"
    )
    for words, loaded in (
        ([shell.ids[0], "me too"], set()),
        (["--last", "me too"], set()),
        (["my session", "me too"], {"typer", "pydantic", "rich", "asyncio", "sqlite3"}),  # a title is in the logs
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, "resume", *words],
            cwd=shell.cwd, env=shell.env(), capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        complaint, last = done.stderr.splitlines()
        assert (done.returncode, str(process.pid) in complaint) == (4, True), complaint
        assert shell.ids[0] in complaint
        assert "--follow" in complaint
        assert set(last.split()[1:]) <= loaded
    stop(process)


def test_step_waits_for_enter_before_whatever_shows(shell: Shell, serve: Serve) -> None:
    serve(reply("I look.", calls=[call("list", {"path": "."})]), reply("The end."))
    shell.run("new", "the prompt", "-p")
    whole = shell.run("replay", "--last").text
    env = shell.env(TERM="xterm-256color")
    terminal = Terminal(80, 40, argv=[str(COMMAND), "replay", "--last", "--step"], cwd=shell.cwd, **env)
    try:
        pieces = ["the prompt", "I look.", "list .", "The end.", "2 steps"]
        terminal.wait(lambda: "[Enter:" in terminal.page, 20)
        for n, piece in enumerate(pieces):
            assert "resume with" in terminal.page
            assert not any(later in terminal.page for later in pieces[n:]), terminal.page
            terminal.type("\r")
            terminal.wait(lambda piece=piece: piece in terminal.page, 20)  # type: ignore[misc]
            if piece != pieces[-1]:
                terminal.wait(lambda: "[Enter:" in terminal.page, 20)
        assert terminal.ended() == 0
        assert terminal.page.split() == whole.split(), "the questions are wiped"
    finally:
        terminal.__exit__()
    assert shell.run("replay", "--last", "--step").code == 2, "there is no terminal"


@pytest.mark.parametrize("words", [["--step", "--speed", "2"], [], ["--last", "--type", "x"]])
def test_replay_with_words_that_do_not_fit(shell: Shell, words: list[str]) -> None:
    done = shell.run("replay", *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
