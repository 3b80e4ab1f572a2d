"""The Chat Completions adapter against a scripted server: what goes out, what comes in."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import aclosing
from typing import Any

import pytest

from agentsh.base.errors import ModelKeyMissing, ModelKeyRefused, StreamCut, StreamGarbled
from agentsh.events.base import Usage
from agentsh.events.signals import ReasoningDelta, TextDelta
from agentsh.models.openai_chat import OpenAIChat
from agentsh.ports.model import Call, Endpoint, Message, Prompt, Reply
from agentsh.testing import server as script
from agentsh.testing.server import CallDelta, Comment, Event, Finish, Raw, ScriptedServer, Text, Together, call, reply
from agentsh.testing.server_script import Step
from tests.models.wire import KEY, PROMPT, READ, answer, asked, chat, fails, failure, streamed


async def test_the_server_gets_exactly_the_encoded_bytes() -> None:
    calls = (Call("c1", "read", '{"path": "a\\u0000b"}'), Call("c2", "read", "{}"))
    results = (Message("tool", "\u2028 ok", call_id="c1"), Message("tool", "half: \ud83d", call_id="c2"))
    prompt = Prompt("gpt-5", (*PROMPT.messages, Message("assistant", "", calls), *results), (READ,), {"top_p": 0.5})
    with ScriptedServer([reply("Done.")]) as server:
        async with chat(server.base_url) as model:
            await streamed(model, prompt)
            assert server.requests[0].body == model.encode(prompt)
    request = server.requests[0]
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert int(request.headers["content-length"]) == len(request.body)


async def test_text_streams_in_pieces_and_ends_in_one_reply() -> None:
    with ScriptedServer(
        [reply(["Hel", "lo ", "世界"], usage=script.Usage(20, 5, 8, 2), model="gpt-5-2026")]
    ) as server:
        items = await asked(server.base_url)
    assert items[:-1] == [TextDelta("Hel"), TextDelta("lo "), TextDelta("世界")]
    usage = Usage(prompt=20, cached=8, completion=5, reasoning=2)
    assert items[-1] == Reply("Hello 世界", None, (), "stop", usage, "gpt-5-2026")


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
async def test_reasoning_has_its_own_previews(member: Any) -> None:
    with ScriptedServer([reply("42", reasoning=["Let me ", "see."], reasoning_member=member)]) as server:
        items = await asked(server.base_url)
    assert items[:-1] == [ReasoningDelta("Let me "), ReasoningDelta("see."), TextDelta("42")]
    assert isinstance(items[-1], Reply)
    assert items[-1].reasoning == "Let me see."


async def test_parallel_calls_in_interleaved_fragments() -> None:
    calls = [call("read", {"path": "ä.py"}, id="c1", chunk=3), call(["gr", "ep"], {"q": "x"}, id="c2", chunk=2)]
    with ScriptedServer([reply("Looking.", calls=calls, interleaved=True)]) as server:
        got = await answer(server.base_url)
    assert got.calls == (Call("c1", "read", '{"path": "ä.py"}'), Call("c2", "grep", '{"q": "x"}'))
    assert got.finish == "tool_calls"


async def test_many_shapes_of_one_turn_on_one_connection() -> None:
    """A second request reuses the connection of the first, `[DONE]` or not."""
    with ScriptedServer([reply("a"), reply("b", done=False), reply("c", as_json=True), reply("d")]) as server:
        async with chat(server.base_url) as model:
            for text in "abcd":
                items = await streamed(model)
                assert isinstance(items[-1], Reply)
                assert items[-1].text == text


LAYOUTS = [
    script.Layout(line_end="\r\n"),
    script.Layout(line_end="\r"),
    script.Layout(data_prefix="data:", split_data=True),
    script.Layout(segment_bytes=7),
    script.Layout(split_utf8=True),
    script.Layout(joined=True),
    script.Layout(chunked=False),
    script.Layout(escape=True),
]


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_however_the_events_lie_in_the_body(layout: script.Layout) -> None:
    with ScriptedServer(
        [reply(["für ", "世界 🙂"], calls=[call("read", {"path": "é"}, id="c")], layout=layout)]
    ) as server:
        got = await answer(server.base_url)
    assert got.text == "für 世界 🙂"
    assert got.calls == (Call("c", "read", '{"path": "é"}'),)


async def test_what_no_chunk_needs_is_passed_over() -> None:
    noise: list[Step] = [
        Comment("OPENROUTER PROCESSING"),
        Raw(b"retry: 3000\n\n"),
        Raw(b"id: 7\n\n"),
        Raw(b"event: ping\n\n"),
        Raw(b"data:\n\n"),
        script.EmptyChoices(),
        Event({"choices": None, "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
        Event({"choices": [{"index": 1, "delta": {"content": "the second choice"}}]}),
        Event({"choices": [{"index": 0, "delta": None}]}),
    ]
    with ScriptedServer([reply("ok", then=noise, usage=None)]) as server:
        got = await answer(server.base_url)
    assert (got.text, got.usage) == ("ok", Usage(prompt=3, cached=0, completion=1, reasoning=0))


async def test_no_usage_is_none_and_the_model_is_then_the_one_asked_for() -> None:
    steps = [Event({"choices": [{"delta": {"content": "hi"}}]}), Event({"choices": [{"finish_reason": "eos"}]})]
    with ScriptedServer([script.PlainReply(status=200, body=_events(steps), content_type="text/event-stream")]) as s:
        got = await answer(s.base_url)
    assert (got.usage, got.model, got.finish) == (None, "gpt-5", "stop")


async def test_a_plain_json_completion_is_an_answer_too() -> None:
    calls = [call("read", {"path": "a"}, id="c1")]
    with ScriptedServer([reply("Hi.", reasoning="Hm.", calls=calls, as_json=True, model="m")]) as server:
        got = await answer(server.base_url)
    assert (got.text, got.reasoning, got.calls) == ("Hi.", "Hm.", (Call("c1", "read", '{"path": "a"}'),))
    assert got.usage is not None


async def test_an_event_stream_under_a_wrong_content_type() -> None:
    steps = [Event({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})]
    with ScriptedServer([script.PlainReply(status=200, body=_events(steps), content_type="application/json")]) as s:
        assert (await answer(s.base_url)).text == "hi"


async def test_whole_calls_in_one_chunk_beside_text() -> None:
    parts = (
        Text("Both."),
        CallDelta(0, "c1", "read", '{"path":"a"}', starts=True),
        CallDelta(1, "c2", "list", None, starts=True),
        Finish("stop"),
    )
    with ScriptedServer([reply(then=[Together(parts)])]) as server:
        got = await answer(server.base_url)
    assert got.calls == (Call("c1", "read", '{"path":"a"}'), Call("c2", "list", "{}"))
    assert got.finish == "tool_calls"


def test_the_client_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from agentsh.models import openai_chat, openai_errors;"
        "heavy = {'openai', 'httpx2', 'anyio'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "from agentsh.models.openai_loading import load_openai; load_openai();"
        "assert 'openai' in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


async def test_a_missing_key_says_what_to_do_and_sends_nothing() -> None:
    model = OpenAIChat(Endpoint("https://api.example.com/v1", None))
    broken = await failure(model)
    assert isinstance(broken.error, ModelKeyMissing)
    assert "OPENAI_API_KEY" in str(broken.error)
    assert "--model demo" in str(broken.error)


async def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-local-servers")
    with ScriptedServer([reply("ok")]) as server:
        await asked(server.base_url, api_key=None)
    assert "not-for-local" not in server.requests[0].headers["authorization"]


async def test_a_key_with_a_line_feed_is_trimmed_and_one_with_odd_characters_refused() -> None:
    with ScriptedServer([reply("ok")], api_key="sk-trimmed") as server:
        await asked(server.base_url, api_key="sk-trimmed\n")
    broken = await failure(OpenAIChat(Endpoint("https://api.example.com/v1", "schlüssel")))
    assert isinstance(broken.error, ModelKeyRefused)
    assert "schlüssel" not in str(broken.error)


@pytest.mark.parametrize("how", ["end", "fin", "mid_chunk", "rst"])
@pytest.mark.parametrize("text", ["", "half of it"])
async def test_a_stream_without_finish_reason_was_cut_however_it_closed(how: Any, text: str) -> None:
    with ScriptedServer([script.cut_stream(text, how)]) as server:
        broken = await fails(server.base_url)
    assert isinstance(broken.error, StreamCut)
    assert broken.text == text


async def test_done_without_finish_reason_is_a_cut_too() -> None:
    with ScriptedServer([reply("half", finish=None)]) as server:
        broken = await fails(server.base_url)
    assert isinstance(broken.error, StreamCut)


@pytest.mark.parametrize("how", ["end", "fin", "mid_chunk", "rst"])
async def test_after_the_finish_reason_the_transport_may_die(how: Any) -> None:
    with ScriptedServer([reply("whole", then=[Finish("stop"), script.Cut(how)])]) as server:
        assert (await answer(server.base_url)).text == "whole"


async def test_usage_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh.models.openai_chat.TAIL_S", 0.1)
    began_s = time.monotonic()
    with ScriptedServer([reply("whole", then=[Finish("stop"), script.Hang()])]) as server:
        assert (await answer(server.base_url)).text == "whole"
    assert time.monotonic() - began_s < 30


async def test_silence_is_a_cut_after_the_limit() -> None:
    with ScriptedServer([script.hang("half")], raise_failures=False) as server:
        broken = await fails(server.base_url, timeout_s=0.5)
    assert isinstance(broken.error, StreamCut)
    assert "silent for 0.5 s" in str(broken.error)
    assert broken.text == "half"


async def test_malformed_json_is_garbled_before_text_and_a_cut_after_it() -> None:
    with ScriptedServer([script.malformed(), script.malformed(text="half")]) as server:
        first, second = await fails(server.base_url), await fails(server.base_url)
    assert isinstance(first.error, StreamGarbled)
    assert isinstance(second.error, StreamCut)
    assert second.text == "half"


@pytest.mark.parametrize("data", [b"data: [1]\n\n", b'data: {"x":1}\n\n', b"data: " + b"[" * 200_000 + b"\n\n"])
async def test_json_that_is_no_chunk_is_garbled(data: bytes) -> None:
    with ScriptedServer([reply(then=[Raw(data)])]) as server:
        assert isinstance((await fails(server.base_url)).error, StreamGarbled)


@pytest.mark.parametrize(
    "body", ["<html><title>Sign in</title>", "Hello, I am a web server.", '{"status": "ok"}', "{"]
)
async def test_an_answer_of_another_kind_says_to_check_the_url(body: str) -> None:
    with ScriptedServer([script.html_error(200, body)]) as server:
        error = (await fails(server.base_url)).error
    assert isinstance(error, StreamGarbled)
    assert server.base_url in str(error)
    assert "/v1" in (error.hint or "")


async def test_an_empty_answer_was_cut() -> None:
    with ScriptedServer([script.PlainReply(status=200, body=b"", content_type="text/event-stream")]) as server:
        assert isinstance((await fails(server.base_url)).error, StreamCut)


async def test_closing_the_stream_ends_the_request_at_once() -> None:
    with ScriptedServer([script.hang("begun")]) as server:
        async with chat(server.base_url) as model:
            async with aclosing(model.stream(model.encode(PROMPT))) as stream:
                assert await anext(stream) == TextDelta("begun")
            began_s = time.monotonic()
            await asyncio.to_thread(server.wait_for_abandoned, 1)
            assert time.monotonic() - began_s < 30


@pytest.mark.parametrize("text", ["", "begun"])
async def test_cancelling_the_task_ends_the_request_at_once(text: str) -> None:
    with ScriptedServer([script.hang(text), reply("next")]) as server:
        async with chat(server.base_url) as model:
            task = asyncio.create_task(streamed(model))
            await asyncio.to_thread(server.wait_for_requests, 1)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for_abandoned, 1)
            assert isinstance((await streamed(model))[-1], Reply)


async def test_closing_twice_and_using_it_again() -> None:
    with ScriptedServer([reply("a"), reply("b")]) as server:
        model = OpenAIChat(Endpoint(server.base_url, KEY))
        await streamed(model)
        await model.close()
        await model.close()
        assert isinstance((await streamed(model))[-1], Reply)
        await model.close()


def _events(steps: list[Event]) -> bytes:
    return b"".join(b"data: " + json.dumps(step.data).encode() + b"\n\n" for step in steps)
