"""Questions aside: asked of the context as it stands, recorded, counted, and in no later request."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentsh.context.repairs import NO_ANSWER
from agentsh.events.signals import TextDelta
from agentsh.events.turn import ContextBuilt, UserMessage
from agentsh.events.user import SideAnswer, SideQuestion, UserCommand
from agentsh.models.scripted import Say
from agentsh.ports.model import Streamed
from agentsh.testing import MemoryStore, ScriptedModel
from agentsh.workspace.local import LocalWorkspace
from tests.engine import rig
from tests.engine.test_user_command import until


def texts(r: rig.Rig, n: int = -1) -> list[str]:
    return [m["text"] for m in json.loads(r.model.requests[n])["messages"]]


class Slow(ScriptedModel):
    """Answers when it is told to. asked: set once it was."""

    def __init__(self, answer: str) -> None:
        super().__init__([Say((answer,))])
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        self.asked.set()
        await self.go_on.wait()
        async for item in super().stream(body):
            yield item


class Hanging(ScriptedModel):
    """Never answers. asked: set once it was."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = asyncio.Event()

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        self.asked.set()
        await asyncio.sleep(3600)
        yield TextDelta("never")


async def test_it_sees_the_context_and_leaves_no_trace_in_it() -> None:
    store = MemoryStore()
    r = await rig.new([Say(("one",)), Say(("aside",)), Say(("two",))], store=store)
    await r.session.submit("first")
    before = r.session.state.totals.usage
    answer = await r.session.ask_aside("what is a monad?")
    assert answer is not None
    assert answer.text == "aside"
    asked = texts(r)
    assert asked[:3] == [*texts(r, 0)[:2], "one"]
    assert asked[-1].endswith("what is a monad?")
    await r.session.submit("second")
    assert texts(r) == [*texts(r, 0), "one", "second"]
    assert r.session.state.totals.usage.prompt > before.prompt
    assert [f.text for f in r.facts(SideQuestion)] == ["what is a monad?"]
    built = [f for f in r.facts(ContextBuilt) if f.aside is not None]
    assert len(built) == 1
    await r.session.close()
    again = await rig.again(store, [Say(("three",))])
    await again.session.submit("third")
    assert texts(again) == [*texts(r), "two", "third"]
    await again.session.close()


async def test_what_went_wrong_is_recorded_and_costs_nobody_a_turn() -> None:
    r = await rig.new([], model=rig.CutModel())
    answer = await r.session.ask_aside("hello?")
    assert answer is not None
    assert answer.text == ""
    assert answer.error == "the stream was cut"
    assert not r.session.state.asides
    assert r.session.state.turn is None
    await r.session.close()


async def test_it_is_interrupted_and_that_is_recorded() -> None:
    model = Hanging()
    r = await rig.new([], model=model)
    asking = asyncio.create_task(r.session.ask_aside("are you there?"))
    await asyncio.wait_for(model.asked.wait(), 8)
    r.session.interrupt()
    assert await asking is None
    assert [a.error for a in r.facts(SideAnswer)] == ["interrupted"]
    await r.session.close()


@pytest.mark.parametrize("ticks", range(1, 12))
async def test_an_interruption_at_any_moment_leaves_no_question_open(ticks: int) -> None:
    r = await rig.new([], model=Hanging())
    asking = asyncio.create_task(r.session.ask_aside("are you there?"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    r.session.interrupt_asides()
    assert await asyncio.wait_for(asking, 8) is None
    await r.session.close()
    assert len(r.facts(SideAnswer)) == len(r.facts(SideQuestion))
    assert not r.session.state.asides


async def test_it_is_asked_beside_a_turn_that_goes_on() -> None:
    r = await rig.new([Say(("slowly",)), Say(("aside",))])
    turn = asyncio.create_task(r.session.submit("work"))
    answer = await r.session.ask_aside("meanwhile?")
    assert (await asyncio.wait_for(turn, 8)).reason == "done"
    assert answer is not None
    assert {a.text for a in r.facts(SideAnswer)} <= {"slowly", "aside"}
    assert [m.text for m in r.facts(UserMessage)] == ["work"]
    await r.session.close()


@pytest.mark.parametrize("what", ["command", "compact", "submit"])
async def test_what_is_closed_late_in_a_session_that_goes_on_is_not_a_question_aside(
    what: str, tmp_path: Path
) -> None:
    model = Slow("here I am")
    r = await rig.new([], model=model, place=LocalWorkspace(tmp_path, session=rig.ID))
    asking = asyncio.create_task(r.session.ask_aside("are you there?"))
    await asyncio.wait_for(model.asked.wait(), 8)
    await r.journal.record(UserCommand(command="true", joins=False, sandbox="none"))  # its end never came
    if what == "command":
        await r.session.run_command("true", joins=False)
    elif what == "compact":
        await r.session.compact()
    else:
        turn = asyncio.create_task(r.session.submit("go on"))
        await until(lambda: r.session.state.turn is not None)
        r.session.interrupt()
        assert (await turn).reason == "interrupted"
    assert r.session.state.command is None
    assert r.facts(SideAnswer) == []
    model.go_on.set()
    answer = await asyncio.wait_for(asking, 8)
    assert answer is not None
    assert [f.text for f in r.facts(SideAnswer)] == ["here I am"]
    await r.session.close()


async def test_a_question_without_an_answer_is_closed_at_the_next_opening() -> None:
    store = MemoryStore()
    r = await rig.new([], store=store)
    await r.journal.record(SideQuestion(text="lost?"), durable=True)
    await r.session.close()
    again = await rig.again(store, [])
    assert [a.error for a in again.facts(SideAnswer)] == [NO_ANSWER]
    assert not again.session.state.asides
    await again.session.close()
