"""What people see of tokens: the status line, /status, show; and settings that cannot be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.events.base import Usage as Reported
from agentsh.repl.status import status_line
from agentsh.testing.server import ScriptedServer, Usage, reply
from tests.e2e.harness import Shell, of_type
from tests.tokens.conversation import Conversation, bytes_by


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "work").mkdir()
    return Shell(tmp_path / "home", tmp_path / "work")


def test_the_status_line_tells_size_and_cached_share() -> None:
    c = Conversation(bytes_by(4.0))
    c.say("hello " * 3_000)
    assert "~" in status_line(c.state, "bwrap", 200, 128_000)
    c.step("done", completion=3)
    c.end()
    assert f" {(c.state.meter.marks[-1].tokens + 3) / 1000:.1f}k of 128k tokens" in status_line(
        c.state, "bwrap", 200, 128_000
    )
    assert "0 % cached" in status_line(c.state, "bwrap", 200, 128_000)
    c.state.meter.newest = Reported(prompt=1_000, cached=874, completion=1, reasoning=0)
    assert "87 % cached" in status_line(c.state, "bwrap", 200, 9_000)
    assert "of 9.0k tokens" in status_line(c.state, "bwrap", 200, 9_000)


def test_show_tells_the_share_that_the_provider_reported_as_cached(shell: Shell) -> None:
    with ScriptedServer(
        [reply("one", usage=Usage(prompt=2_000, completion=5)), reply("two", usage=Usage(2_400, 5, cached=1_800))]
    ) as server:
        shell.base_url = server.base_url
        assert shell.run("new", "-p", "hi", "--empty").code == 0
        assert shell.run("resume", "--last", "-p", "more").code == 0
    shown = shell.run("show", "--last")
    assert "in the newest request, 75% of it cached" in shown.text
    assert "41% of the prompt cached" in shown.text, "of all requests, as before"
    told = json.loads(shell.run("show", "--last", "--json").text)
    assert (told["newest_prompt"], told["newest_cached"]) == (2_400, 1_800)
    assert shell.run("ls").code == 0


@pytest.mark.parametrize(
    ("config", "options", "words"),
    [
        ("[context]\nreserve_tokens = 200000", (), "leaves nothing of the window"),
        ("[context]\nhigh_water = 0.4\nlow_water = 0.5", (), "low-water mark (0.5) has to be below"),
        ("[context]\nlow_water = 1.5", (), "context.low_water"),
        ("[context]\nbudget = 5", (), "context.budget"),
        ("[session]\nbudget_tokens = 5000", (), "session.budget_tokens"),
        ("", ("--budget", "10"), "--budget"),
        ("[models.scripted]\ncontext_window = 1000\nbase_url = 'http://127.0.0.1:9/v1'", (), "too little to work"),
    ],
)
def test_impossible_settings_are_one_line_and_exit_2(
    shell: Shell, config: str, options: tuple[str, ...], words: str
) -> None:
    (shell.home.parent / ".agentsh").mkdir()
    (shell.home.parent / ".agentsh" / "agentsh.toml").write_text(config)
    shell.base_url = "http://127.0.0.1:9/v1"
    done = shell.run("new", "-p", "hi", "--empty", *options)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert shell.ids == [], "nothing was made"
    assert list((shell.home / "workspaces").glob("*")) == []


def test_a_budget_that_the_tools_fill_is_refused_before_anything_is_kept(shell: Shell) -> None:
    (shell.cwd / "AGENTS.md").write_text("Mind this. " * 900)
    shell.base_url = "http://127.0.0.1:9/v1"
    done = shell.run("new", "-p", "hi", "--from", ".", "--budget", "2000")
    assert done.code == 2
    assert "a budget of 2,000 tokens is too small for this session: what each request starts with" in done.err
    assert shell.ids == []


def test_budget_on_new_and_resume_is_what_requests_get(shell: Shell) -> None:
    with ScriptedServer([reply("one"), reply("two"), reply("three")]) as server:
        shell.base_url = server.base_url
        first = shell.run("new", "--json", "hi", "--empty", "--budget", "9000")
        assert of_type(first.events, "context_built")[0]["budget"] == 9_000
        second = shell.run("resume", "--last", "--json", "more", "--budget", "20000")
        assert of_type(second.events, "context_built")[0]["budget"] == 20_000
        third = shell.run("resume", "--last", "--json", "more")
        assert of_type(third.events, "context_built")[0]["budget"] == 112_000


def test_a_session_of_short_messages_loads_no_ranks(shell: Shell) -> None:
    """Never before the first prompt, never where an estimate will do."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('LOADED', 'tiktoken' in sys.modules, file=sys.stderr))\n"
        "sys.argv = ['agentsh', 'new', '--empty', '-p', 'hi', '--model', 'gpt-5']\n"
        "from agentsh.cli.entry import main\nmain()\n"
    )
    with ScriptedServer([reply("one")]) as server:
        shell.base_url = server.base_url
        done = subprocess.run(
            [sys.executable, "-c", code], env=shell.env(), cwd=shell.cwd, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "LOADED False" in done.stderr
