"""Compaction in a session: what is asked, recorded, told and kept, whatever the model does."""

import json

import pytest

from agentsh.base.errors import ContextOverflow, ModelError, ModelUnavailable, StreamCut
from agentsh.context.fold import fold
from agentsh.engine.step import StepSettings
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryTried
from agentsh.events.turn import ContextBuilt
from agentsh.models.scripted import Move
from agentsh.render.words import compacted
from agentsh.testing import Say
from tests.engine.summing import BUDGET, GOOD, assert_requests_are_rebuilt, is_summary, logged, sent, talking


async def test_a_long_session_compacts_itself_and_goes_on() -> None:
    """G126, G129, G135, G136: recorded after success, the system prompt stays, sizes are those of the new request."""
    rig, model = await talking([GOOD], turns=12)
    async with rig.session:
        (first, *_) = rig.facts(Compaction)
        assert (first.by, first.made, first.tries, first.error) == ("auto", "model", 1, None)
        assert first.tokens_before is not None
        assert first.tokens_after is not None
        assert first.tokens_before > 0.8 * BUDGET
        assert first.tokens_after <= 0.6 * BUDGET
        assert rig.session.state.compaction is not None
        messages = sent(model)
        assert messages[0]["text"] == "You are a test."
        assert "The number is 41." in messages[1]["text"]
        assert messages[-1]["text"].startswith("question 11")
        built = [f for f in rig.facts(ContextBuilt) if f.summary is None]
        after = next(e for e in rig.screen.events if isinstance(e.fact, Compaction)).seq
        size = next(e.fact for e in rig.screen.events if e.seq > after and isinstance(e.fact, ContextBuilt))
        assert size.tokens == first.tokens_after, "what the next request holds is what was told"
        assert all(f.tokens <= BUDGET for f in built)
        assert not any(f.cut for f in built)
    assert assert_requests_are_rebuilt(rig) == len(model.asked)
    assert fold(logged(rig)) == rig.session.state
    assert f"{compacted(first)}".startswith("compacted ")


async def test_the_request_for_a_summary_is_the_next_request_and_one_message() -> None:
    rig, model = await talking([GOOD], turns=30, budget_tokens=16_000)
    async with rig.session:
        at = next(n for n, body in enumerate(model.requests) if is_summary(json.loads(body)))
        before, asked = json.loads(model.requests[at - 1]), json.loads(model.requests[at])
        assert asked["messages"][: len(before["messages"])] == before["messages"]
        assert len(asked["messages"]) == len(before["messages"]) + 3, "the answer, the new prompt, the wish"


async def test_it_takes_little_and_pays_for_each_try() -> None:
    """G120: a summary that does not shrink is tried three times at most; then the log serves, and it goes on."""
    long = Say((GOOD.pieces[0] * 200 + GOOD.pieces[1],))
    rig, model = await talking([long], turns=20)
    async with rig.session:
        facts = rig.facts(Compaction)
        assert facts[0].made == "mechanical"
        assert (facts[0].tries, facts[0].error) == (3, "the model's summary was too long")
        assert len(model.asked) == 3, "after three failures in a row it is not asked again by itself"
        assert all(f.made == "mechanical" for f in facts)
        assert "not asked, after 3 failures" in str(facts[1].error)
        words = [int(str(r["messages"][-1]["text"]).rsplit("limit of ", 1)[-1].split()[0]) for r in model.asked[1:]]
        assert words == sorted(words, reverse=True)
        tried = rig.facts(SummaryTried)
        assert [t.usage is not None and t.cost_usd is not None for t in tried] == [True] * 3
        assert rig.session.state.totals.cost_usd is not None
        spent = sum(t.cost_usd or 0 for t in tried)
        assert rig.session.state.totals.cost_usd > spent > 0
        assert (await rig.session.compact("with care")) in ("done", "unneeded"), "the user can have it asked again"
        assert len(model.asked) in (3, 6)
    assert assert_requests_are_rebuilt(rig) == len(model.asked)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ModelUnavailable("the server answered 500"), 1),
        (ModelError("no API key"), 1),
        (StreamCut("the stream was cut"), 3),
        (ContextOverflow("too long"), 3),
    ],
)
async def test_a_model_that_fails_is_replaced_by_the_log_and_told_in_one_line(error: ModelError, tries: int) -> None:
    rig, model = await talking([error], turns=11)
    async with rig.session:
        fact = rig.facts(Compaction)[0]
        assert (fact.made, fact.tries, fact.error) == ("mechanical", tries, error.message)
        assert len(model.asked) == tries
        assert (await rig.session.submit("go on")).reason == "done"
        assert "question 0" in sent(model)[1]["text"]
        line = compacted(fact)
        assert "\n" not in line
        assert error.message in line
        assert "/compact undo" in line
        if isinstance(error, ContextOverflow):
            sizes = [len(json.dumps(r)) for r in model.asked]
            assert sizes[2] < sizes[1] < sizes[0], "each is smaller"


@pytest.mark.parametrize("move", [Say(("ok",)), Say(), Say((), (("look", {"path": "x"}),))])
async def test_an_answer_that_is_no_summary_is_not_taken(move: Move) -> None:
    rig, model = await talking([move, GOOD], turns=11)
    async with rig.session:
        fact = rig.facts(Compaction)[0]
        assert (fact.made, fact.tries, len(rig.facts(SummaryTried))) == ("model", 2, 1)
        assert fact.error is not None
        assert rig.counter.runs == []
    assert assert_requests_are_rebuilt(rig) == len(model.asked)


async def test_undo_brings_the_very_request_back_and_is_left_alone() -> None:
    """G131. And what came since is there too."""
    rig, model = await talking([GOOD], turns=4)
    async with rig.session:
        await rig.session.submit("the one before")
        before = sent(model)
        assert await rig.session.compact("") == "done"
        assert (await rig.session.undo_compaction(), rig.facts(CompactionUndone) != []) == (True, True)
        await rig.session.submit("after")
        assert sent(model)[: len(before)] == before
        assert sent(model)[-1]["text"] == "after"
        assert not await rig.session.undo_compaction()
        log = [e.fact.type for e in logged(rig)]
        assert log.count("compaction") == log.count("compaction_undone") == 1


async def test_after_an_undo_it_waits_until_there_is_more() -> None:
    """G124: no second compaction at once, and no cut either."""
    rig, model = await talking([GOOD], turns=0)
    async with rig.session:
        while not rig.facts(Compaction):
            await rig.session.submit("question " + "q" * 900)
        first = rig.facts(Compaction)[0]
        assert await rig.session.undo_compaction()
        await rig.session.submit("short")
        assert len(rig.facts(Compaction)) == 1
        assert not any(f.cut for f in rig.facts(ContextBuilt))
        while len(rig.facts(Compaction)) == 1:
            await rig.session.submit("question " + "q" * 900)
        second = rig.facts(Compaction)[1]
        assert (second.tokens_before or 0) >= (first.tokens_before or 0) + 0.1 * BUDGET
        assert model.asked


async def test_not_so_soon_after_another_the_context_is_cut_instead() -> None:
    rig, model = await talking([GOOD], turns=3)
    async with rig.session:
        just_now = {"from_seq": 1, "upto_seq": 2, "summary": "x", "by": "auto", "made": "model"}
        await rig.journal.record(
            Compaction.model_validate({**just_now, "tokens_after": int(0.79 * BUDGET), "budget": BUDGET})
        )
        for _ in range(12):
            await rig.session.submit("question " + "q" * 300)
            if any(f.cut for f in rig.facts(ContextBuilt)):
                break
        assert (len(rig.facts(Compaction)), model.asked) == (1, [])


async def test_it_is_durable_before_anybody_sees_it() -> None:
    rig, _ = await talking([GOOD], turns=4)
    async with rig.session:
        synced: list[tuple[int, int]] = []
        rig.log.before_sync = lambda: synced.append((rig.log.last_seq, len(rig.facts(Compaction))))
        assert await rig.session.compact() == "done"
        seq = next(e.seq for e in rig.screen.events if isinstance(e.fact, Compaction))
        assert (seq, 0) in synced


async def test_wishes_are_recorded_and_sent() -> None:
    rig, model = await talking([GOOD], turns=4)
    async with rig.session:
        assert await rig.session.compact("mind the failing test") == "done"
        fact = rig.facts(Compaction)[0]
        assert (fact.by, fact.instructions) == ("user", "mind the failing test")
        assert "mind the failing test" in model.asked[0]["messages"][-1]["text"]


async def test_a_short_session_is_left_alone() -> None:
    rig, model = await talking([GOOD], turns=1)
    async with rig.session:
        assert await rig.session.compact() == "unneeded"
        assert (model.asked, rig.facts(Compaction)) == ([], [])


async def test_off_means_off_and_by_hand_it_still_works() -> None:
    """G122: where it is switched off the context is cut, never compacted."""
    rig, model = await talking([GOOD], turns=14, compacts=False)
    async with rig.session:
        assert (model.asked, rig.facts(Compaction)) == ([], [])
        assert any(f.cut for f in rig.facts(ContextBuilt))
        assert await rig.session.compact() == "done"


async def test_a_bigger_model_goes_on_without_a_compaction() -> None:
    """G122, second half: nothing remembers that one was due."""
    rig, model = await talking([GOOD], turns=7)
    async with rig.session:
        rig.step.use(model, StepSettings(100_000))
        await rig.session.submit("q" * 3_000)
        await rig.session.submit("q" * 3_000)
        assert (model.asked, rig.facts(Compaction)) == ([], [])


async def test_a_smaller_model_compacts_a_history_twice_its_window() -> None:
    """G125: the request for the summary fits the small window."""
    rig, model = await talking([GOOD], turns=30, budget_tokens=100_000)
    async with rig.session:
        rig.step.use(model, StepSettings(BUDGET))
        assert (await rig.session.submit("and now?")).reason == "done"
        (fact,) = rig.facts(Compaction)
        assert (fact.made, (fact.tokens_before or 0) > 2 * BUDGET) == ("model", True)
        for built in rig.facts(ContextBuilt):
            assert built.tokens <= built.budget
        ask = next(f.summary for f in rig.facts(ContextBuilt) if f.summary)
        assert ask.item_bytes is not None
    assert assert_requests_are_rebuilt(rig) == 1
