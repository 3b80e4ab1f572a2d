"""Homes of directories: `init`, `trust`, what an untrusted one may do, and output in odd surroundings."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, reply
from tests.app.rig import a_home, a_session, an_id
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
OWN = {"AGENTSH_HOME": ""}
A = an_id(1)
ROOT = Path(__file__).parents[2]


def tree(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def test_init_makes_a_home_for_sessions_of_its_directory(shell: Shell, serve: Serve) -> None:
    done = shell.run("init", also=OWN)
    assert done.code == 0, done.err
    assert "is a home now" in done.text
    config = shell.cwd / "agentsh.toml"
    assert config.stat().st_mode & 0o777 == 0o600
    config.write_text(config.read_text() + "# mine\n")
    again = shell.run("init", str(shell.cwd), also=OWN)
    assert "was a home already" in again.text
    assert config.read_text().endswith("# mine\n"), "what is there stays"
    assert "not obeyed until `agentsh trust`" in again.text, "it could have come with a project"
    assert shell.run("trust", str(shell.cwd), also=OWN).code == 0
    serve(reply("fine"))
    (shell.cwd / "src").mkdir()
    shell.cwd = shell.cwd / "src"
    assert shell.run("new", "x", "-p", also=OWN).text == "fine\n"
    assert len(list((shell.cwd.parent / "sessions").iterdir())) == 1
    assert shell.ids == []
    bad = shell.run("init", str(config), also=OWN)
    assert (bad.code, len(bad.err.splitlines())) == (2, 1)


def test_an_untrusted_home_is_only_read_until_it_is_trusted(shell: Shell, serve: Serve) -> None:
    home = a_home(shell.cwd / "theirs", "model = 'demo'\n")
    a_session(home, A, prompt="a prompt of theirs")
    (home.workspaces / A).mkdir()
    shell.cwd = home.root
    before = tree(home.root)
    env = {**OWN, "AGENTSH_MODEL": ""}

    assert A in shell.run("ls", also=env).text
    assert "a prompt of theirs" in shell.run("replay", A, also=env).text
    assert "a prompt of theirs" in shell.run("show", A, also=env).text
    assert "a prompt of theirs" in shell.run("resume", A, "--read-only", also=env).text
    refused = shell.run("resume", A, "go on", "-p", "--model", "demo", also=env)
    assert (refused.code, "agentsh trust" in refused.err) == (2, True)
    unread = shell.run("new", "x", "-p", also=env)
    assert (unread.code, "no model is configured" in unread.err) == (2, True), "its configuration was obeyed"
    elsewhere = shell.run("new", "x", "-p", "--model", "demo", "--empty", also=env)
    assert (elsewhere.code, "is not trusted" in elsewhere.err) == (0, True)
    assert len(shell.ids) == 1, "new sessions go to the user's own home"
    assert tree(home.root) == before

    assert "is trusted" in shell.run("trust", also=env).text
    assert shell.run("resume", A, "go on", "-p", "--model", "demo", also=env).code == 0
    assert shell.run("new", "x", "-p", "--empty", also=env).code == 0
    assert len(list(home.sessions.iterdir())) == 2

    home.config.write_text("model = 'demo'\n# changed\n")
    assert shell.run("resume", A, "go on", "-p", also=env).code == 2


def test_trust_wants_a_home(shell: Shell) -> None:
    assert (shell.run("trust", also=OWN).code, shell.run("trust", str(shell.cwd), also=OWN).code) == (2, 2)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_means_none(shell: Shell, no_color: str) -> None:
    a_session(a_home(shell.home), A)
    for words in (["ls"], ["replay", A]):
        env = {**shell.env(), "TERM": "xterm-256color", "NO_COLOR": no_color}
        terminal = Terminal(100, 24, argv=[str(COMMAND), *words], cwd=shell.cwd, **env)
        try:
            assert terminal.ended() == 0
        finally:
            terminal.__exit__()
        assert bool(re.search(r"\x1b\[[0-9;]*m", terminal.raw)) is not bool(no_color), words
        assert A in terminal.page


def through_a_shell(shell: Shell, line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", line, "sh", str(COMMAND)],
        cwd=shell.cwd, env=shell.env(**env), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_closed_stdout_harms_nothing(shell: Shell) -> None:
    new = through_a_shell(shell, '"$1" new hello -p --model demo --empty >&-')
    assert (new.returncode, new.stderr) == (0, b"")
    assert [e["seq"] for e in shell.events()] == list(range(1, len(shell.events()) + 1))
    assert of_type(shell.events(), "turn_finished")[0]["reason"] == "done"
    for line in ('"$1" ls >&-', '"$1" replay --last >&- 2>&-', '"$1" ls <&-'):
        done = through_a_shell(shell, line)
        assert (done.returncode, done.stderr) == (0, b""), line


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_under_stdout_is_one_line(shell: Shell) -> None:
    a_session(a_home(shell.home), A)
    for line in ('"$1" ls >/dev/full', f'"$1" replay {A} --json >/dev/full', f'"$1" show {A} --json >/dev/full'):
        done = through_a_shell(shell, line)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), line
        assert b"No space left" in done.stderr
    new = through_a_shell(shell, '"$1" new hello -p --model demo --empty >/dev/full')
    assert new.returncode == 1, "the answer was lost"
    assert of_type(shell.events(), "turn_finished")[0]["reason"] == "done"


@pytest.mark.parametrize("columns", ["abc", "5", "99999999999", "٣"])
def test_a_senseless_width_is_ignored(shell: Shell, columns: str) -> None:
    a_session(a_home(shell.home), A)
    assert A in shell.run("ls", COLUMNS=columns).text


def test_a_directory_whose_name_is_no_text(shell: Shell) -> None:
    odd = os.fsencode(shell.cwd) + b"/caf\xe9"
    os.mkdir(odd)
    shell.cwd = Path(os.fsdecode(odd))
    assert shell.run("new", "x", "-p", "--model", "demo", "--empty").code == 0
    for words in (["ls", "--json"], ["show", "--last", "--json"]):
        done = shell.run(*words, LC_ALL="C")
        assert done.code == 0, done.err
        assert os.fsencode(json.loads(done.out)["cwd"]) == odd
    for words in (["ls"], ["show", "--last"], ["replay", "--last"]):
        assert shell.run(*words, LC_ALL="C").code == 0


def test_a_log_that_does_not_open_is_one_line_and_takes_nothing_down(shell: Shell) -> None:
    home = a_home(shell.home)
    a_session(home, A)
    ids = [an_id(n, "20260101") for n in range(2)]
    for session in ids:
        (home.sessions / session).mkdir()
    (home.sessions / ids[0] / "events.jsonl").symlink_to("/etc/hostname")
    (home.sessions / ids[1] / "events.jsonl").mkdir()
    states = {row["id"]: row["state"] for row in map(json.loads, shell.run("ls", "--json").out.splitlines())}
    assert states == {A: "idle", **dict.fromkeys(ids, "damaged")}
    for session, what in zip(ids, ("a link, which is not followed", "a directory, not a file"), strict=True):
        show = shell.run("show", session)
        assert (show.code, what in show.text) == (0, True)
        for words in (["replay", session], ["resume", session, "x", "-p", "--model", "demo"]):
            done = shell.run(*words)
            assert (done.code, len(done.err.splitlines())) == (5, 1), done.err


def test_the_sample_that_the_readme_names_is_there(shell: Shell) -> None:
    named = re.findall(r"agentsh replay (\d{8}-[0-9a-z]{6})", (ROOT / "README.md").read_text())
    assert named
    for session in named:
        assert (ROOT / "sessions" / session / "events.jsonl").is_file()
        shell.cwd = ROOT
        assert session in shell.run("replay", session, also=OWN).text


def test_commands_work_where_the_current_directory_is_gone(shell: Shell) -> None:
    assert shell.run("new", "list the files", "-p", "--model", "demo", "--empty").code == 0
    shell.cwd.rmdir()
    gone = shell.cwd.parent / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$0" "$@"'

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", script, str(COMMAND), *words],
            env=shell.env(),
            cwd=shell.cwd.parent,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        gone.mkdir(exist_ok=True)
        return done.returncode, done.stderr

    for words in (["ls"], ["show", "--last"], ["replay", "--last"], ["resume", "--last", "help", "-p"]):
        code, err = run(*words)
        assert (code, err) == (0, ""), words
    code, err = run("new", "x", "-p", "--model", "demo")
    assert code == 2
    assert "--from" in err


def test_a_replay_of_a_damaged_log_says_so(shell: Shell) -> None:
    assert shell.run("new", "list the files", "-p", "--model", "demo", "--empty").code == 0
    lines = shell.log().read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"a", b"b", 1)
    shell.log().write_bytes(b"".join(lines))
    done = shell.run("replay", "--last")
    assert done.code == 0
    assert "1 place" in done.err


def test_a_session_whose_blobs_are_gone_goes_on_and_says_so(shell: Shell) -> None:
    assert shell.run("new", "list the files", "-p", "--model", "demo", "--empty").code == 0
    shutil.rmtree(shell.home / "blobs")
    done = shell.run("resume", "--last", "list the files", "-p")
    assert done.code == 0, done.err
    assert "recorded anew" in done.err
    assert shell.run("resume", "--last", "list the files", "-p").err == ""
