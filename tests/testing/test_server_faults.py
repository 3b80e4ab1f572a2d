"""The scripted server when it fails on purpose, and when the client under test fails."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from agentsh.testing.server import (
    Reply,
    Request,
    ScriptedServer,
    ScriptError,
    closed,
    cut_stream,
    error,
    forever,
    hang,
    html_error,
    json_reply,
    malformed,
    quota_exceeded,
    refusing,
    reply,
    stream_error,
)
from tests.testing.server_client import USER, chunks, client, complete, reasons, texts


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (408, "APIStatusError"),
        (409, "ConflictError"),
        (413, "APIStatusError"),
        (422, "UnprocessableEntityError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (503, "InternalServerError"),
        (529, "InternalServerError"),
    ],
)
async def test_http_errors(status: int, name: str) -> None:
    import openai

    scripted = error(status, headers={"Retry-After": "2"})
    with ScriptedServer([scripted]) as server, pytest.raises(getattr(openai, name)) as raised:
        await chunks(server.base_url)
    assert raised.value.status_code == status
    assert raised.value.response.headers["retry-after"] == "2"
    assert raised.value.body["message"]
    assert raised.value.type


async def test_errors_in_their_own_words_and_bodies() -> None:
    import openai

    script = [error(400, "No.", code="c", param="p"), quota_exceeded(), html_error(502), html_error(500, b"\xff\x00")]
    with ScriptedServer(script) as server:
        caught = []
        for _ in script:
            with pytest.raises(openai.APIStatusError) as raised:
                await complete(server.base_url)
            caught.append(raised.value)
    assert (caught[0].code, caught[0].param, caught[0].type) == ("c", "p", "invalid_request_error")
    assert caught[1].code == "insufficient_quota"
    assert "<h1>502</h1>" in caught[2].response.text
    assert caught[3].response.content == b"\xff\x00"


@pytest.mark.parametrize("how", ["end", "fin", "mid_chunk", "rst"])
async def test_cut_streams_keep_their_text_and_have_no_finish_reason(how: Any) -> None:
    received: list[Any] = []
    failed = False
    with ScriptedServer([cut_stream("partial", how)]) as server:
        async with client(server.base_url) as openai:
            stream = await openai.chat.completions.create(model="m", messages=USER, stream=True)
            try:
                async for chunk in stream:
                    received.append(chunk)  # noqa: PERF401  what came before the error counts
            except Exception as raised:  # noqa: BLE001  which one depends on the version of the client
                failed = type(raised).__name__ in ("RemoteProtocolError", "ReadError", "APIConnectionError")
    assert texts(received) == ["partial"]
    assert reasons(received) == []
    assert failed is (how != "end")


@pytest.mark.parametrize("item", [closed(), closed("rst"), closed(delay_s=0.05)])
async def test_connection_closed_before_any_byte(item: Reply) -> None:
    import openai

    with ScriptedServer([item]) as server, pytest.raises(openai.APIConnectionError):
        await complete(server.base_url)


async def test_refused_connection() -> None:
    import openai

    with refusing() as base_url, pytest.raises(openai.APIConnectionError):
        await complete(base_url)


async def test_malformed_chunks_and_errors_inside_a_stream() -> None:
    import openai

    with ScriptedServer(
        [malformed(text="a"), malformed(b"data: \xff\xfe\n\n"), stream_error("Overloaded", "a")]
    ) as server:
        with pytest.raises(json.JSONDecodeError):
            await chunks(server.base_url)
        with pytest.raises(UnicodeDecodeError):
            await chunks(server.base_url)
        with pytest.raises(openai.APIError, match="Overloaded"):
            await chunks(server.base_url)


async def test_json_where_a_stream_was_asked_for() -> None:
    with ScriptedServer([json_reply({"hello": 1}), reply("x", as_json=True)]) as server:
        assert await chunks(server.base_url) == []
        assert await chunks(server.base_url) == []


@pytest.mark.parametrize("item", [hang(), hang("partial")])
async def test_a_reply_that_hangs_notices_that_the_client_left(item: Reply) -> None:
    with ScriptedServer([item]) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await chunks(server.base_url)
        assert await asyncio.to_thread(server.wait_for_abandoned) == [1]


async def test_a_server_with_hung_streams_closes_at_once() -> None:
    server = ScriptedServer([forever(hang("partial"))])
    with server:
        tasks = [asyncio.create_task(chunks(server.base_url)) for _ in range(5)]
        await asyncio.to_thread(server.wait_for_requests, 5)
        begun = time.monotonic()
        server.close()
        assert time.monotonic() - begun < 20
    assert all(isinstance(raised, Exception) for raised in await asyncio.gather(*tasks, return_exceptions=True))
    assert "scripted-server" not in [thread.name for thread in threading.enumerate()]


async def test_exhaustion_is_an_error_and_raised_at_exit() -> None:
    import openai

    server = ScriptedServer([reply("x")])
    server.start()
    await complete(server.base_url)
    with pytest.raises(openai.InternalServerError, match="script exhausted"):
        await complete(server.base_url)
    with pytest.raises(ScriptError, match="script exhausted: no reply is left for request 2"):
        server.__exit__(None, None, None)
    with ScriptedServer(raise_failures=False) as server, pytest.raises(openai.InternalServerError):
        await complete(server.base_url)
    assert len(server.failures) == 1


async def test_failures_are_a_note_where_the_test_fails_already() -> None:
    with pytest.raises(KeyError) as raised, ScriptedServer() as server:  # noqa: PT012
        server.failures.append("something")
        raise KeyError
    assert "something" in raised.value.__notes__[0]


async def test_a_scripted_function_that_raises_is_a_failure() -> None:
    import openai

    def broken(request: Request) -> Reply:
        raise LookupError(request.path)

    with ScriptedServer([broken], raise_failures=False) as server, pytest.raises(openai.InternalServerError):
        await complete(server.base_url)
    assert "LookupError('/v1/chat/completions')" in server.failures[0]
