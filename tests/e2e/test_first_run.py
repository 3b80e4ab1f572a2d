"""The first run: from nothing to an answer, each thing asked and told once."""

import asyncio
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentsh.app import first_run
from agentsh.base.errors import UsageProblem
from agentsh.models.local_servers import find_local_servers
from agentsh.testing.server import ScriptedServer, reply
from tests.e2e.harness import Shell
from tests.repl.pty import Terminal

INTRODUCED = re.compile(r"^  model .*^  workspace .*^  mode ", re.MULTILINE | re.DOTALL)


@pytest.fixture
def alone() -> None:
    if asyncio.run(find_local_servers()):
        pytest.skip("a model server runs on this machine")


def start(shell: Shell, *words: str, columns: int = 80, **variables: str) -> Terminal:
    env: dict[str, Any] = shell.env(**variables)
    for name in (*(p.variable for p in first_run.PROVIDERS), "AGENTSH_MODEL"):
        env[name] = variables.get(name, "")
    return Terminal(columns, argv=[sys.executable, "-m", "agentsh", "new", *words], cwd=shell.cwd, **env)


def leave(t: Terminal) -> None:
    t.wait(lambda: "\n›" in t.page)
    t.type("\x04")
    assert t.ended() == 0


@pytest.mark.usefixtures("alone")
def test_from_nothing_to_an_answer_of_the_demo_and_nothing_is_asked_twice(shell: Shell) -> None:
    t = start(shell)
    t.wait(lambda: "Which? [1]" in t.page)
    assert "1  demo" in t.page
    t.type("9\r")
    t.wait(lambda: "a number from 1 to 2" in t.page)
    t.type("\r")
    t.wait(lambda: bool(INTRODUCED.search(t.page)))
    t.wait(lambda: "\n›" in t.page)
    t.type("go\r")
    t.wait(lambda: "agentsh's demo model" in t.page)
    t.wait(lambda: "— " in t.page and " tokens" in t.page)
    leave(t)
    again = start(shell)
    again.wait(lambda: "the demo model, as you chose" in again.page)
    leave(again)
    assert "Which?" not in again.page
    assert not INTRODUCED.search(again.page)


@pytest.mark.usefixtures("alone")
def test_who_wants_none_of_it_is_told_the_ways_and_not_asked_again(shell: Shell) -> None:
    t = start(shell)
    t.wait(lambda: "Which? [1]" in t.page)
    t.type("2\r")
    assert t.ended() == 2
    assert "agentsh new --model demo" in t.page
    again = start(shell)
    assert again.ended() == 2
    assert "Which?" not in again.page
    assert shell.ids == []


@pytest.mark.usefixtures("alone")
def test_ctrl_c_at_the_question_leaves_at_once_and_nothing_is_remembered(shell: Shell) -> None:
    t = start(shell)
    t.wait(lambda: "Which? [1]" in t.page)
    t.type("\x03")
    assert t.ended() == 130
    assert not (shell.home / first_run.FILE).exists()


@pytest.mark.usefixtures("alone")
def test_a_key_of_a_provider_becomes_a_profile(shell: Shell) -> None:
    t = start(shell, GROQ_API_KEY="gsk-x")
    t.wait(lambda: "1  groq" in t.page)
    t.type("1\r")
    t.wait(lambda: "Which model of groq?" in t.page)
    t.type('x"y\r')
    t.wait(lambda: "is no name of a model" in t.page)
    t.type("some/model-7b\r")
    t.wait(lambda: bool(INTRODUCED.search(t.page)))
    assert "some/model-7b at https://api.groq.com" in t.page
    leave(t)
    again = start(shell, GROQ_API_KEY="gsk-x")
    leave(again)
    assert "Which" not in again.page
    assert "some/model-7b" in again.page


@pytest.mark.parametrize("columns", [40, 120])
def test_with_a_key_it_is_explained_once(shell: Shell, serve: Callable[..., ScriptedServer], columns: int) -> None:
    serve(reply("Hello."))
    t = start(shell, "--mode", "ask", columns=columns, AGENTSH_MODEL="scripted")
    t.wait(lambda: "workspace" in t.page)
    leave(t)
    assert "ask: you are asked before an edit" in " ".join(t.page.split())
    again = start(shell, AGENTSH_MODEL="scripted")
    leave(again)
    assert "  workspace" not in again.page
    assert max(len(line) for line in t.lines) <= columns


def test_who_only_wants_an_answer_is_told_nothing(shell: Shell, serve: Callable[..., ScriptedServer]) -> None:
    serve(reply("Hello."))
    done = shell.run("new", "go", "-p")
    assert (done.text, done.err) == ("Hello.\n", "")
    assert not first_run.recall(shell.env()).introduced


def test_a_profile_is_added_to_what_is_there(shell: Shell) -> None:
    env = shell.env()
    shell.home.mkdir(parents=True)
    file = shell.home / "agentsh.toml"
    file.write_text("# mine\n[ui]\ntitle = false\n", encoding="utf-8")
    first_run.add_profile(env, first_run.PROVIDERS[0], "a/b")
    import tomllib

    found = tomllib.loads(file.read_text(encoding="utf-8"))
    assert (found["model"], found["ui"], found["models"]["openrouter"]["model"]) == (
        "openrouter",
        {"title": False},
        "a/b",
    )
    assert "# mine" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageProblem, match="no name of a model"):
        first_run.add_profile(env, first_run.PROVIDERS[0], 'a"\nb')


def test_a_damaged_memory_is_none(shell: Shell) -> None:
    shell.home.mkdir(parents=True)
    for text in ("", "[]", "{", '{"introduced": 1, "without_a_model": "rm"}'):
        (shell.home / first_run.FILE).write_text(text, encoding="utf-8")
        assert first_run.recall(shell.env()) == first_run.Memory()
