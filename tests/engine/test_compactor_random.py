"""Random sessions with random models: whatever comes, requests are valid, fit, cost little and are rebuilt."""

import random
from typing import Any

import pytest

from agentsh.base.errors import ContextOverflow, ModelUnavailable, StreamCut
from agentsh.context import compaction
from agentsh.context.fold import fold
from agentsh.context.messages import build, messages_of
from agentsh.context.validate import problems
from agentsh.context.view import view_of
from agentsh.engine.step import StepSettings
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryTried
from agentsh.events.turn import ContextBuilt
from agentsh.models.scripted import Move
from agentsh.ports.texts import InlineTexts
from agentsh.testing import Say
from tests.engine.rig import again, new
from tests.engine.summing import GOOD, SummingModel, assert_requests_are_rebuilt, logged, sent, talking

TOO_LONG = Say((GOOD.pieces[0] * 300, GOOD.pieces[1]))


def a_move(chance: random.Random) -> Move:
    moves: list[Move] = [GOOD, GOOD, TOO_LONG, Say(("no",)), Say((), (("look", {}),))]
    return chance.choice([*moves, ModelUnavailable("down"), StreamCut("cut"), ContextOverflow("too long")])


@pytest.mark.parametrize("seed", range(12))
async def test_a_random_session_holds_every_promise(seed: int) -> None:
    chance = random.Random(seed)
    model = SummingModel([], chars=chance.randrange(100, 2_000))
    rig = await new([], model=model, budget_tokens=chance.choice([3_000, 6_000, 12_000]))
    async with rig.session:
        for _ in range(40):
            model.summaries = [a_move(chance) for _ in range(3)] + [GOOD]
            what = chance.random()
            if what < 0.75:
                outcome = await rig.session.submit("q" * chance.randrange(1, 1_500))
                assert outcome.reason == "done", outcome.error
            elif what < 0.85:
                await rig.session.compact("with care" if chance.random() < 0.5 else "")
            elif what < 0.92:
                before = rig.session.state.compaction
                undone = await rig.session.undo_compaction()
                assert undone == (rig.session.state.compaction is not before)
            else:
                budget = chance.choice([2_500, 6_000, 12_000])
                rig.step.use(model, StepSettings(budget, summarises=chance.random() < 0.8))
        events = logged(rig)
    asked_in_a_row = 0
    for event in events:
        fact: Any = event.fact
        if isinstance(fact, ContextBuilt):
            assert fact.tokens <= fact.budget
            asked_in_a_row = asked_in_a_row + 1 if fact.summary else 0
            assert asked_in_a_row <= 3, "three tries at most"
        elif isinstance(fact, Compaction):
            assert fact.tokens_after <= min(0.9 * fact.tokens_before, 0.6 * fact.budget)  # type: ignore[operator]
            asked_in_a_row = 0
    for n in range(0, len(events), 7):
        state = fold(events[:n])
        assert problems(messages_of(build(state, InlineTexts(), view_of(state)))) in (
            [],
            ["there is no user message"],
        )
    assert assert_requests_are_rebuilt(rig) == len(model.asked)
    kinds = [type(e.fact) for e in events]
    assert kinds.count(Compaction) > 2
    assert kinds.count(SummaryTried) + kinds.count(CompactionUndone) > 0


async def test_forty_compactions_and_the_newest_is_resumed_with() -> None:
    rig, model = await talking([GOOD], turns=0, chars=1_500, budget_tokens=3_000)
    n = 0
    while len(rig.facts(Compaction)) < 40:
        model.summaries = [Say((GOOD.pieces[0], GOOD.pieces[1], f" This is summary {len(model.asked) + 1}."))]
        await rig.session.submit(f"question {n}")
        n += 1
    await rig.session.close()
    events = logged(rig)
    model = SummingModel([GOOD])
    rig2 = await again(rig.store, [], model=model, budget_tokens=3_000)
    async with rig2.session:
        assert (await rig2.session.submit("go on")).reason == "done"
        texts = [m["text"] for m in sent(model)]
        assert "This is summary 40." in texts[1]
        assert not any("This is summary" in text for text in texts[2:])
        assert sum(map(len, texts)) < 3_000 * 4
        state = rig2.session.state
        needed = [item for item in state.talk if item.seq >= compaction.first_needed(state)]
        assert len(needed) < 20 < len(events) / 10, "what is needed does not grow with the log"
        assert await rig2.session.undo_compaction()
        assert state.compaction is not None
        assert "This is summary 39." in str(state.compaction.summary)


async def test_the_same_session_twice_is_the_same_log() -> None:
    """Determinism: the same inputs give the same requests and the same compactions."""

    async def once() -> tuple[list[bytes], list[Any]]:
        rig, model = await talking([Say(("no",)), GOOD], turns=12)
        await rig.session.close()
        return model.requests, [e.fact for e in logged(rig)]

    assert await once() == await once()
