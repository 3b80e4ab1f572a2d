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


def test_what_is_not_there_is_told_with_the_way_to_it(shell: Shell) -> None:
    assert shell.run("-p", "--model", "demo", "--empty", "hi").code == 0
    (session,) = shell.ids
    gone = shell.run("resume", session, "--dir", "/nonexistent", "-p", "on")
    assert (gone.code, "--dir /nonexistent: there is no such directory" in gone.err) == (2, True)
    assert shell.run("rm", "--yes", session).code == 0
    for command in ("show", "replay", "resume", "diff", "rm"):
        for name in (session, session[-6:]):
            done = shell.run(command, name)
            assert (done.code, done.out) == (3, b"")
            assert f"it is in the trash: `agentsh restore {session}`" in done.err
    done = shell.run("restore", "nothing-of-that")
    assert (done.code, f"(in it: {session})" in done.err) == (3, True)
    assert shell.run("restore", session).code == 0
    assert "(it is empty)" in shell.run("restore", session).err
    assert "`agentsh ls --all` lists them" in shell.run("show", "nothing-of-that").err

    file = shell.home / "a-file"
    file.touch()
    for words in (["ls"], ["show"], ["new", "hi", "-p"], ["verify", "--all"], ["gc"], ["doctor"]):
        done = shell.run(*words, AGENTSH_HOME=str(file))
        assert (done.code, done.out) == (2, b"")
        assert done.err == f"agentsh: AGENTSH_HOME {file} is there, and no directory (name a directory)\n"


def test_a_misspelt_profile_is_told_with_those_that_there_are(shell: Shell) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text('[models.local]\nbase_url = "http://127.0.0.1:9/v1"\n[models.b]\n')
    done = shell.run("new", "hi", "-p", "--model", "lokal")
    assert done.code != 0
    assert "the profiles are b, local; for a model of this host set OPENAI_API_KEY" in done.err
