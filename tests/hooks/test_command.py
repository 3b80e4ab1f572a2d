"""A hook says yes, no or something, and whatever it does instead counts as no."""

import json
import os
import time
from pathlib import Path

import pytest

from agentsh.hooks.command import CommandHook
from agentsh.ports.hook import HookVerdict
from agentsh.workspace.strays import AVAILABLE, kill_marked


def hook(script: str, **more: object) -> CommandHook:
    return CommandHook("check", ["/bin/sh", "-c", script], **more)  # type: ignore[arg-type]


async def before(script: str, **more: object) -> HookVerdict:
    return await hook(script, **more).before_tool("write", {"path": "ä.txt", "half": "\ud800"})


async def after(script: str, **more: object) -> HookVerdict:
    return await hook(script, **more).after_tool("write", {"path": "a"}, "ok", "result")


async def test_it_gets_the_call_as_json(tmp_path: Path) -> None:
    file = tmp_path / "question"
    assert await before(f"cat > {file}") == HookVerdict()
    assert json.loads(file.read_text()) == {
        "event": "before_tool",
        "tool": "write",
        "arguments": {"path": "ä.txt", "half": "\ud800"},
    }
    await after(f"cat > {file}")
    assert json.loads(file.read_text()) == {
        "event": "after_tool",
        "tool": "write",
        "arguments": {"path": "a"},
        "status": "ok",
        "result": "result",
    }


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("true", HookVerdict()),
        ("""echo '{"verdict":"pass"}'""", HookVerdict()),
        ("""echo '{"verdict":"deny","message":"no"}'""", HookVerdict("deny", "no")),
        ("""printf %s '{"verdict":"annotate","message":"a\\nb"}'""", HookVerdict("annotate", "a\nb")),
        ("""echo noise >&2; echo '{"verdict":"annotate","message":null}'""", HookVerdict("annotate")),
        ("echo why >&2; exit 2", HookVerdict("deny", "why")),
        ("exit 2", HookVerdict("deny", "no reason given")),
    ],
)
async def test_verdicts(script: str, verdict: HookVerdict) -> None:
    assert await before(script) == verdict
    assert await after(script) == verdict


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo broken >&2; exit 3",
        "kill -9 $$",
        "no-such-command",
        "echo yes",
        "echo '[1]'",
        """echo '{"verdict":"maybe"}'""",
        """echo '{"verdict":"deny","message":5}'""",
        "head -c 100000 /dev/zero",
        "yes",
        "sleep 300",
    ],
)
async def test_a_failure_denies_before_and_annotates_after(script: str) -> None:
    denied = await before(script, timeout_s=0.3)
    assert denied.verdict == "deny"
    assert denied.message
    assert len(denied.message) < 2_200
    annotated = await after(script, timeout_s=0.3)
    assert annotated.verdict == "annotate"
    assert annotated.message


async def test_a_program_that_is_not_there() -> None:
    verdict = await CommandHook("check", ["/no/such/program"]).before_tool("write", {})
    assert verdict.verdict == "deny"
    assert verdict.message is not None
    assert "/no/such/program" in verdict.message


async def test_events(tmp_path: Path) -> None:
    assert await before("exit 2", events=("after_tool",)) == HookVerdict()
    assert await after("exit 2", events=("before_tool",)) == HookVerdict()
    assert (await before("exit 2", events=("before_tool",))).verdict == "deny"


async def test_it_has_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "t")
    assert (await before('echo "$MY_TOKEN" >&2; exit 2')).message == "t"


async def test_a_large_question_that_is_not_read_does_not_hang() -> None:
    assert await hook("exit 0").after_tool("read", {}, "ok", "x" * 10_000_000) == HookVerdict()


@pytest.mark.skipif(not AVAILABLE, reason="strays are found in /proc")
async def test_the_time_limit_kills_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"hook-test-{os.getpid()}"
    monkeypatch.setenv("AGENTSH_HOOK_TEST", mark)
    start_s = time.monotonic()
    assert (await before("sleep 300 & setsid sleep 300 & sleep 300", timeout_s=0.3)).verdict == "deny"
    assert time.monotonic() - start_s < 30
    assert kill_marked("AGENTSH_HOOK_TEST", mark) == 0
