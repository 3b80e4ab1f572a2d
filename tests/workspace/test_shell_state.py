"""Directory and exports of one command are there for the next one, in every sandbox; nothing else gets in."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh.ports.workspace import ProcessResult, ShellState
from agentsh.workspace.bounds import bounds_of
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.sandbox import make, probe
from agentsh.workspace.shell_state import MAX_EXPORTS_BYTES, MAX_REPORT_BYTES
from agentsh.workspace.strays import kill_session

SESSION = f"test-shell-{os.getpid()}"


@pytest.fixture(params=["none", "bwrap", "landlock"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorkspace]:
    kind = request.param
    if kind != "none" and not probe(kind).works:
        pytest.skip(f"no {kind} here")
    root = tmp_path / "home" / "workspaces" / "id"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a dir\nof two lines").mkdir()
    (tmp_path / "private").mkdir()
    bounds = bounds_of(root, tmp=str(tmp_path / "private"), homes=[tmp_path / "home"])
    yield LocalWorkspace(root, session=SESSION, sandbox=make(kind, bounds))
    assert kill_session(SESSION) == 0


class Talk:
    """Runs one command after the other, each with what the one before left."""

    def __init__(self, workspace: LocalWorkspace) -> None:
        self.workspace = workspace
        self.state = ShellState()
        self.result: ProcessResult | None = None

    async def __call__(self, command: str, *, timeout_s: float = 20) -> str:
        self.result = await self.workspace.run(command, timeout_s=timeout_s, max_bytes=20_000, shell=self.state)
        if self.result.shell is not None:
            self.state = self.result.shell
        return self.result.output


@pytest.fixture
def talk(workspace: LocalWorkspace) -> Talk:
    return Talk(workspace)


async def test_the_directory_is_kept(talk: Talk) -> None:
    await talk("cd sub/deep")
    assert talk.state == ShellState("sub/deep")
    assert await talk("pwd; cd ..") == f"{talk.workspace.root}/sub/deep\n"
    assert await talk("pwd; cd '../a dir\nof two lines'") == f"{talk.workspace.root}/sub\n"
    assert await talk('basename "$PWD"') == "a dir\nof two lines\n"


@pytest.mark.parametrize("line", ["cd ../..", "cd /", "cd /usr; exit 3", "cd ../.. && false"])
async def test_n201_a_directory_outside_falls_back_to_the_root_and_is_told(talk: Talk, line: str) -> None:
    await talk("cd sub")
    await talk(line)
    assert talk.state.directory == "."
    assert talk.result is not None
    assert talk.result.left_workspace
    assert await talk("pwd") == f"{talk.workspace.root}\n"


async def test_b39_a_directory_that_is_gone_falls_back_to_the_root(talk: Talk) -> None:
    await talk("cd sub/deep")
    (Path(talk.workspace.root) / "sub" / "deep").rmdir()
    assert await talk("pwd") == f"{talk.workspace.root}\n"
    for above in ("", "cd ..; "):
        await talk("mkdir -p sub; cd sub")
        await talk(f"{above}mkdir gone; cd gone; rmdir ../gone; export KEPT=1")
        assert talk.result is not None
        assert talk.result.left_workspace
        assert talk.state == ShellState(".", {"KEPT": "1"})
        assert await talk("pwd") == f"{talk.workspace.root}\n"


async def test_a_link_put_in_its_place_leads_nowhere(talk: Talk) -> None:
    await talk("cd sub/deep")
    root = Path(talk.workspace.root)
    (root / "sub" / "deep").rmdir()
    (root / "sub" / "deep").symlink_to("/usr")
    assert await talk("pwd -P") == f"{root}\n"


async def test_exports_are_kept_and_can_be_changed_and_unset(talk: Talk) -> None:
    odd = 'it\'s "odd" $HOME `x`\n\\ \t é \u2028 end'
    await talk(f"export A=1 ODD={shlex.quote(odd)} EMPTY=; local_only=2; export PATH=/opt/x:$PATH; unset LANG HOME")
    assert talk.state.exports["ODD"] == odd
    assert "local_only" not in talk.state.exports
    assert await talk('printf "%s|" "$A" "$ODD" "${EMPTY-none}" "${PATH%%:*}" "${HOME-gone}"') == (
        f"1|{odd}||/opt/x|gone|"
    )
    await talk("A=2; unset ODD; export HOME=/somewhere")
    assert await talk('echo "$A ${ODD-gone} $HOME"') == "2 gone /somewhere\n"
    assert set(talk.state.exports) <= {"A", "EMPTY", "PATH", "HOME", "LANG"}


async def test_secrets_are_not_kept(talk: Talk) -> None:
    await talk("export API_KEY=sk-1 MY_TOKEN=t DB_PASSWORD=p URL=https://me:pw@host/ PLAIN=1")
    assert dict(talk.state.exports) == {"PLAIN": "1"}
    assert talk.result is not None
    assert set(talk.result.not_kept) == {"API_KEY", "MY_TOKEN", "DB_PASSWORD", "URL"}


async def test_what_is_too_much_is_not_kept(talk: Talk) -> None:
    await talk("export LONG=$(head -c 9000 /dev/zero | tr '\\0' x); for i in $(seq 300); do export V$i=abc; done")
    assert talk.result is not None
    assert "LONG" in talk.result.not_kept
    assert 90 < len(talk.state.exports) <= 100
    for n in range(40):
        await talk(f"export B{n}=$(head -c 3000 /dev/zero | tr '\\0' x)")
    assert len(str(talk.state.exports)) < MAX_EXPORTS_BYTES
    before = talk.state
    await talk(
        f"cd sub; for i in $(seq 9); do export C$i=$(head -c {MAX_REPORT_BYTES // 8} /dev/zero | tr '\\0' x); done"
    )
    assert talk.state == before, "what does not fit the report is no report"


@pytest.mark.parametrize(
    "line",
    [
        "for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 99 ] && eval \"printf '/etc\\0LD_P=x\\0' >&$n\"; done",
        "echo '=end'; printf '/etc\\0A=1\\0=end\\0'",
        'for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 99 ] && eval "head -c 9999999 /dev/zero >&$n"; done',
    ],
)
async def test_what_a_command_writes_is_no_state_of_the_shell(talk: Talk, line: str) -> None:
    """Where it finds the descriptor it can spoil its own report; what comes of it is within the same bounds."""
    await talk(f"{{ {line}; }} 2>/dev/null")
    assert talk.state.directory in (None, ".")
    assert await talk("pwd") == f"{talk.workspace.root}\n"


async def test_machinery_cannot_be_exported(talk: Talk) -> None:
    await talk(
        "export AGENTSH_SESSION=x AGENTSH_RUN=y BASH_ENV=e.sh ENV=e.sh GIT_CEILING_DIRECTORIES=/ PS4='$(id)' OK=1"
    )
    assert dict(talk.state.exports) == {"OK": "1"}


async def test_a_preload_stays_inside(talk: Talk) -> None:
    """Set by the shell inside the sandbox: what makes the sandbox never sees it."""
    await talk("export LD_PRELOAD=./evil.so")
    out = await talk("echo here")
    assert out.endswith("here\n")
    assert "evil.so" not in out, "nothing was started with it before the shell"


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [("set -eux; cd sub; false", 1), ("cd sub; exit 7", 7), ("set -o noclobber; cd sub; (exit 3)", 3),
     ("cd sub; PATH=; IFS=x", 0), ("cd sub; nonsense-command", 127),
     ("cd sub; printf() { :; }; pwd() { :; }", 0)],
)  # fmt: skip
async def test_it_is_told_however_the_shell_ends(talk: Talk, line: str, exit_code: int) -> None:
    await talk(line)
    assert talk.state.directory == "sub"
    assert talk.result is not None
    assert talk.result.exit == exit_code


async def test_at_the_time_limit_all_stays_as_it_was(talk: Talk) -> None:
    await talk("export A=1")
    await talk("cd sub; sleep 300", timeout_s=0.3)
    assert talk.state == ShellState(".", {"A": "1"})


async def test_a_shell_that_is_replaced_leaves_all_as_it_was(talk: Talk) -> None:
    await talk("cd sub; export A=1")
    await talk("cd ..; exec true")
    assert talk.state == ShellState("sub", {"A": "1"})
    for name in ("KILL", "TERM"):
        await talk(f"cd ..; export A=2; kill -{name} $$")
    assert talk.state == ShellState("sub", {"A": "1"})
    await talk("trap 'echo mine' EXIT; cd ..")
    assert talk.state == ShellState("sub", {"A": "1"})
    assert talk.result is not None
    assert talk.result.output == "mine\n"


async def test_what_reads_its_line_is_as_it_would_be_without(talk: Talk) -> None:
    assert await talk("echo $# $LINENO; set -- a b; echo $2") == "0 1\nb\n"
    assert await talk("cat <<X\nit's\nX\n") == "it's\n"
    assert "line 2: nosuch: command not found" in await talk("true\nnosuch")


async def test_no_program_inherits_the_descriptor(talk: Talk) -> None:
    program = "import os; print([f for f in os.listdir('/proc/self/fd') if int(f) > 3])"
    assert await talk(f'python3 -c "{program}"; (python3 -c "{program}")') == "[]\n[]\n"
