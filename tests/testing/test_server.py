"""The scripted server as the official client sees it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentsh.testing.server import (
    CallDelta,
    Comment,
    EmptyChoices,
    Event,
    Finish,
    Gate,
    ModelReply,
    Pause,
    Reply,
    Request,
    ScriptedServer,
    Text,
    Together,
    Usage,
    call,
    forever,
    reply,
    stream_error,
)
from tests.testing.server_client import assembled, chunks, client, complete, reasons, texts


@pytest.mark.parametrize(
    ("text", "chunk", "pieces"),
    [
        ("Hello", None, ["Hello"]),
        ("修复测试", 3, ["修复测", "试"]),
        (["a", "bc", ""], None, ["a", "bc"]),
        ("", None, []),
    ],
)
async def test_text_arrives_in_fragments(text: Any, chunk: int | None, pieces: list[str]) -> None:
    with ScriptedServer([reply(text, chunk=chunk)]) as server:
        received = await chunks(server.base_url)
    assert texts(received) == pieces
    assert reasons(received) == ["stop"]
    assert received[0].choices[0].delta.role == "assistant"
    assert {chunk.model for chunk in received} == {"gpt-5"}


async def test_usage_is_the_last_chunk_and_only_on_request() -> None:
    usage = Usage(prompt=100, completion=20, cached=80, reasoning=5)
    with ScriptedServer([forever(reply("x", usage=usage))]) as server:
        asked = await chunks(server.base_url, stream_options={"include_usage": True})
        unasked = await chunks(server.base_url)
    assert asked[-1].choices == []
    assert (asked[-1].usage.prompt_tokens, asked[-1].usage.completion_tokens) == (100, 20)
    assert asked[-1].usage.prompt_tokens_details.cached_tokens == 80
    assert asked[-1].usage.completion_tokens_details.reasoning_tokens == 5
    assert [chunk.usage for chunk in asked[:-1]] == [None] * (len(asked) - 1)
    assert all(chunk.choices and chunk.usage is None for chunk in unasked)


async def test_usage_is_estimated_reduced_or_missing_as_scripted() -> None:
    plain = Usage(7, 3, details=False)
    with ScriptedServer([reply("abcde"), reply("x", usage=plain), reply("x", usage=None)]) as server:
        include = {"include_usage": True}
        estimated, reduced, missing = [await chunks(server.base_url, stream_options=include) for _ in range(3)]
        assert estimated[-1].usage.prompt_tokens == len(server.requests[0].body) // 4
    assert estimated[-1].usage.completion_tokens == 2
    assert reduced[-1].usage.total_tokens == 10
    assert reduced[-1].usage.prompt_tokens_details is None
    assert missing[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
async def test_reasoning_text_in_the_member_that_servers_use(member: Any) -> None:
    with ScriptedServer([forever(reply("yes", reasoning="hmm", chunk=2, reasoning_member=member))]) as server:
        received = await chunks(server.base_url)
        whole = await complete(server.base_url)
    deltas = [getattr(chunk.choices[0].delta, member, None) for chunk in received]
    assert [delta for delta in deltas if delta] == ["hm", "m"]
    assert getattr(whole.choices[0].message, member) == "hmm"


@pytest.mark.parametrize("interleaved", [False, True])
async def test_parallel_calls_arrive_in_fragments(interleaved: bool) -> None:
    calls = [
        call("shell", {"command": "ls ü"}, chunk=4),
        call(["re", "ad"], ['{"pa', 'th":"a"}'], id=["call", "_", "7"]),
    ]
    with ScriptedServer([reply("Both:", calls=calls, interleaved=interleaved)]) as server:
        received = await chunks(server.base_url)
    (_, fresh, name, arguments), second = assembled(received)
    assert (name, json.loads(arguments)) == ("shell", {"command": "ls ü"})
    assert fresh.startswith("call_")
    assert second == (1, "call_7", "read", '{"path":"a"}')
    assert reasons(received) == ["tool_calls"]
    order = [chunk.choices[0].delta.tool_calls[0].index for chunk in received if chunk.choices[0].delta.tool_calls]
    assert (order == sorted(order)) is not interleaved


async def test_fresh_ids_differ_between_requests_and_between_servers() -> None:
    ids = []
    for _ in range(2):
        with ScriptedServer([forever(reply(calls=[call("a"), call("b")]))]) as server:
            for _ in range(2):
                ids += [entry[1] for entry in assembled(await chunks(server.base_url))]
    assert len(set(ids)) == len(ids) == 8


async def test_several_parts_in_one_chunk_and_two_calls_with_one_index() -> None:
    together = Together((Text("x"), CallDelta(0, "c1", "a", "{}", starts=True), Finish("tool_calls")))
    same_index = reply(calls=[call("a", id="c1", index=0, whole=True), call("b", id="c2", index=0, whole=True)])
    with ScriptedServer([ModelReply(steps=(together,)), forever(same_index)]) as server:
        one = await chunks(server.base_url)
        two = await chunks(server.base_url)
        joined = await complete(server.base_url)
    assert len(one) == 2
    assert texts(one) == ["x"]
    assert assembled(one) == [(0, "c1", "a", "{}")]
    assert reasons(one) == ["tool_calls"]
    assert [delta.id for chunk in two for delta in chunk.choices[0].delta.tool_calls or []] == ["c1", "c2"]
    assert [made.function.name for made in joined.choices[0].message.tool_calls] == ["a", "b"]


async def test_completion_that_is_not_streamed_is_the_same_message() -> None:
    scripted = reply("Hello", chunk=1, calls=[call("shell", {"a": 1}, chunk=1, id="c9")], usage=Usage(3, 4))
    with ScriptedServer([scripted]) as server:
        completion = await complete(server.base_url)
    message = completion.choices[0].message
    assert (message.content, completion.choices[0].finish_reason) == ("Hello", "tool_calls")
    assert (message.tool_calls[0].id, message.tool_calls[0].function.arguments) == ("c9", '{"a": 1}')
    assert completion.usage.total_tokens == 7


@pytest.mark.parametrize(
    ("finish", "told"), [("length", ["length"]), ("content_filter", ["content_filter"]), (None, [])]
)
async def test_finish_reason_as_scripted_or_null_to_the_end(finish: str | None, told: list[str]) -> None:
    with ScriptedServer([reply("x", finish=finish)]) as server:
        assert reasons(await chunks(server.base_url)) == told


async def test_oddities_between_the_chunks() -> None:
    steps = (Comment(), EmptyChoices(), Text("a"), Event({"id": "x", "choices": [], "vendor": 1}), Text("b"))
    with ScriptedServer([ModelReply(steps=steps)]) as server:
        received = await chunks(server.base_url)
    assert texts(received) == ["a", "b"]
    assert [chunk.choices for chunk in received].count([]) == 2


async def test_delays_and_gaps() -> None:
    script = [
        reply("ab", chunk=1, delay_s=0.1),
        reply("ab", chunk=1, gap_s=0.05),
        reply("ab", chunk=1, pause_at={1: 0.1}),
    ]
    script.append(ModelReply(steps=(Text("a"), Pause(0.1))))
    with ScriptedServer(script) as server:
        for _ in script:
            begun = time.monotonic()
            await chunks(server.base_url)
            assert time.monotonic() - begun >= 0.1


async def test_gate_holds_the_stream_until_it_is_opened() -> None:
    gate = Gate()
    with ScriptedServer([ModelReply(steps=(Text("a"), gate, Text("b")))]) as server:
        running = asyncio.create_task(chunks(server.base_url))
        await asyncio.to_thread(gate.wait_reached)
        await asyncio.sleep(0.05)
        assert not running.done()
        gate.open()
        assert texts(await running) == ["a", "b"]
    with pytest.raises(TimeoutError):
        Gate().wait_reached(0.01)


async def test_responses_stream() -> None:
    scripted = reply("Hello", chunk=2, reasoning="hm", calls=[call("shell", {"a": 1}, id="c1"), call("b")])
    with ScriptedServer(
        [scripted, reply("x", finish="length"), reply("x", finish=None), stream_error("Bad")]
    ) as server:
        async with client(server.base_url) as openai:
            streams = []
            for _ in range(4):
                stream = await openai.responses.create(model="gpt-5", input="hi", stream=True)
                streams.append([event async for event in stream])
    first, short, unfinished, failed = streams
    assert [event.sequence_number for event in first] == list(range(len(first)))
    assert [event.delta for event in first if event.type == "response.output_text.delta"] == ["He", "ll", "o"]
    final = first[-1].response
    assert first[-1].type == "response.completed"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "function_call"]
    assert (final.output_text, final.output[2].call_id, final.output[2].arguments) == ("Hello", "c1", '{"a": 1}')
    assert final.usage.input_tokens > 0
    assert short[-1].response.incomplete_details.reason == "max_output_tokens"
    assert unfinished[-1].type == "response.output_item.done"
    assert failed[-1].message == "Bad"


async def test_responses_that_are_not_streamed() -> None:
    with ScriptedServer([reply("Hello", usage=Usage(1, 2, cached=1))]) as server:
        async with client(server.base_url) as openai:
            response = await openai.responses.create(model="gpt-5", input="hi")
    assert response.output_text == "Hello"
    assert response.usage.input_tokens_details.cached_tokens == 1


async def test_models_and_what_does_not_exist() -> None:
    import openai

    with ScriptedServer(models=["a", "b"]) as server:
        async with client(server.base_url) as connected:
            assert [model.id async for model in connected.models.list()] == ["a", "b"]
            assert (await connected.models.retrieve("b")).id == "b"
            with pytest.raises(openai.NotFoundError, match="`c` does not exist"):
                await connected.models.retrieve("c")
        with pytest.raises(openai.NotFoundError, match=r"Invalid URL \(POST /chat/completions\)"):
            await complete(server.base_url.removesuffix("/v1"))


async def test_forever_dynamic_and_added_replies() -> None:
    def echo(request: Request) -> Reply:
        return reply(request.messages[-1]["content"] + "!")

    with ScriptedServer([reply("1")]) as server:
        assert server.remaining == 1
        server.extend(echo, forever(reply("3")))
        said = [texts(await chunks(server.base_url)) for _ in range(4)]
        assert server.remaining == 1
    assert said == [["1"], ["hi!"], ["3"], ["3"]]


async def test_requests_are_recorded_exactly(tmp_path: Path) -> None:
    with ScriptedServer([forever(reply("x"))], record_dir=tmp_path) as server:
        await chunks(server.base_url)
        await complete(server.base_url, messages=[{"role": "user", "content": "é"}])
        first, second = server.wait_for_requests(2)
    assert (first.number, first.method, first.path, first.streams) == (1, "POST", "/v1/chat/completions", True)
    assert first.headers["AUTHORIZATION"] == first.headers["authorization"] == "Bearer sk-test"
    assert json.loads(second.body) == second.json
    assert second.messages == [{"role": "user", "content": "é"}]
    assert (second.model, second.streams, second.problems) == ("gpt-5", False, ())
    assert abs(second.received_at - time.time()) < 60
    assert second.monotonic_s > first.monotonic_s
    assert (tmp_path / "000002.body").read_bytes() == second.body
    about: Mapping[str, Any] = json.loads((tmp_path / "000001.json").read_bytes())
    assert [value.lower() for name, value in about["headers"] if name.lower() == "authorization"] == [
        "bearer sk-test"
    ]
    assert sorted(os.listdir(tmp_path)) == [
        f"00000{number}.{suffix}" for number in (1, 2) for suffix in ("body", "json")
    ]
