"""What is asked and loaded in the background: only when it matters, never waited for, and on record."""

import asyncio
from pathlib import Path

import pytest

from agentsh.context.size import cached_share, size_of
from agentsh.engine.scout import ASK_AT_TOKENS
from agentsh.events.model import WindowLearned
from agentsh.events.turn import ContextBuilt
from agentsh.testing.server import ScriptedServer, Usage, reply
from tests.tokens.rig import Desk

LONG = "The quick brown fox jumps over the lazy dog, again and again, until the page is full. " * 160
assert len(LONG) // 5 > 2_000


async def learned(desk: Desk, count: int = 1) -> list[WindowLearned]:
    for _ in range(400):
        if len(found := desk.facts(WindowLearned)) >= count:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was learned")


async def test_the_list_of_models_is_asked_once_it_matters_and_recorded(tmp_path: Path) -> None:
    with ScriptedServer(models=["scripted"], model_card={"max_model_len": 40_960}) as server:
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            server.extend(reply("short"), *[reply("ok")] * 3)
            await running.session.submit("hello")
            assert [r.path for r in server.requests] == ["/v1/chat/completions"], "nothing to learn for so little"
            assert running.session.budget_tokens == 112_000
            await running.session.submit(LONG)
            (fact,) = await learned(desk)
            assert (fact.model, fact.window, fact.source) == ("scripted", 40_960, "model list")
            assert running.session.budget_tokens == 40_960 - 5_120
            await running.session.submit("more")
            assert desk.facts(ContextBuilt)[-1].budget == 40_960 - 5_120
        async with desk.again() as running:
            assert running.session.budget_tokens == 40_960 - 5_120, "known from the log, before anybody is asked"
            await running.session.submit("again")
        assert len(desk.facts(WindowLearned)) == 1, "what is known is not recorded again"
    assert ASK_AT_TOKENS == 3_000


async def test_a_configured_window_wins_over_the_list(tmp_path: Path) -> None:
    with ScriptedServer([reply("ok")], models=["own"], model_card={"max_model_len": 40_960}) as server:
        profile = {"base_url": server.base_url, "context_window": 30_000}
        desk = Desk(tmp_path, server, "own", models={"own": profile})
        async with desk.new() as running:
            await running.session.submit(LONG)
            await learned(desk)
            assert running.session.budget_tokens == 30_000 - 3_750


async def test_a_list_that_is_slow_or_broken_holds_nothing_up(tmp_path: Path) -> None:
    with ScriptedServer([reply("ok")], api_key="sk-other") as server:  # the list is refused, and so is the request
        desk = Desk(tmp_path, server)
        async with desk.new() as running:
            assert (await running.session.submit(LONG)).reason == "error"
    with ScriptedServer([reply("ok"), reply("ok")]) as server:  # a list that says nothing of windows
        desk = Desk(tmp_path / "two", server)
        async with desk.new() as running:
            assert (await running.session.submit(LONG)).reason == "done"
            assert (await running.session.submit("more")).reason == "done"
        assert desk.facts(WindowLearned) == []


def loaded() -> bool:
    from agentsh.models import token_counter

    return bool(token_counter._LOADED)


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh.models.token_counter._LOADED", {})


@pytest.mark.usefixtures("nothing_loaded")
class TestRanks:
    async def test_they_are_loaded_near_a_mark_only(self, tmp_path: Path) -> None:
        with ScriptedServer() as server:
            desk = Desk(tmp_path, server, "gpt-5", context={"budget_tokens": 12_000})
            async with desk.new() as running:
                server.extend(reply("ok"), reply("ok"), reply("ok"))
                await running.session.submit("hello")
                assert not loaded(), "an estimate will do"
                await running.session.submit(LONG * 2)  # by the estimate within a fifth of the mark
                assert desk.facts(ContextBuilt)[-1].estimator in ("~pieces", "o200k")
                async with asyncio.timeout(60):  # beside the turns: a busy machine takes its time
                    while not loaded():  # noqa: ASYNC110 - a thread loads them
                        await asyncio.sleep(0.02)
                await running.session.submit(LONG)
            built = desk.facts(ContextBuilt)
            assert built[0].estimator == "~pieces"
            assert built[-1].estimator == "o200k"

    async def test_a_cut_is_not_taken_on_the_word_of_an_estimate(self, tmp_path: Path) -> None:
        """Japanese is a third above its true size by the estimate: that alone would take a cut."""
        page = "この関数は、与えられたリストの要素を昇順に並べ替えて返します。" * 300
        with ScriptedServer([reply("ok"), reply("ok")]) as server:
            desk = Desk(tmp_path, server, "gpt-5", context={"budget_tokens": 12_000})
            async with desk.new() as running:
                await running.session.submit("hello")
                await running.session.submit(page)
            (_, built) = desk.facts(ContextBuilt)
            assert built.estimator == "o200k"
            assert built.cut is None

    async def test_other_models_never_load_any(self, tmp_path: Path) -> None:
        with ScriptedServer([reply("ok")] * 3) as server:
            desk = Desk(tmp_path, server, "qwen3-coder", context={"budget_tokens": 9_000})
            async with desk.new() as running:
                for _ in range(3):
                    await running.session.submit(LONG)
            assert {f.estimator for f in desk.facts(ContextBuilt)} == {"~pieces"}
        assert not loaded()

    async def test_a_large_context_whose_tokens_were_reported_resumes_without_them(self, tmp_path: Path) -> None:
        with ScriptedServer() as server:
            desk = Desk(tmp_path, server, "gpt-5", context={"budget_tokens": 40_000})
            async with desk.new() as running:
                for n in range(8):
                    server.extend(reply("ok", usage=Usage(prompt=1_500 + 3_700 * n, completion=1, cached=1_000 * n)))
                    await running.session.submit(LONG[:6_000])
                assert not loaded(), "only the newest message was ever estimated"
            async with desk.again() as running:
                size = size_of(running.session.state)
                assert (size.tokens, size.exact) == (1_500 + 3_700 * 7 + 1, True)
                assert cached_share(running.session.state) == pytest.approx(7_000 / 27_400)
                server.extend(reply("ok", usage=Usage(prompt=28_000, completion=1)))
                await running.session.submit("now what?")
                assert not loaded()
            last = desk.facts(ContextBuilt)[-1]
            assert last.counted >= 27_400
            assert last.tokens < 27_400 + 100
