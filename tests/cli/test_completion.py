"""Help that names what is to be given, and the completion of commands, options and ids in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.app.paths import Home
from agentsh.cli.entry import COMMANDS
from tests.app.rig import a_home, a_session, an_id

TAB = """
eval "$(agentsh completion bash)"
COMP_WORDS=({words} {last})
COMP_CWORD={at}
_agentsh_completion agentsh
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = a_home(tmp_path / "home")
    program = tmp_path / "bin" / "agentsh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentsh "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("AGENTSH_HOME", str(made.root))
    return made


def printed(*words: str, **variables: str) -> str:
    done = subprocess.run(
        ["agentsh", *words], capture_output=True, text=True, check=True, timeout=30, env=os.environ | variables
    )
    assert done.stderr == ""
    return done.stdout


def tab(words: str, last: str = "''") -> list[str]:
    """Return what bash offers for the last word of a line."""
    script = TAB.format(words=words, last=last, at=len(words.split()))
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=30, env=os.environ
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_choices_and_ids(home: Home) -> None:
    for n in (1, 2, 3):
        a_session(home, an_id(n), title=f"the title; of $HOME {n}", second=n)
    assert set(tab("agentsh")) == set(COMMANDS)
    assert tab("agentsh", "ren") == ["rename"]
    assert tab("agentsh ls", "--so") == ["--sort"]
    assert tab("agentsh ls --sort", "u") == ["updated"]
    newest_first = [an_id(3), an_id(2), an_id(1)]
    for command in ("resume", "show", "replay", "verify", "rm", "tag", "context", "fork", "diff", "repair", "push"):
        assert tab(f"agentsh {command}", an_id(1)[:9]) == newest_first, command
    assert tab(f"agentsh rm {an_id(1)}", an_id(2)) == [an_id(2)]  # the second of several
    assert tab("agentsh resume", "nothing") == [""] or not tab("agentsh resume", "nothing")


def test_zsh_and_fish_are_given_titles(home: Home) -> None:
    a_session(home, an_id(1), title="a title")
    asked = {"_AGENTSH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "agentsh resume "}
    assert f'"{an_id(1)}":"a title"' in printed(**asked)
    asked = {"_AGENTSH_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": "agentsh resume "}
    assert printed(**asked, _TYPER_COMPLETE_FISH_ACTION="get-args") == f"{an_id(1)}\ta title\n"
    for shell in ("bash", "zsh", "fish"):
        assert "_AGENTSH_COMPLETE" in printed("completion", shell)


def test_a_title_or_a_name_is_no_command_to_a_shell(home: Home) -> None:
    """typer has zsh evaluate what it is given: a model, or whoever made a project, may have written it."""
    a_session(home, an_id(1), title=r"""a \$(touch "$PWNED") \`touch "$PWNED"\` 'b' [/c] [red]d""")
    a_session(home, an_id(2), title="the other")
    foreign = home.sessions / "$(touch $PWNED)"
    shutil.copytree(home.sessions / an_id(2), foreign)
    asked = {"_AGENTSH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "agentsh resume "}
    answer = printed(**asked)
    assert an_id(1) in answer
    assert '"the other"' in answer
    assert not set(answer.partition("((")[2]) & set("\\$`[]")
    assert foreign.name not in answer
    if shutil.which("zsh") is None:
        return
    pwned = home.root / "pwned"
    # What zsh's own does with it:
    script = f"_arguments() {{ local action=${{1##*: :}}; eval ws=\\( ${{action[3,-3]}} \\) }}\n{answer}"
    env = os.environ | {"PWNED": str(pwned)}
    subprocess.run(["zsh", "-f", "-c", script], capture_output=True, check=True, timeout=30, env=env)
    assert not pwned.exists()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_takes_its_script(home: Home, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    done = subprocess.run(
        [shell, "-n"], input=printed("completion", shell), capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_what_goes_wrong_is_not_shown_in_somebodys_prompt(home: Home) -> None:
    (home.sessions / an_id(1)).write_text("no directory")
    (home.root / "agentsh.toml").write_text("not = [toml")
    (home.root / "index.db").write_text("garbage")
    done = subprocess.run(
        ["agentsh"], capture_output=True, text=True, timeout=30,
        env=os.environ | {"_AGENTSH_COMPLETE": "complete_bash", "COMP_WORDS": "agentsh resume ", "COMP_CWORD": "2"},
    )  # fmt: skip
    assert done.stderr == ""
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_speaks_no_python(home: Home, command: str) -> None:
    wide = printed(command, "--help", COLUMNS="200")
    for odd in ("list[", " range", "<str>", "[[", "{", "]...]", "]...\n", "python"):
        assert odd not in wide, odd
    assert max(map(len, wide.splitlines())) <= 100
    assert "..." not in wide.split("Options:")[1]


ZSH = r"""
_arguments() { local action="${1#\*: :}"; eval ws\=\( "${action[3,-3]}" \); print -rl -- $ws }
eval "$(agentsh completion zsh)" 2> /dev/null
words=(agentsh resume "") CURRENT=3
_agentsh_completion
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize(
    "title",
    [r"x \$(touch gone) y", r"x \\$(touch gone)", r"x\`touch gone`", r'x \" $(touch gone) \" y', "x'; touch gone; '",
     'x"; touch gone; "', "ends in \\", "$(touch gone)", "it's \"so\": [a] {b,c} ((d)) * ~ ; & | < > %"],
)  # fmt: skip
def test_no_title_is_run_by_tab(home: Home, tmp_path: Path, title: str) -> None:
    """What `_arguments` of zsh does with `((…))`, by the line of it that evaluates."""
    a_session(home, an_id(1), title=title)
    done = subprocess.run(["zsh", "-fc", ZSH], capture_output=True, text=True, timeout=30, cwd=tmp_path, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{an_id(1)}:")
    assert len(done.stdout.splitlines()) == 1
    assert not (tmp_path / "gone").exists()
