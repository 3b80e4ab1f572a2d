"""Directory and exports go on from call to call and over a resume; a rewind takes them back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell, of_type

Serve = Callable[..., ScriptedServer]


def shell_call(command: str) -> object:
    return reply(calls=[call("shell", {"command": command})])


def said(shell: Shell) -> list[str]:
    return [result["for_model"] for result in of_type(shell.events(), "tool_result")]


@pytest.mark.parametrize("mode", ["auto", "yolo"])
def test_resume_goes_on_where_the_last_command_was(shell: Shell, serve: Serve, mode: str) -> None:
    serve(
        shell_call("mkdir -p sub; cd sub; export COLOUR=green API_KEY=sk-secret; true"),
        shell_call("pwd; echo $COLOUR"),
        reply("done"),
        shell_call("pwd; echo $COLOUR ${API_KEY-none}; cd ..; cd .."),
        shell_call("pwd"),
        reply("again"),
    )
    assert shell.run("new", "go", "-p", "--mode", mode).code == 0
    where = shell.workspace()
    assert said(shell)[1] == f"exit 0\n{where}/sub\ngreen"
    assert "API_KEY" in said(shell)[0]
    assert b"sk-secret" not in b"".join(
        line for line in shell.log().read_bytes().splitlines() if b'"shell_changed"' in line
    )
    assert shell.run("resume", "--last", "go on", "-p").code == 0
    assert said(shell)[2] == (
        f"exit 0\n{where}/sub\ngreen none\n"
        f"[{where.parent} is outside of the workspace: the next command starts in its root.]"
    )
    assert said(shell)[3] == f"exit 0\n{where}"
    kept = of_type(shell.events(), "shell_changed")
    assert kept == [
        {"directory": "sub", "exports": {"COLOUR": "green"}},
        {"directory": ".", "exports": {"COLOUR": "green"}},
    ]


def test_a_rewind_takes_the_directory_back(shell: Shell, serve: Serve) -> None:
    serve(
        shell_call("mkdir sub"),
        reply("made"),
        shell_call("cd sub"),
        reply("moved"),
        shell_call("pwd"),
        reply("looked"),
    )
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    end = len(shell.events())
    assert shell.run("resume", "--last", "go on", "-p").code == 0
    assert shell.run("rewind", shell.ids[-1], "--to", str(end), "--what", "conversation").code == 0
    assert shell.run("resume", "--last", "where?", "-p").code == 0
    assert said(shell)[-1] == f"exit 0\n{shell.workspace()}"


def test_a_workspace_elsewhere_starts_at_its_root(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    serve(shell_call("mkdir -p sub; cd sub"), reply("done"), shell_call("pwd"), reply("again"))
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    other = tmp_path / "other"
    other.mkdir()
    assert shell.run("resume", "--last", "go on", "-p", "--dir", str(other)).code == 0
    assert said(shell)[-1] == f"exit 0\n{other}"
