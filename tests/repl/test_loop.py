"""The loop and its parts without a terminal: a piped keyboard, an engine on memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from agentsh.base.errors import LogWriteFailed, ModelKeyMissing, UsageProblem
from agentsh.base.palette import Palette
from agentsh.context.state import SessionState
from agentsh.events.turn import TurnFinished, UserMessage
from agentsh.models.scripted import Say
from agentsh.repl import commands
from agentsh.repl.history import TypedHistory
from agentsh.repl.loop import Repl, run_repl
from agentsh.repl.prompt import Prompt
from agentsh.repl.reflow import wraps_anew
from agentsh.repl.status import status_line
from agentsh.repl.terminal import ReplIO, typed_text
from tests.engine import rig


@dataclass
class NoScreen:
    """Notes what the loop asks of a screen."""

    log: list[str] = field(default_factory=list)

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        self.log.append(palette.name if palette else f"colour {colour}")

    def tick(self) -> None:
        """Nothing moves."""

    def close(self) -> None:
        self.log.append("close")


@contextmanager
def piped() -> Iterator[tuple[PipeInput, ReplIO]]:
    with create_pipe_input() as keys:
        yield keys, ReplIO(NoScreen(), input=keys, output=DummyOutput(), models=("a", "b"))


@asynccontextmanager
async def talking(moves: list[Any], io: ReplIO) -> AsyncIterator[tuple[rig.Rig, "asyncio.Task[int]"]]:
    r = await rig.new(moves)
    task = asyncio.create_task(run_repl(r.session, io))
    try:
        yield r, task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def said(r: rig.Rig) -> list[str]:
    return [str(fact.text) for fact in r.facts(UserMessage)]


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something to come true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - whatever it is has no event
            await asyncio.sleep(0.01)


def ended(r: rig.Rig) -> int:
    return len(r.facts(TurnFinished))


async def test_messages_go_to_the_session_and_exit_leaves() -> None:
    with piped() as (keys, io):
        io.first_text = "zero"
        async with talking([Say(("a",)), Say(("b",)), Say(("c",))], io) as (r, task):
            keys.send_text("one\r")
            keys.send_text("\x1b[200~two\rlines\x1b[201~\r")
            await until(lambda: ended(r) == 3)
            keys.send_text("   \r/exit\r")
            assert await asyncio.wait_for(task, 30) == 0
            assert said(r) == ["zero", "one", "two\nlines"]
    screen = io.screen
    assert isinstance(screen, NoScreen)
    assert screen.log[-1] == "close"


async def test_what_could_not_be_saved_is_said_and_given_back() -> None:
    with piped() as (keys, io):
        r = await rig.new([Say(("a",))])
        repl = Repl(r.session, io)
        fails = [LogWriteFailed("no space left on device", hint="free some")]
        failed = asyncio.Event()
        submit = r.session.submit

        async def full_disk_once(text: str, *more: Any, **options: Any) -> Any:
            if fails:
                failed.set()
                raise fails.pop()
            return await submit(text, *more, **options)

        r.session.submit = full_disk_once  # type: ignore[method-assign]
        task = asyncio.create_task(repl.run())
        keys.send_text("keep me\r")
        await asyncio.wait_for(failed.wait(), 30)
        await asyncio.sleep(0.1)
        keys.send_text("!\r")
        await until(lambda: ended(r) == 1)
        keys.send_text("\x04")
        await asyncio.wait_for(task, 30)
        assert said(r) == ["keep me!"]
        await r.session.close()


@pytest.mark.parametrize("ends_first", [False, True])
async def test_what_was_sent_before_an_interruption_comes_back_though_it_is_recorded_after(ends_first: bool) -> None:
    with piped() as (keys, io):
        r = await rig.new([Say(("a",), (("hang", {}),)), Say(("fine",))])
        repl = Repl(r.session, io)
        prompt = repl._prompt
        assert isinstance(prompt, Prompt)
        queue, interrupt, stopped = r.session.queue, r.session.interrupt, asyncio.Event()

        async def slow_disk(text: str, **more: Any) -> int:
            keys.send_text("\x03")
            await stopped.wait()
            if ends_first:
                await until(lambda: ended(r) == 1)
                await asyncio.sleep(0.05)
            return await queue(text, **more)

        def noted() -> bool:
            stopped.set()
            return interrupt()

        r.session.queue, r.session.interrupt = slow_disk, noted  # type: ignore[method-assign]
        task = asyncio.create_task(repl.run())
        keys.send_text("go\r")
        await until(lambda: r.session.state.turn is not None)
        keys.send_text("follow-up\r")
        await until(lambda: ended(r) == 1 and prompt.buffer.text == "follow-up")
        assert said(r) == ["go"]
        r.session.queue = queue  # type: ignore[method-assign]  # an ended turn may still tidy up, and then this queues
        keys.send_text("\r")
        await until(lambda: ended(r) == 2)
        assert said(r) == ["go", "follow-up"]
        keys.send_text("\x04")
        await asyncio.wait_for(task, 30)
        await r.session.close()


async def test_an_error_of_the_model_leaves_the_loop_up() -> None:
    with piped() as (keys, io):
        async with talking([ModelKeyMissing("no key"), Say(("fine",))], io) as (r, task):
            keys.send_text("one\r")
            await until(lambda: ended(r) == 1)
            keys.send_text("two\r")
            await until(lambda: ended(r) == 2)
            keys.send_text("\x04")
            assert await asyncio.wait_for(task, 30) == 0
            assert said(r) == ["one", "two"]


async def test_a_closed_keyboard_leaves() -> None:
    with piped() as (keys, io):
        async with talking([], io) as (_, task):
            await asyncio.sleep(0.05)
            keys.close()
            assert await asyncio.wait_for(task, 30) == 0


async def test_model_and_unknown_commands() -> None:
    with piped() as (_, io):
        r = await rig.new([])
        context = commands.SlashContext(r.session, io)
        assert "known: a, b" in "\n".join((await commands.run("model", "", context)).rows)
        await commands.run("model", "b", context)
        assert r.session.state.model == "b"
        assert (await commands.run("model", "b", context)).rows == ["  model: b, as before"]
        for wrong, near in (("modell", "model"), ("undo", "rewind"), ("quit", "exit"), ("new", "clear")):
            rows = (await commands.run(wrong, "", context)).rows
            assert rows == [f"there is no /{wrong}; did you mean /{near}?"]
        assert (await commands.run("foo", "", context)).rows == ["there is no /foo; see /help"], "not /todo"
        assert {*commands._ELSEWHERE.values()} <= {*commands.COMMANDS} - {*commands._ELSEWHERE}
        assert (await commands.run("zzz", "", context)).rows == ["there is no /zzz; see /help"]
        for name in commands.COMMANDS:
            with contextlib.suppress(UsageProblem):  # some need an application around them
                await commands.run(name, "", context)
        await r.session.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/help", ("help", "")),
        ("/Model  gpt-5 ", ("model", "gpt-5")),
        ("/etc/hosts", None),
        ("/etc/hosts is broken", None),
        ("hello /help", None),
        ("/help\nme", None),
    ],
)
def test_what_is_a_command(text: str, found: tuple[str, str] | None) -> None:
    assert commands.find(text) == found


def test_history(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = TypedHistory(file)
    for text in ("one", "two\nlines", "two\nlines", "lone \ud800", "\x1b[2J"):
        history.store_string(text)
    assert list(TypedHistory(file).load_history_strings()) == ["\x1b[2J", "lone ?", "two\nlines", "one"]
    assert list(TypedHistory(tmp_path).load_history_strings()) == []  # a directory
    TypedHistory(tmp_path).store_string("no error")


def test_typed_bytes_that_are_no_text() -> None:
    assert typed_text("a\udcffb\udce4\udcbf\udcae") == "a\ufffdb修"
    assert typed_text("a\ud83d\r\nb\rc\x00") == "a?\nb\nc"


def test_status_line_keeps_the_id() -> None:
    state = SessionState(id=rig.ID, model="gpt-5", mode="auto")
    assert status_line(state, "bwrap", 80, 100_000) == f"bwrap · auto · gpt-5 · {rig.ID}"
    assert status_line(state, "none", 40, 100_000) == f"unsandboxed · auto · {rig.ID}"
    assert status_line(state, "none", 32, 100_000) == f"unsandboxed · {rig.ID}"
    assert status_line(state, "none", 20, 100_000) == rig.ID
    assert status_line(state, "bwrap", 80, 100_000, 75.0) == f"bwrap · auto · gpt-5 · 1 m 15 s · {rig.ID}"


@pytest.mark.parametrize(
    ("environment", "known"),
    [({"TERM": "xterm-256color"}, False), ({"TMUX": "x"}, True), ({"TERM": "tmux-256color"}, True), ({}, False)],
)
def test_only_terminals_known_for_it_are_taken_to_wrap_old_rows_anew(
    environment: dict[str, str], known: bool
) -> None:
    assert wraps_anew(environment) is known


async def test_commands_that_change_the_session() -> None:
    with piped() as (_, io):
        r = await rig.new([])
        context = commands.SlashContext(r.session, io)

        async def run(line: str) -> str:
            name, _, argument = line.partition(" ")
            return "\n".join((await commands.run(name, argument, context)).rows)

        assert "▸" in await run("mode")
        await run("mode plan")
        assert r.session.state.mode == "plan"
        assert await run("mode plan") == "  mode: plan, as before"
        with pytest.raises(UsageProblem, match="no mode"):
            await run("mode nonsense")
        await run("rename A new   title")
        assert r.session.state.title == "A new title"
        assert await run("rename") == "  title: A new title"
        assert "b, c" in await run("tag b c")
        assert "tags: c " in await run("tag -b")
        assert r.session.state.tags == ("c",)
        assert "bytes in each request" in await run("tools")
        assert "tokens in" in await run("cost")
        assert "Alt-Enter" in await run("help keys")
        await r.session.close()
