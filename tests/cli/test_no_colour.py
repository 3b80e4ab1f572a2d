"""NO_COLOR and TERM=dumb: no command that lists or shows writes a colour, or anything else that is no text."""

import re
from collections.abc import Callable

import pexpect
import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import COMMAND, Shell

__all__ = ["serve", "shell"]

COMMANDS = (["ls"], ["doctor"], ["diff"], ["context"], ["show"], ["replay"], ["verify"])
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r+(?![\r\n])")


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1", "TERM": "xterm-256color"}, {"TERM": "dumb"}])
def test_what_is_shown_on_a_terminal_is_text_alone(
    shell: Shell, serve: Callable[..., ScriptedServer], variable: dict[str, str]
) -> None:
    serve(reply("I write.", calls=[call("write", {"path": "a.txt", "content": "a\n"})]), reply("`done` **now**"))
    assert shell.run("new", "go", "-p").code == 0
    running = [
        pexpect.spawn(
            str(COMMAND), words if words == ["ls"] or words == ["doctor"] else [*words, shell.ids[0]],
            cwd=str(shell.cwd), env=shell.env(**variable), encoding="utf-8", timeout=60, dimensions=(24, 80),
        )
        for words in COMMANDS
    ]  # fmt: skip
    for words, child in zip(COMMANDS, running, strict=True):
        child.expect(pexpect.EOF)
        assert len(child.before) > 20, words
        assert CONTROLS.findall(child.before) == [], (words, child.before)
        child.close()
