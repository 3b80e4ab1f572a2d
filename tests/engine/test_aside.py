"""Questions aside: asked of the context as it stands, recorded, counted, and in no later request."""

import asyncio
import json
from collections.abc import AsyncGenerator

from agentsh.context.repairs import NO_ANSWER
from agentsh.events.signals import TextDelta
from agentsh.events.turn import ContextBuilt, UserMessage
from agentsh.events.user import SideAnswer, SideQuestion
from agentsh.models.scripted import Say
from agentsh.ports.model import Streamed
from agentsh.testing import MemoryStore, ScriptedModel
from tests.engine import rig


def texts(r: rig.Rig, n: int = -1) -> list[str]:
    return [m["text"] for m in json.loads(r.model.requests[n])["messages"]]


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


async def test_it_is_asked_beside_a_turn_that_goes_on() -> None:
    r = await rig.new([Say(("slowly",)), Say(("aside",))])
    turn = asyncio.create_task(r.session.submit("work"))
    answer = await r.session.ask_aside("meanwhile?")
    assert (await asyncio.wait_for(turn, 8)).reason == "done"
    assert answer is not None
    assert {a.text for a in r.facts(SideAnswer)} <= {"slowly", "aside"}
    assert [m.text for m in r.facts(UserMessage)] == ["work"]
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
