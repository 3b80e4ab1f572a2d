"""Field reports L (commands and processes), O (approvals, modes of files) and N201: each row named by its number."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agentsh.engine.policy import Request, decide
from agentsh.engine.rules import Rules, parse_rule
from agentsh.engine.shell.judge import judge
from agentsh.workspace.bounds import bounds_of
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.sandbox import choose, make

KINDS = ["none", *({choose("auto")[0]} - {"none"})]
SESSION = f"test-field-{os.getpid()}"


@pytest.fixture(params=KINDS)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorkspace]:
    for name in ("home/workspaces/id", "private"):
        (tmp_path / name).mkdir(parents=True)
    root = tmp_path / "home" / "workspaces" / "id"
    bounds = bounds_of(root, tmp=str(tmp_path / "private"), homes=[tmp_path / "home"])
    workspace = LocalWorkspace(root, session=SESSION, sandbox=make(request.param, bounds))
    yield workspace
    assert asyncio.run(workspace.kill_strays()) == 0


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("L176", "(sleep 300)& echo hi"),
        ("L177", "setsid sleep 300 & echo hi"),
        ("L182", "(sleep 300 | sleep 300 | cat) & echo hi"),
        ("L183", "sleep 300 & sleep 300 & echo hi"),
    ],
    ids=lambda value: value[:4],
)
async def test_a_command_returns_although_something_goes_on(workspace: LocalWorkspace, row: str, line: str) -> None:
    began = time.monotonic()
    result = await workspace.run(line, timeout_s=60, max_bytes=1_000)
    assert time.monotonic() - began < 30
    assert (result.exit, result.output, result.left_running) == (0, "hi\n", True)


@pytest.mark.parametrize(
    "line",
    [
        "cat",
        "read x; echo $?",
        "git commit 2>&1",
        "python3 -c 'input()' 2>&1",
        "ssh -o ConnectTimeout=1 127.0.0.1 2>&1",
    ],
)
async def test_l179_l181_what_waits_for_input_gets_none(workspace: LocalWorkspace, line: str) -> None:
    began = time.monotonic()
    result = await workspace.run(line, timeout_s=60, max_bytes=1_000)
    assert not result.timed_out
    assert time.monotonic() - began < 30


async def test_l182_after_a_cancellation_nothing_is_left(workspace: LocalWorkspace) -> None:
    line = "(sleep 300 | sleep 300) & setsid sleep 300 & echo on; sleep 300"
    seen = asyncio.Event()
    running = asyncio.create_task(
        workspace.run(line, timeout_s=60, max_bytes=1_000, on_output=lambda text: seen.set())
    )
    await asyncio.wait_for(seen.wait(), 20)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert await workspace.kill_strays() == 0


async def test_l183_no_interactive_shell(workspace: LocalWorkspace) -> None:
    result = await workspace.run("case $- in *i*) echo interactive;; *) echo plain;; esac; set -o | grep monitor",
                                 timeout_s=20, max_bytes=1_000)  # fmt: skip
    assert result.output.split() == ["plain", "monitor", "off"]


async def test_n201_a_directory_that_was_left_is_entered_again(workspace: LocalWorkspace) -> None:
    await workspace.run("cd ..; cd /; pwd", timeout_s=20, max_bytes=1_000)
    assert (await workspace.run("pwd", timeout_s=20, max_bytes=1_000)).output == f"{workspace.root}\n"


RULES = Rules(
    allow=tuple(map(parse_rule, ("shell(ls *)", "shell(cat *)", "shell(echo *)", "shell(git status *)"))),
    deny=tuple(map(parse_rule, ("shell(rm *)", "shell(git commit *)", "read(.env)"))),
)


@pytest.mark.parametrize(
    ("row", "line", "verdict"),
    [
        ("O210", "ls && rm -rf x", "deny"),
        ("O210", "ls $(rm -rf x)", "deny"),
        ("O210", "ls\nrm -rf x", "deny"),
        ("O210", "ls; rm -rf x", "deny"),
        ("O210", "find . -exec rm {} ;", "deny"),
        ("O210", "find . -exec rm {} \\;", "deny"),
        ("O210", "env X=1 rm x", "deny"),
        ("O212", "git -C /p commit -m x", "deny"),
        ("O212", "git --no-pager commit -m x", "deny"),
        ("O213", "{ cat .env; }", "deny"),
        ("O213", "cat <(ls) .env", "deny"),
        ("O213", "echo $(<.env)", "deny"),
        ("O213", ". .env", "deny"),
        ("O213", "dd if=.env", "deny"),
        ("O215", "ls && touch x", "ask"),
        ("O215", "ls; touch x", "ask"),
        ("O215", "ls > x", "ask"),
        ("O216", "ls | sh", "ask"),
        ("O216", "cat a | tee x", "ask"),
        ("O216", "ls | cat", "allow"),
    ],
)
def test_every_part_of_a_line_is_judged(tmp_path: Path, row: str, line: str, verdict: str) -> None:
    found = judge(line, LocalWorkspace(tmp_path, session=SESSION))
    parts = None if found.unreadable else found.parts
    request = Request(
        effects={"exec"}, mode="ask", sandboxed=False, rules=RULES, parts=parts, unreadable="unreadable"
    )
    assert decide(request).action == verdict
