"""Retries: how often, how long, for what, and what the server gets."""

from agentsh.base.errors import ModelUnavailable, StreamCut, StreamGarbled
from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta
from agentsh.ports.model import Reply
from agentsh.testing.server import Cut, ScriptedServer, cut_stream, error, forever, malformed, refusing, reply
from tests.models.wire import chat, failure, retrying, streamed


async def test_two_429_then_200() -> None:
    with ScriptedServer([error(429), error(429), reply("ok")]) as server:
        async with chat(server.base_url) as inside:
            model, clock = retrying(inside)
            items = await streamed(model)
    assert [type(item) for item in items] == [Retrying, Retrying, TextDelta, Reply]
    waits = [item for item in items if isinstance(item, Retrying)]
    assert [(w.attempt, w.max_attempts, w.delay_s) for w in waits] == [(1, 4, 0.5), (2, 4, 1.0)]
    assert "Rate limit" in waits[0].reason
    assert clock.monotonic_s() == 1.5
    assert len({request.body for request in server.requests}) == 1


async def test_500_for_ever_is_five_requests() -> None:
    with ScriptedServer([forever(error(500))]) as server:
        async with chat(server.base_url) as inside:
            model, clock = retrying(inside, jitter=1.0)
            broken = await failure(model)
    assert isinstance(broken.error, ModelUnavailable)
    assert "gave up after 5 tries" in broken.error.message
    assert len(server.requests) == 5
    assert [w.delay_s for w in broken.retries] == [1.0, 2.0, 4.0, 8.0]
    assert clock.monotonic_s() == 15.0


async def test_retry_after_is_honoured_up_to_a_minute() -> None:
    slow = [error(429, headers={"Retry-After": "60"}), error(503, headers={"retry-after-ms": "1500"})]
    slow += [error(429, headers={"Retry-After": "0"}), error(429, headers={"Retry-After": "61"})]
    with ScriptedServer(slow) as server:
        async with chat(server.base_url) as inside:
            model, clock = retrying(inside)
            broken = await failure(model)
    assert [w.delay_s for w in broken.retries] == [60.0, 1.5, 0.5]
    assert clock.monotonic_s() == 62.0
    assert isinstance(broken.error, ModelUnavailable)
    assert "asked to wait 61 s" in broken.error.message
    assert broken.error.retry_after_s == 61


async def test_a_stream_that_is_cut_before_text_is_sent_again() -> None:
    with ScriptedServer([cut_stream(), cut_stream(how="rst"), reply("ok")]) as server:
        async with chat(server.base_url) as inside:
            items = await streamed(retrying(inside)[0])
    assert [type(item) for item in items] == [Retrying, Retrying, TextDelta, Reply]


async def test_a_stream_that_is_cut_after_text_is_not() -> None:
    with ScriptedServer([cut_stream("half")]) as server:
        async with chat(server.base_url) as inside:
            broken = await failure(retrying(inside)[0])
    assert isinstance(broken.error, StreamCut)
    assert (broken.text, broken.retries, len(server.requests)) == ("half", [], 1)


async def test_reasoning_alone_may_be_sent_again() -> None:
    with ScriptedServer([reply(reasoning="hm", then=[Cut()]), reply("ok", reasoning="aha")]) as server:
        async with chat(server.base_url) as inside:
            items = await streamed(retrying(inside)[0])
    assert [type(item) for item in items] == [ReasoningDelta, Retrying, ReasoningDelta, TextDelta, Reply]
    assert isinstance(items[-1], Reply)
    assert items[-1].reasoning == "aha"


async def test_what_no_retry_heals_is_asked_once() -> None:
    for status in (400, 401, 403, 404, 413, 422):
        with ScriptedServer([error(status)]) as server:
            async with chat(server.base_url) as inside:
                broken = await failure(retrying(inside)[0])
        assert (broken.retries, len(server.requests)) == ([], 1)


async def test_garbage_is_asked_for_only_once_more() -> None:
    with ScriptedServer([forever(malformed())]) as server:
        async with chat(server.base_url) as inside:
            broken = await failure(retrying(inside)[0])
    assert isinstance(broken.error, StreamGarbled)
    assert len(server.requests) == 2
    assert broken.error.hint


async def test_a_refused_connection_is_tried_again() -> None:
    with refusing() as url:
        async with chat(url) as inside:
            broken = await failure(retrying(inside)[0])
    assert isinstance(broken.error, ModelUnavailable)
    assert len(broken.retries) == 4
    assert "connection refused" in broken.error.message
