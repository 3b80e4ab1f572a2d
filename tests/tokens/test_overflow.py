"""A request that the provider refuses for its length: taken back once, told in one line, and never a dead end."""

from pathlib import Path
from typing import Any

import pytest

from agentsh.base.errors import ContextOverflow
from agentsh.context.size import size_of
from agentsh.events.model import REFUSAL, WindowLearned
from agentsh.events.turn import ContextBuilt, TurnFinished
from agentsh.testing.server import PlainReply, ScriptedServer, call, error, forever, json_reply, reply
from tests.tokens.rig import Desk

FILLER = "The quick brown fox jumps over the lazy dog, again and again, until the page is full. " * 60
ANSWER = "It does. " * 200


def too_long(limit: int | None = None, asked: int | None = None) -> PlainReply:
    """Refuse as OpenAI does, or as a server that gives no number."""
    if limit is None:
        return error(400, "Your input exceeds the context window of this model.", code="context_length_exceeded")
    words = f"This model's maximum context length is {limit} tokens. However, your messages resulted in {asked}."
    return error(400, words, code="context_length_exceeded", type="invalid_request_error")


async def grown(desk: Desk, running: Any, turns: int = 6, said: str = FILLER) -> None:
    for n in range(turns):
        desk.server.extend(reply(ANSWER))
        assert (await running.session.submit(f"{n}: {said}")).reason == "done"


@pytest.mark.parametrize(("limit", "asked"), [(4_000, 9_000), (4_000, None), (None, None)])
async def test_one_cut_is_taken_recorded_and_told(tmp_path: Path, limit: int | None, asked: int | None) -> None:
    with ScriptedServer() as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            await grown(desk, running)
            before = size_of(running.session.state).tokens
            server.extend(too_long(limit, asked), reply("Here I am."))
            outcome = await running.session.submit("And now?")
            assert outcome.reason == "done"
            assert size_of(running.session.state).tokens < before * 0.6
        bodies = [r for r in server.requests if r.method == "POST"]
        refused, shorter = bodies[-2:]
        assert len(shorter.body) < len(refused.body) * 0.6
        assert shorter.messages[-1]["content"].endswith("And now?")
        assert [p for r in bodies for p in r.problems] == []
    (learned,) = desk.facts(WindowLearned)
    assert (learned.model, learned.source) == ("scripted", REFUSAL)
    assert learned.window == (limit or desk.facts(ContextBuilt)[-2].tokens)
    cuts = [f.cut for f in desk.facts(ContextBuilt) if f.cut is not None]
    assert len(cuts) == 1
    assert ("takes 4,000 tokens" if limit else "refused a request of about") in cuts[0].reason
    assert [f.reason for f in desk.facts(TurnFinished)] == ["done"] * 7


async def test_what_was_learned_holds_for_the_next_requests_and_after_a_resume(tmp_path: Path) -> None:
    with ScriptedServer(max_context_tokens=6_000) as server:  # four bytes a token, as the provider counts
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            await grown(desk, running, turns=8)
            assert len(desk.facts(WindowLearned)) == 1
            assert running.session.budget_tokens == 6_000 - 1_000
            await grown(desk, running, turns=6)
        async with desk.again() as running:
            assert running.session.budget_tokens == 5_000
            await grown(desk, running, turns=6)
        refused = [r for r in server.requests if r.problems]
        assert len(refused) == 1, "a second one would mean that nothing was learned"
    assert all(f.reason == "done" for f in desk.facts(TurnFinished))


async def test_the_second_refusal_ends_the_turn_with_ways_on(tmp_path: Path) -> None:
    """G127: never a dead end."""
    with ScriptedServer() as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            await grown(desk, running, turns=12, said=FILLER[:900])
            server.extend(too_long(8_000, 9_000), too_long(8_000, 8_100))
            outcome = await running.session.submit("And now?")
            assert outcome.reason == "error"
            assert isinstance(outcome.error, ContextOverflow)
            assert "even shortened" in outcome.error.message
            for way in ("/model", "/compact"):
                assert way in (outcome.error.hint or "")
            assert "\n" not in str(outcome.error)
            server.extend(reply("I am back."))
            assert (await running.session.submit("And now?")).reason == "done", "the session goes on"
    assert len([r for r in server.requests if r.method == "POST"]) == 12 + 2 + 1


async def test_where_nothing_can_be_left_out_it_is_said(tmp_path: Path) -> None:
    with ScriptedServer([too_long(2_000, 2_500)]) as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            outcome = await running.session.submit("hello " + "x y z " * 900)
        assert outcome.reason == "error"
        assert isinstance(outcome.error, ContextOverflow)
        assert "/model" in (outcome.error.hint or "")
        assert len(server.requests) == 1


async def test_a_larger_model_goes_on_without_anything_left_over(tmp_path: Path) -> None:
    """G122: no second cut, no compaction, the budget of the new model."""
    profiles: dict[str, dict[str, Any]] = {
        "big": {"context_window": 200_000, "model": "big"},
        "small": {"context_window": 8_000},
    }
    with ScriptedServer() as server:
        for profile in profiles.values():
            profile["base_url"] = server.base_url
        desk = Desk(tmp_path, server, "small", models=profiles)
        async with desk.new() as running:
            server.extend(reply(ANSWER), too_long(4_000, 9_000), too_long(4_000, 4_100))
            await running.session.submit(FILLER)
            assert (await running.session.submit("and?")).reason == "error"
            small = running.session.budget_tokens
            built = len(desk.facts(ContextBuilt))
            await running.session.set_model("big")
            assert running.session.budget_tokens == 200_000 - 25_000 > small
            await grown(desk, running, turns=8)
            later = desk.facts(ContextBuilt)[built:]
            assert len(later) == 8
            assert all(f.cut is None and f.summary is None for f in later)
            assert later[-1].tokens > 8_000
            await running.session.set_model("small")
            assert running.session.budget_tokens == small, "what was learned of it is not forgotten"
    assert server.failures == []


async def test_an_overflow_in_the_middle_of_a_turn_keeps_its_calls_together(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            await grown(desk, running, turns=5)
            server.extend(
                reply(calls=[call("shell", {"command": "echo one"})]),
                too_long(4_000, 9_000),
                reply("Both are there."),
            )
            assert (await running.session.submit("run it")).reason == "done"
        assert server.failures == []
        last = [r for r in server.requests if r.method == "POST"][-1].messages
        assert [m["role"] for m in last][-2:] == ["assistant", "tool"]


async def test_an_overflow_told_inside_a_stream_counts_too(tmp_path: Path) -> None:
    body = {"error": {"message": "request (9000 tokens) exceeds the available context size (4000 tokens)",
                      "type": "exceed_context_size_error", "n_ctx": 4000, "n_prompt_tokens": 9000}}  # fmt: skip
    with ScriptedServer() as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            await grown(desk, running, turns=5)
            server.extend(json_reply(body), reply("Fine."))
            assert (await running.session.submit("and?")).reason == "done"
    (learned,) = desk.facts(WindowLearned)
    assert (learned.window, learned.request_tokens) == (4_000, 9_000)


async def test_other_refusals_are_not_taken_for_one(tmp_path: Path) -> None:
    with ScriptedServer([forever(error(400, "The model is not allowed to do this."))]) as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            assert (await running.session.submit(FILLER)).reason == "error"
        assert len(server.requests) == 1
    assert desk.facts(WindowLearned) == []
