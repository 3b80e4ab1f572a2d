"""A `!command` is what somebody typed, and nothing else; the loop on an engine on memory and a real workspace."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from agentsh.app.custom_commands import custom_commands
from agentsh.base.errors import UsageProblem
from agentsh.engine.session import Session
from agentsh.events.codec import decode
from agentsh.events.turn import TextQueued, TextWithdrawn
from agentsh.events.user import UserCommand, UserCommandEnded
from agentsh.models.scripted import Say
from agentsh.ports.model import Streamed
from agentsh.repl import commands
from agentsh.repl.backend import CustomCommand
from agentsh.repl.commands import SlashContext
from agentsh.repl.loop import Repl
from agentsh.repl.prompt import Prompt
from agentsh.repl.terminal import ReplIO
from agentsh.testing import MemoryStore, ScriptedModel
from agentsh.workspace.local import LocalWorkspace
from tests.engine import rig
from tests.repl.test_loop import NoScreen, ended, said, until

LOGO = "![logo](a.png) is broken"


class Paced(ScriptedModel):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__([Say((f"answer {n}",)) for n in range(9)])
        self.go_on = asyncio.Event()

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        await self.go_on.wait()
        async for item in super().stream(body):
            yield item


class CommandFiles(ReplIO):
    """With the command files of one directory."""

    directory: Path

    def custom(self) -> Mapping[str, CustomCommand]:
        found = custom_commands([(self.directory, True)])
        return {name: CustomCommand(*command) for name, command in found.items()}


class Talk:
    """One run of the loop."""

    def __init__(self, r: rig.Rig, model: Paced, keys: PipeInput, loop: Repl) -> None:
        self.r, self.model, self.keys, self._loop = r, model, keys, loop
        self.running = asyncio.create_task(loop.run())

    @property
    def _prompt(self) -> Prompt:
        assert isinstance(self._loop._prompt, Prompt)
        return self._loop._prompt

    @property
    def typed(self) -> str:
        return self._prompt.buffer.text

    @property
    def notice(self) -> str:
        rows = self._prompt.notice.rows(200, 20)
        return "\n".join(row if isinstance(row, str) else "".join(part[1] for part in row) for row in rows)

    def leave(self) -> None:
        self._loop.leave()

    async def shows(self, condition: Callable[["Talk"], object]) -> None:
        await until(lambda: self.running.done() or condition(self))
        if self.running.done():
            await self.running


@asynccontextmanager
async def talk(
    tmp_path: Path, first: str | None = None, *, typed: bool = False, store: MemoryStore | None = None
) -> AsyncIterator[Talk]:
    """A loop in `tmp_path`, whose /logo sends LOGO; resumed where a store is given."""
    (tmp_path / "commands").mkdir(exist_ok=True)
    (tmp_path / "commands" / "logo.md").write_text(LOGO)
    model, place = Paced(), LocalWorkspace(tmp_path, session=rig.ID)
    with create_pipe_input() as keys:
        io = CommandFiles(NoScreen(), input=keys, output=DummyOutput(), first_text=first, first_typed=typed)
        io.directory = tmp_path / "commands"
        if store is None:
            r = await rig.new([], model=model, place=place)
        else:
            r = await rig.again(store, [], model=model, place=place)
        loop = Talk(r, model, keys, Repl(r.session, io))
        try:
            yield loop
            loop.leave()
            await asyncio.wait_for(loop.running, 30)
        finally:
            loop.running.cancel()
            await asyncio.gather(loop.running, return_exceptions=True)
            await r.session.close()


async def test_the_first_prompt_of_the_command_line_is_a_message(tmp_path: Path) -> None:
    async with talk(tmp_path, "!touch ran") as t:
        t.model.go_on.set()
        await t.shows(lambda t: ended(t.r) == 1)
        assert said(t.r) == ["!touch ran"]
    assert not (tmp_path / "ran").exists()


async def test_one_that_was_typed_before_the_prompt_was_there_is_run(tmp_path: Path) -> None:
    async with talk(tmp_path, "!touch ran", typed=True) as t:
        await t.shows(lambda t: t.r.facts(UserCommandEnded))
    assert (tmp_path / "ran").exists()


async def test_the_text_of_a_command_file_is_a_message_at_once_and_where_it_waited(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text("/logo\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text("/logo\r")
        await t.shows(lambda t: t.r.facts(TextQueued))
        t.keys.send_text("!touch ran\r")
        await t.shows(lambda t: len(t.r.facts(TextQueued)) == 2)
        t.model.go_on.set()
        await t.shows(lambda t: t.r.facts(UserCommandEnded))
        assert said(t.r) == [LOGO, LOGO]
        assert [f.command for f in t.r.facts(UserCommand)] == ["touch ran"]
        assert [f.model_dump(exclude_unset=True).get("command") for f in t.r.facts(TextQueued)] == [None, True]
    assert (tmp_path / "ran").exists()


async def test_a_message_that_is_given_back_is_still_a_message(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text("/logo\r")
        await t.shows(lambda t: t.r.facts(TextQueued))
        t.keys.send_text("\x1b")
        await t.shows(lambda t: t.typed == " " + LOGO)
        t.model.go_on.set()
        t.keys.send_text("\r")
        await t.shows(lambda t: ended(t.r) == 2)
        assert said(t.r) == ["work", " " + LOGO]
        assert t.r.facts(UserCommand) == []


async def test_a_command_that_is_given_back_with_more_behind_it_is_not_run_with_that(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        for n, text in enumerate(("!touch ran", "rm is a word too"), 1):
            t.keys.send_text(text + "\r")
            await t.shows(lambda t, n=n: len(t.r.facts(TextQueued)) == n)  # type: ignore[misc]
        t.keys.send_text("\x1b")
        await t.shows(lambda t: len(t.r.facts(TextWithdrawn)) == 2 and t.typed)
        assert t.typed == " !touch ran\n\nrm is a word too"


async def test_a_text_of_an_older_log_that_waits_is_a_message(tmp_path: Path) -> None:
    store = MemoryStore()
    before = await rig.new([], store=store)
    await before.session.queue("!touch ran", steer=False)
    await before.session.close()
    assert b'"command"' not in next(r.raw for r in store.read(rig.ID) if decode(r).fact.type == "text_queued")
    async with talk(tmp_path, store=store) as t:
        t.model.go_on.set()
        t.keys.send_text("\r")
        await t.shows(lambda t: ended(t.r) == 1)
        assert said(t.r) == ["!touch ran"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("waits", [False, True])
async def test_a_secret_that_is_not_known_any_more_leaves_a_way_out(waits: bool, tmp_path: Path) -> None:
    command = "!echo ‹secret:00000000›"
    async with talk(tmp_path) as t:
        if waits:
            t.keys.send_text("work\r")
            await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text(command + "\r")
        if waits:
            await t.shows(lambda t: t.r.facts(TextQueued))
            t.model.go_on.set()
        await t.shows(lambda t: t.typed == command)
        assert not t.r.session.state.queue
        await t.shows(lambda t: "makes it known again" in t.notice)
        assert t.r.facts(UserCommand) == []


async def test_what_cannot_be_had_says_what_to_do() -> None:
    r = await rig.new([])
    context = SlashContext(r.session, ReplIO(NoScreen()))
    with pytest.raises(UsageProblem) as refused:
        await commands.run("diff", "", context)
    assert refused.value.hint == f"`agentsh resume {rig.ID}` has it"
    without = Session(replace(r.session._parts, asides=None))
    with pytest.raises(UsageProblem) as refused:
        await commands.run("btw", "why?", SlashContext(without, context.io))
    assert "send it as a message" in str(refused.value)
    await r.session.close()


async def test_compact_typed_while_an_ended_turn_tidies_up_waits_for_it(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        tidying, go_on = asyncio.Event(), asyncio.Event()

        async def slow(*_: object) -> None:
            tidying.set()
            await go_on.wait()

        t.r.session.announce = slow  # type: ignore[method-assign, assignment]
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text("/compact\r")
        await t.shows(lambda t: "when the turn has ended" in t.notice)
        t.model.go_on.set()
        await t.shows(lambda _: tidying.is_set())
        t.keys.send_text("/compact\r")
        await asyncio.sleep(0.05)
        assert t.notice == ""
        go_on.set()
        await t.shows(lambda t: "nothing was changed" in t.notice)


@pytest.mark.parametrize("typed", ["pdf x", "pdf", "PDF out here"])
async def test_a_form_that_there_is_not_is_no_name_of_a_file(typed: str, tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text(f"/export {typed}\r")
        await t.shows(lambda t: f"✗ /export {typed}: the forms are md, html, jsonl" in t.notice)


async def test_a_mark_without_a_command_is_not_sent(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        for mark in ("!", "!!", "! "):
            t.keys.send_text(f"{mark}\r")
            await t.shows(lambda t, mark=mark: f"  {mark.strip()}COMMAND runs it" in t.notice)  # type: ignore[misc]
            t.keys.send_text("\x1b")
            await t.shows(lambda t: not t.notice)
        assert said(t.r) == []
