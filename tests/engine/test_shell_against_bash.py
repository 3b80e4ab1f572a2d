"""The judge held against bash itself: whatever bash runs of a line was among the commands that were judged.

Lines are put together at random from pieces that mean something to a shell, and run by a real bash that has no
program to find (PATH is empty): each name that it looks for is written down by `command_not_found_handle`.
"""

import os
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentsh.engine.shell.judge import judge
from agentsh.workspace.local import LocalWorkspace

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash")

HARMLESS = ("ls", "cat a", "wc -l", "grep x", "head -1", "rg foo", "git status", "find . -type f", "sort")
EVIL = (
    "evil",
    "evil x",
    "'evil'",
    "\\evil",
    "e'vi'l",
    "evil;",
    "$(evil)",
    "`evil`",
    '"$(evil)"',
    "<(evil)",
    "{ evil; }",
)
GLUE = (
    "; ", " && ", " || ", " | ", " & ", "\n", " ", "", " # ", "\\\n", "\\", "'", '"', '"$ ', "$", "`", "$(", ")", "(",
    "{ ", "; }", " <<E\n", "\nE\n", "\nE \n", " <<'E'\n", " <<-E\n\t", "\n\tE\n", "$'", "${x:-", "}", "$((", "))",
    "[[ ", " ]]", " > /dev/null ", " < a ", " <<< ", "if ", "; then ", "; fi", "for f in a b; do ", "; done",
    "case x in x) ", ";; esac", "!", " 2>&1 ", "time ", "\t", "echo ", "bash -c '", "eval ", "*", "~", "=", "x=1 ",
    "a#b", "#", "f() ", " <<E | ", "x=1; ", "x='a[$(evil)]'; ",
    "$((x+1))", "x=$((x+1)); ", "for x in 1 2; do ", "read x", "[ $x -lt 3 ]",
    "\r", "\x0b", " ", "é", "${#x}", "&>", "|&", "<(", ">(", "coproc ", "\\\\", "'\\''", "\\\"", "%", "{a,", "..3}",
)  # fmt: skip
LINES = st.lists(st.sampled_from(HARMLESS + EVIL + GLUE), min_size=2, max_size=9).map("".join)

HANDLER = 'command_not_found_handle() { builtin printf "%s\\0" "$1" >> "$SEEN"; }\n'
# Builtins that would end the shell, wait or read; what else they do stays inside of this one process.
OFF = "enable -n exit exec read kill ulimit source . fg bg suspend logout umask trap\nexit() { :; }\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> LocalWorkspace:
    root = tmp_path_factory.mktemp("bash") / "ws"
    root.mkdir()
    (root / "a").write_text("a\n")
    return LocalWorkspace(root, session="test-bash")


def what_bash_runs(line: str, root: Path) -> set[str]:
    """The names of all programs that bash would have run."""
    seen = root.parent / f"seen-{secrets.token_hex(8)}"
    seen.touch()
    script = HANDLER + OFF + f"eval {_quoted(line)}\nbuiltin wait\n"
    assert BASH is not None
    with subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-c", script],
        cwd=root,
        env={"PATH": "/nonexistent", "SEEN": str(seen)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
    return set(seen.read_text(errors="replace").split("\0")) - {""}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@given(line=LINES)
@example(line='echo "costs 5$ $(evil)"')
@example(line="cat <<E\nE \nevil\nE\n")
@example(line="cat <<E\n`evil`\nE\n")
@example(line="cat <<E | head -1 | evil\nx\nE\nevil x")
@example(line="ls | cat <<E | evil && evil x\nx\nE\n")
@example(line="ls\\\nx; evil")
@example(line="ls \x0b; evil")
@example(line="f() { evil; }; f")
@example(line="[[ 'a[$(evil)]' -eq 1 ]]")
@example(line="echo ${x:-`evil`}")
@example(line="for f in a b; do evil $f; done")
@example(line="wc -l\n\\evil")
@example(line="&>{ { ")
@example(line="!'evil'")
@example(line="'evil'`evil`eval ")
@example(line="time x=1 evil")
@example(line="~`evil`#")
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_what_bash_runs_was_judged(workspace: LocalWorkspace, line: str) -> None:
    found = judge(line, workspace)
    if found.unreadable:
        return  # the user is asked, whatever it is
    names = {part.words[0] for part in found.parts if part.words}
    if None in names or any("not known" in (part.problem or "") for part in found.parts):
        assert not found.harmless
        return
    ran = {name.rpartition("/")[2] for name in what_bash_runs(line, Path(workspace.root))}
    assert ran <= names | {"COPROC"}, f"{line!r}: bash ran {ran}, judged were {names}"
    if found.harmless:
        assert not {name for name in ran if "evil" in name}
