"""Compaction and what comes between: queued text, interruptions, kills, a full disk, a resume."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agentsh.base.errors import LogError, ModelUnavailable, UsageProblem
from agentsh.context.fold import fold
from agentsh.engine.turn import Limits
from agentsh.events.codec import decode
from agentsh.events.compaction import Compaction
from agentsh.events.turn import TodoChanged, UserMessage
from agentsh.log.record import Draft
from agentsh.ports.model import Streamed
from agentsh.testing import MemoryStore, Say, ScriptedModel
from tests.engine.rig import ID, again, new
from tests.engine.summing import (
    BUDGET,
    GOOD,
    SummingModel,
    is_summary,
    logged,
    sent,
    talking,
)


async def test_what_was_queued_survives_and_joins() -> None:
    """G133."""
    rig, model = await talking([GOOD], turns=7)
    async with rig.session:
        model.go_on.clear()
        turn = asyncio.create_task(rig.session.submit("question " + "q" * 2_500))
        await asyncio.wait_for(model.waiting.wait(), 30)
        await rig.session.queue("steer me", steer=True)
        later = await rig.session.queue("and later this", steer=False)
        model.go_on.set()
        await turn
        assert len(rig.facts(Compaction)) == 1
        assert sent(model)[-1]["text"] == "steer me"
        assert list(rig.session.state.queue) == [later]


async def test_a_resume_that_compacts_has_stored_its_prompt_first() -> None:
    """G134."""
    rig, _ = await talking([GOOD], turns=7, budget_tokens=100_000)
    await rig.session.close()
    model = SummingModel([ModelUnavailable("down")])
    rig2 = await again(rig.store, [], model=model, budget_tokens=4_000)
    async with rig2.session:
        await rig2.session.submit("the new prompt")
    facts = [e.fact for e in logged(rig)]
    prompt = next(n for n, f in enumerate(facts) if isinstance(f, UserMessage) and f.text == "the new prompt")
    assert prompt < next(n for n, f in enumerate(facts) if isinstance(f, Compaction))
    assert sent(model)[-1]["text"] == "the new prompt"


@pytest.mark.parametrize("by_hand", [True, False])
async def test_an_interruption_leaves_everything_as_it_was(by_hand: bool) -> None:
    rig, model = await talking([GOOD], turns=7)
    async with rig.session:
        model.go_on.clear()
        before = rig.session.state.context_from
        work = rig.session.compact() if by_hand else rig.session.submit("question " + "q" * 2_500)
        task: asyncio.Task[Any] = asyncio.create_task(work)
        await asyncio.wait_for(model.waiting.wait(), 30)
        assert rig.session.interrupt()
        outcome = await task
        assert (outcome if by_hand else outcome.reason) == "interrupted"
        assert (rig.facts(Compaction), rig.session.state.compaction) == ([], None)
        assert (rig.session.state.context_from, rig.session.busy) == (before, False)
        model.go_on.set()
        assert (await rig.session.submit("go on")).reason == "done"
        assert fold(logged(rig)) == rig.session.state


@pytest.mark.parametrize("ticks", range(0, 60, 2))
async def test_an_interruption_at_any_moment_leaves_all_of_it_or_nothing(ticks: int) -> None:
    rig, model = await talking([GOOD], turns=4)
    async with rig.session:
        task = asyncio.create_task(rig.session.compact())
        for _ in range(ticks):
            await asyncio.sleep(0)
        rig.session.interrupt()
        outcome = await task
        assert (outcome == "done") == bool(rig.facts(Compaction)) == bool(rig.session.state.compaction)
        assert fold(logged(rig)) == rig.session.state
        assert (await rig.session.submit("go on")).reason == "done"
        assert model.requests


async def test_while_a_turn_runs_there_is_no_other_compaction() -> None:
    rig, model = await talking([GOOD], turns=7)
    async with rig.session:
        model.go_on.clear()
        turn = asyncio.create_task(rig.session.submit("question " + "q" * 2_500))
        await asyncio.wait_for(model.waiting.wait(), 30)
        with pytest.raises(UsageProblem):
            await rig.session.compact()
        with pytest.raises(UsageProblem):
            await rig.session.undo_compaction()
        model.go_on.set()
        await turn
        model.waiting.clear()
        model.go_on.clear()
        task = asyncio.create_task(rig.session.compact())
        await asyncio.sleep(0)
        with pytest.raises(UsageProblem):
            await rig.session.submit("now")
        model.go_on.set()
        await task


async def test_a_full_disk_leaves_no_half_of_it() -> None:
    rig, model = await talking([GOOD], turns=4)
    async with rig.session:
        model.go_on.clear()
        task = asyncio.create_task(rig.session.compact())
        await asyncio.wait_for(model.waiting.wait(), 30)
        rig.log.full = lambda drafts: True
        model.go_on.set()
        with pytest.raises(LogError):
            await task
        assert rig.session.state.compaction is None
        rig.log.full = lambda drafts: False
        assert await rig.session.compact() == "done"


async def test_a_process_killed_at_any_event_reopens_with_all_of_it_or_nothing() -> None:
    rig, _ = await talking([Say(("no",)), GOOD], turns=9)
    await rig.session.close()
    whole = list(rig.store.read(ID))
    seen = set()
    first = next(n for n, r in enumerate(whole) if decode(r).fact.type == "compaction")
    for keep in range(first - 5, first + 3):
        store = MemoryStore()
        log = await store.create(ID, by="test")
        await log.append([Draft(r.type, r.ts, r.payload, r.cause) for r in whole[:keep]])
        await log.close()
        model = SummingModel([GOOD])
        rig2 = await again(store, [], model=model, budget_tokens=BUDGET)
        async with rig2.session:
            seen.add(rig2.session.state.compaction is not None)
            assert (await rig2.session.submit("go on")).reason == "done"
            assert sent(model)[-1]["text"] == "go on"
    assert seen == {True, False}


async def test_the_todo_list_is_still_in_the_request() -> None:
    """G129."""
    rig, model = await talking([GOOD], turns=3)
    async with rig.session:
        todo = ({"text": "write the tests", "status": "in_progress"}, {"content": "ship it"})
        await rig.journal.record(TodoChanged(items=todo))
        assert await rig.session.compact() == "done"
        await rig.session.submit("go on")
        summary = sent(model)[1]["text"]
        assert "write the tests (in_progress)" in summary
        assert "ship it" in summary


async def test_a_turn_of_many_steps_compacts_in_its_middle_and_keeps_its_prompt() -> None:
    calls = (("look", {"path": "p" * 700}),)

    class Worker(SummingModel):
        async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
            if is_summary(json.loads(body)):
                async for item in super().stream(body):
                    yield item
                return
            self._moves = [Say(("w" * 600,), calls)]
            async for item in ScriptedModel.stream(self, body):
                yield item

    model = Worker([GOOD])
    rig = await new([], model=model, budget_tokens=BUDGET, limits=Limits(max_steps=40))
    async with rig.session:
        outcome = await rig.session.submit("the one prompt")
        assert outcome.reason == "max_steps"
        assert outcome.steps == 40, "a request for a summary is no step"
        assert len(rig.facts(Compaction)) >= 2
        for body in model.requests:
            texts = [m["text"] for m in json.loads(body)["messages"] if m["role"] == "user"]
            assert "the one prompt" in texts
