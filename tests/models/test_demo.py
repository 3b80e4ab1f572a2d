"""The demo model: its scripts in the real engine with real tools, and after every kind of accident."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentsh.base.errors import RequestRejected
from agentsh.context.repairs import DID_NOT_RUN, MAY_HAVE_RUN
from agentsh.events.event import Event
from agentsh.events.signals import Signal, TextDelta
from agentsh.events.tool import ToolCall
from agentsh.events.turn import AgentMessage
from agentsh.models.demo import DemoModel
from agentsh.models.demo_plans import SCRIPTED, Move, next_move
from agentsh.ports.model import Model, Prompt
from agentsh.testing import FakeClock
from agentsh.testing.model_contract import ModelContract
from tests.models.demo_rig import ID, DemoRig, again, new

PROJECT = "Please create a small project with tests"
FILES = ["test_wordcount.py", "wordcount/README.md", "wordcount/__init__.py"]


class TestContract(ModelContract):
    @pytest.fixture
    def model(self) -> Model:
        return DemoModel(clock=FakeClock())

    @pytest.fixture
    def hanging(self) -> Model:
        class Slow(FakeClock):
            async def sleep(self, seconds: float) -> None:
                held = FakeClock(hold=True)
                await (held.sleep(seconds) if self.monotonic_s() else super().sleep(seconds))

        return DemoModel(clock=Slow())


def files(root: Path) -> list[str]:
    found = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return sorted(name for name in found if "__pycache__" not in name)


async def test_a_project_is_made_tested_mended_and_tested_again(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    said = await rig.ask(PROJECT)
    assert files(tmp_path) == FILES
    assert [call.name for call in rig.facts(ToolCall)] == [
        "list", "grep", "write", "write", "write", "shell", "read", "grep", "edit", "shell",
    ]  # fmt: skip
    assert [r.status for r in rig.results] == ["ok"] * 10
    assert [r.exit for r in rig.results if r.exit is not None] == [1, 0]
    assert SCRIPTED in said
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "unittest", "-q"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


async def test_it_says_that_it_is_a_script_first_and_last_and_streams_within_two_seconds(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    began_s = rig.model_clock.monotonic_s()
    await rig.ask(PROJECT)
    assert rig.model_clock.monotonic_s() - began_s < 2
    messages = rig.facts(AgentMessage)
    assert SCRIPTED in str(messages[0].text)
    assert SCRIPTED in str(messages[-1].text)
    deltas = [s for s in rig.screen.signals if isinstance(s, TextDelta)]
    assert len(deltas) > 50
    assert "".join(d.text for d in deltas) == "".join(str(m.text) for m in messages)
    assert all(m.model == "demo" and m.usage and m.usage.prompt and m.usage.completion for m in messages)


async def test_a_second_project_takes_another_name(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    await rig.ask(PROJECT)
    await rig.ask(PROJECT)
    await rig.ask("Create a project called json")
    assert {name.partition("/")[0] for name in files(tmp_path) if "/" in name} == {
        "wordcount", "wordcount2", "json_demo",
    }  # fmt: skip


TASKS: list[tuple[str, list[str], str]] = [
    ('replace "alpha" with "omega" in notes.txt', ["read", "edit", "read"], "omega beta"),
    ("Change alpha to omega in notes.txt.", ["read", "edit", "read"], "omega beta"),
    ("edit a file", ["list", "grep", "write", "edit", "read"], "This is an edited line."),
    ("run the tests", ["list", "glob", "shell"], "tests"),
    ("run `echo $((6*7))`", ["shell"], "42"),
    ("search for Alpha", ["grep", "list"], "notes.txt:1:alpha beta"),
    ('find "alpha beta"', ["grep", "list"], "notes.txt:1:alpha beta"),
    ("list the files", ["list", "glob"], "notes.txt"),
    ("Which files are here?", ["list", "glob"], "notes.txt"),
    ("ls", ["list", "glob"], "notes.txt"),
    ("read notes.txt", ["read"], "alpha beta"),
    ("Show me `notes.txt`!", ["read"], "alpha beta"),
    ("hello?", ["list", "grep"], "You can ask me to"),
    ("Show me what you can do", ["list", "grep"], "You can ask me to"),
    ("continue", ["list", "grep"], "You can ask me to"),
    ("", ["list", "grep"], "You can ask me to"),
    ("do something\n<file name='x'>\ncreate a project\n</file>", ["list", "grep"], "You can ask me to"),
]


@pytest.mark.parametrize(("task", "names", "words"), TASKS, ids=[t[0][:20] for t in TASKS])
async def test_what_it_understands(tmp_path: Path, task: str, names: list[str], words: str) -> None:
    (tmp_path / "notes.txt").write_text("alpha beta\n")
    rig = await new(tmp_path)
    said = await rig.ask(task)
    assert [call.name for call in rig.facts(ToolCall)] == names
    assert words in said
    assert said.count(SCRIPTED) == 1


async def test_a_file_of_its_own_is_edited_back_and_forth(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    for line in ("an edited line", "a first line", "an edited line"):
        assert line in await rig.ask("edit a file")
        assert (tmp_path / "demo-notes.txt").read_text() == f"This is {line}.\n"


async def test_what_fails_is_said_and_ends_the_script(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    said = await rig.ask('replace "x" with "y" in nowhere.txt')
    assert "So I stop here." in said
    assert "edit nowhere.txt" in said
    assert SCRIPTED in said


async def test_in_plan_mode_nothing_is_written(tmp_path: Path) -> None:
    rig = await new(tmp_path, mode="plan")
    said = await rig.ask(PROJECT)
    assert "was refused: Denied" in said
    assert files(tmp_path) == []


def _past(rig: DemoRig) -> list[dict[str, Any]]:
    body = DemoModel().encode(Prompt("demo", rig.messages(), ()))
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    return messages


async def test_the_next_move_follows_from_the_messages_alone(tmp_path: Path) -> None:
    """Cut after any step, the script goes on with the very move that came next."""
    rig = await new(tmp_path)
    await rig.ask("first read nothing.txt")
    await rig.ask(PROJECT)
    messages = _past(rig)
    start = next(n for n, m in enumerate(messages) if m["content"] == PROJECT)
    replies = [n for n, m in enumerate(messages) if m["role"] == "assistant" and n > start]
    assert len(replies) == 7
    for n in replies:
        move = next_move(messages[:n])
        calls = messages[n].get("tool_calls", [])
        assert move.text == (messages[n]["content"] or "")
        assert [name for name, _ in move.calls] == [c["function"]["name"] for c in calls]


class Photographer:
    """Copies the workspace at every event."""

    def __init__(self, root: Path, album: Path) -> None:
        self._root, self._album = root, album
        self.types: list[str] = []

    def on(self, event: Event) -> None:
        self.types.append(event.fact.type)
        shutil.copytree(self._root, self.at(len(self.types)), ignore=shutil.ignore_patterns("__pycache__"))

    def at(self, count: int) -> Path:
        return self._album / str(count)

    def signal(self, signal: Signal) -> None:
        pass

    def close(self) -> None:
        pass


async def test_after_a_crash_continue_ends_the_project(tmp_path: Path) -> None:
    """At some events, and around every effect with the files as they are before it and after it."""
    root = tmp_path / "work"
    root.mkdir()
    rig = await new(root)
    photos = Photographer(root, tmp_path / "album")
    for event in rig.screen.events:
        photos.on(event)
    rig.bus.subscribe(photos)
    await rig.ask(PROJECT)
    last = photos.types.index("turn_finished")
    asked = photos.types.index("user_message") + 1
    crashes = [(n, n) for n in range(asked, last, 11)]
    crashes += [(n, n + 1) for n in range(asked, last) if photos.types[n] == "code_edit"]
    for log, disk in crashes:
        left = tmp_path / f"left-{log}-{disk}"
        shutil.copytree(photos.at(disk), left)
        second = await again(rig.store.crashed(ID, log), left)
        said = await second.ask("continue")
        assert "both tests" in said, (log, disk, said)
        assert files(left) == FILES


def _steps(rig: DemoRig, upto_calls: int, results: list[str]) -> Move:
    """The move after the first `upto_calls` calls, whose last results are replaced and followed by `continue`."""
    messages = _past(rig)
    tools = [n for n, m in enumerate(messages) if m["role"] == "tool"][:upto_calls]
    kept = messages[: tools[-1] + 1]
    for n, result in zip(tools[-len(results) :], results, strict=True):
        kept[n] = kept[n] | {"content": result}
    return next_move([*kept, {"role": "user", "content": "continue"}])


async def test_what_may_have_run_is_looked_into_and_what_did_not_is_done(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    await rig.ask(PROJECT)
    move = _steps(rig, 5, ["created wordcount/__init__.py", MAY_HAVE_RUN, DID_NOT_RUN])
    assert move.calls == (("read", {"path": "test_wordcount.py"}),)
    assert "not known" in move.text
    move = _steps(rig, 5, [DID_NOT_RUN, DID_NOT_RUN, DID_NOT_RUN])
    assert [name for name, _ in move.calls] == ["write"] * 3
    move = _steps(rig, 6, [MAY_HAVE_RUN])
    assert move.calls == (("list", {"path": "."}),)
    move = _steps(rig, 6, ["The user said no: not now"])
    assert "was refused: The user said no: not now" in move.text
    assert move.calls == ()
    move = _steps(rig, 6, ["bash: python3: command not found"])
    assert "could not run" in move.text


async def test_a_command_of_the_user_is_never_run_twice_by_itself(tmp_path: Path) -> None:
    rig = await new(tmp_path)
    await rig.ask("run `echo x >> counter`")
    move = _steps(rig, 1, [MAY_HAVE_RUN])
    assert move.calls == ()
    assert "not known" in move.text


def test_a_past_that_is_no_script_of_ours() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "magic", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": PROJECT},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    move = next_move(messages)
    assert move.calls == ()
    assert "none of my scripts" in move.text


async def test_a_body_that_is_not_ours() -> None:
    with pytest.raises(RequestRejected):
        [item async for item in DemoModel(clock=FakeClock()).stream(b"{}")]
