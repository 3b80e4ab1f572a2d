"""Command lines that do not parse are told the way out; those that mean something without a command work."""

import pytest

from agentsh.cli import entry
from agentsh.cli.main import app, run
from tests.e2e.harness import Shell

WRONG = [
    ("new --mode foo", "'foo' is not one of 'ask'"),
    ("new fix the tests", 'agentsh new "…"'),
    ("resume abc fix the tests", 'agentsh resume ID "…"'),
    ("fix", 'agentsh new "fix"'),
    ("resum", "Did you mean 'resume'?"),
    ("--model demo ls", "The command comes first"),
    *((f"{name}", f"`agentsh {name} ID`; `agentsh ls`") for name in ("diff", "apply", "rewind", "fork", "rm", "tag")),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_a_line_that_does_not_parse_is_told_the_way_out(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Value error" not in err


def test_the_commands_are_known_without_the_framework() -> None:
    assert {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands} == entry.COMMANDS


def test_words_that_mean_a_command_without_naming_it(shell: Shell) -> None:
    assert shell.run("--model", "demo", "-p", "--empty", "--name", "ls", "hi").code == 0
    assert len(shell.ids) == 1
    assert shell.run("-p", "--model=demo", "--mode", "foo").code == 2
    for words in (["ls", "ls", shell.ids[0]], ["ls", "--sort", "cost", "ls", shell.ids[0][:8]]):
        assert shell.ids[0] in shell.run(*words).text
    assert "No sessions match" in shell.run("ls", "ls", "nothing-of-that").text
    assert shell.run("version").text == shell.run("--version").text
    assert shell.run("help", "ls").text == shell.run("ls", "--help").text
    assert shell.run("help").text == shell.run("--help").text
