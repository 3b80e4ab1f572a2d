"""Every way to fail becomes one of our errors, with a message that helps and never holds the key."""

import asyncio
import inspect
import json
import ssl
from datetime import UTC, datetime
from email.message import Message as Headers
from typing import Any

import anyio
import httpx2
import openai
import pytest

from agentsh.base.errors import (
    ContextOverflow,
    ModelError,
    ModelKeyRefused,
    ModelUnavailable,
    ModelUnknown,
    RequestRejected,
    StreamCut,
    StreamGarbled,
)
from agentsh.models.chat_reply import ErrorInReply
from agentsh.models.openai_errors import foreign, is_loopback, retry_after_s, shown_url, translate
from agentsh.ports.model import Endpoint
from agentsh.testing.server import (
    NoReply,
    ScriptedServer,
    error,
    html_error,
    json_reply,
    quota_exceeded,
    refusing,
    stream_error,
)
from tests.models.wire import KEY, fails

ENDPOINT = Endpoint("https://user:secret@api.example.com:8443/v1?key=secret", KEY)
REQUEST = httpx2.Request("POST", "https://api.example.com/v1")

STATUSES: list[tuple[int, type[ModelError], str]] = [
    (400, RequestRejected, "refused"),
    (401, ModelKeyRefused, "key"),
    (402, ModelKeyRefused, "credit"),
    (403, ModelKeyRefused, "key"),
    (404, ModelUnknown, "model"),
    (408, ModelUnavailable, "available"),
    (409, ModelUnavailable, "available"),
    (413, RequestRejected, "refused"),
    (418, RequestRejected, "refused"),
    (422, RequestRejected, "refused"),
    (429, ModelUnavailable, "available"),
    (500, ModelUnavailable, "available"),
    (502, ModelUnavailable, "available"),
    (503, ModelUnavailable, "available"),
    (504, ModelUnavailable, "available"),
    (529, ModelUnavailable, "available"),
]


@pytest.mark.parametrize(("status", "kind", "word"), STATUSES)
async def test_each_status(status: int, kind: type[ModelError], word: str) -> None:
    with ScriptedServer([error(status), html_error(status), json_reply(None, status=status)]) as server:
        told = await fails(server.base_url)
        page = await fails(server.base_url)
        bare = await fails(server.base_url)
    assert type(told.error) is kind
    assert type(page.error) is kind
    assert type(bare.error) is kind
    assert isinstance(told.error, ModelError)
    assert word in told.error.message
    assert f"HTTP {status}" in told.error.message
    assert server.base_url in told.error.message
    assert "an HTML page" in str(page.error)
    for broken in (told, page, bare):
        _is_clean(broken.error)


async def test_an_empty_account_is_not_worth_a_retry() -> None:
    with ScriptedServer([quota_exceeded(), error(402, "Insufficient Balance")]) as server:
        for _ in range(2):
            found = (await fails(server.base_url)).error
            assert isinstance(found, ModelKeyRefused)
            assert "credit" in found.message
            assert not found.retryable


async def test_the_key_is_never_told_even_where_the_server_does() -> None:
    with ScriptedServer([error(401, f"Incorrect API key provided: {KEY}. Find yours.")]) as server:
        _is_clean((await fails(server.base_url)).error)


@pytest.mark.parametrize(
    ("code", "kind"), [(None, ModelUnavailable), ("502", ModelUnavailable), ("400", RequestRejected)]
)
async def test_an_error_inside_a_stream(code: str | None, kind: type[ModelError]) -> None:
    with ScriptedServer([stream_error("Upstream says no.", code=code), stream_error("Bad luck.", "half")]) as server:
        first, second = await fails(server.base_url), await fails(server.base_url)
    assert type(first.error) is kind
    assert "Upstream says no." in str(first.error)
    assert type(second.error) is StreamCut
    assert "Bad luck." in str(second.error)
    assert second.text == "half"


async def test_an_error_object_with_status_200() -> None:
    llama = {"error": {"code": 400, "message": "the request exceeds the available context size.", "n_ctx": 8192}}
    vllm = {"object": "error", "message": "it broke", "type": "InternalServerError", "code": 500}
    with ScriptedServer([json_reply(llama), json_reply(vllm)]) as server:
        assert type((await fails(server.base_url)).error) is ContextOverflow
        assert type((await fails(server.base_url)).error) is ModelUnavailable


async def test_nobody_listens() -> None:
    with refusing() as url:
        found = (await fails(url)).error
    assert isinstance(found, ModelUnavailable)
    assert "connection refused" in found.message
    assert url in found.message
    assert "running" in (found.hint or "")


@pytest.mark.parametrize("reply", [NoReply(), NoReply(ending="rst")])
async def test_the_connection_closes_before_any_answer(reply: NoReply) -> None:
    with ScriptedServer([reply]) as server:
        assert type((await fails(server.base_url)).error) is ModelUnavailable


async def test_no_answer_in_time() -> None:
    with ScriptedServer([NoReply(delay_s=None)]) as server:
        found = (await fails(server.base_url, timeout_s=0.5)).error
    assert isinstance(found, ModelUnavailable)
    assert "0.5 s" in found.message


async def test_a_server_that_speaks_no_tls() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        found = (await fails(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")).error
    assert isinstance(found, ModelUnavailable)
    assert "TLS" in found.message


async def test_a_host_that_is_not() -> None:
    found = (await fails("http://no-such-host.invalid/v1")).error
    assert isinstance(found, ModelUnavailable)
    assert "no such host" in found.message


@pytest.mark.parametrize(
    "url", ["api.example.com/v1", "ftp://example.com/v1", "http://", "http://x:99999/v1", "http://[/v1"]
)
async def test_a_url_that_is_none(url: str) -> None:
    found = (await fails(url)).error
    assert type(found) is ModelUnknown, found
    assert not found.retryable


def test_retry_after_in_seconds_milliseconds_and_as_a_date() -> None:
    now = datetime(2026, 11, 29, 16, 20, tzinfo=UTC)
    cases = [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "Sun, 29 Nov 2026 16:20:30 GMT"}, 30.0),
        ({"Retry-After": "Sun, 29 Nov 2026 16:00:00 GMT"}, 0.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ]
    for headers, seconds in cases:
        found = Headers()
        for name, value in headers.items():
            found[name] = value
        assert retry_after_s(found, now) == seconds, headers  # type: ignore[arg-type]


async def test_retry_after_reaches_the_error() -> None:
    with ScriptedServer([error(429, headers={"Retry-After": "7"}), error(503)]) as server:
        found = [(await fails(server.base_url)).error for _ in range(2)]
    assert [e.retry_after_s for e in found if isinstance(e, ModelUnavailable)] == [7.0, None]


URLS = [
    ("https://user:secret@api.example.com:8443/v1/?key=secret#x", "https://api.example.com:8443/v1"),
    ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
    ("api.example.com/v1?key=secret", "api.example.com/v1"),
    ("user:secret@host", "host"),
    ("", "(no URL)"),
    ("http://[bad", "http://[bad"),
    ("http://user:secret@x:99999/v1", "x:99999/v1"),
]


@pytest.mark.parametrize(("url", "shown"), URLS)
def test_urls_are_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_what_is_this_machine() -> None:
    here = ["http://localhost:1/v1", "http://127.0.0.1/v1", "http://127.8.8.8/v1", "http://[::1]:8080/v1"]
    there = ["http://localhost.example.com/v1", "https://10.0.0.1/v1", "http://0.0.0.0.example/v1", "", "http://[bad"]
    assert all(is_loopback(url) for url in here)
    assert not any(is_loopback(url) for url in there)


def _all_errors() -> list[Exception]:
    """One of each class that openai and httpx2 define, and what may come past them."""
    found: list[Exception] = []
    for module in (openai, httpx2):
        for _, kind in sorted(inspect.getmembers(module, inspect.isclass)):
            if issubclass(kind, Exception) and not issubclass(kind, Warning):
                found.append(_made(kind))
    found += [
        json.JSONDecodeError("no", "doc", 0),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
        ValueError("no"),
    ]
    found += [ConnectionResetError("reset"), TimeoutError(), ssl.SSLError(1, "bad"), RecursionError("deep")]
    return [*found, anyio.EndOfStream(), anyio.BrokenResourceError(), anyio.ClosedResourceError(), ErrorInReply(None)]


def _made(kind: type[Exception]) -> Exception:
    response = httpx2.Response(400, request=REQUEST, json={"error": {"message": f"said {KEY}"}})
    arguments: dict[str, Any] = {"request": REQUEST, "response": response, "body": {"message": "said"}}
    arguments |= {"message": f"message {KEY}", "unsent_messages": [], "completion": _Completion()}
    try:
        names = inspect.signature(kind).parameters
    except ValueError:  # it has the constructor of a built-in
        return kind(f"message {KEY}")
    wanted = {name: value for name, value in arguments.items() if name in names}
    try:
        return kind(**wanted)
    except TypeError:
        return kind(f"message {KEY}")


class _Completion:
    usage = None


@pytest.mark.parametrize("given", _all_errors(), ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("began", [False, True])
def test_the_mapping_is_total(given: Exception, began: bool) -> None:
    found = translate(given, ENDPOINT, began=began)
    assert isinstance(found, ModelError)
    _is_clean(found)
    shown = translate(given, ENDPOINT, began=True, shown=True)
    assert type(shown) is StreamCut
    _is_clean(shown)


def test_all_of_them_are_caught() -> None:
    """What `foreign` does not name would pass `stream` untranslated; these two are no part of a stream."""
    never = (openai.InvalidWebhookSignatureError, httpx2.CookieConflict)
    outside = [type(e).__name__ for e in _all_errors() if not isinstance(e, foreign()) and not isinstance(e, never)]
    assert outside == []


def test_the_kinds_of_what_has_no_status() -> None:
    assert type(translate(openai.APITimeoutError(REQUEST), ENDPOINT)) is ModelUnavailable
    assert type(translate(openai.APIConnectionError(request=REQUEST), ENDPOINT)) is ModelUnavailable
    assert type(translate(openai.APIConnectionError(request=REQUEST), ENDPOINT, began=True)) is StreamCut
    assert type(translate(httpx2.ProxyError("no"), ENDPOINT)) is ModelUnavailable
    assert type(translate(httpx2.TooManyRedirects("no"), ENDPOINT)) is ModelUnknown
    assert type(translate(httpx2.LocalProtocolError("no"), ENDPOINT)) is RequestRejected
    assert type(translate(httpx2.DecodingError("no"), ENDPOINT)) is StreamGarbled


async def test_a_redirect_that_never_ends() -> None:
    with ScriptedServer([]) as server:
        again = html_error(307)
        item = type(again)(status=307, body=b"", headers=(("Location", f"{server.base_url}/chat/completions"),))
        server.extend(*[item] * 30)
        found = (await fails(server.base_url)).error
        assert isinstance(found, ModelUnknown)
        await asyncio.sleep(0)


def _is_clean(error: Exception) -> None:
    assert isinstance(error, ModelError)
    text = str(error)
    assert KEY not in text
    assert "secret" not in text
    assert "\n" not in error.message
    assert 0 < len(error.message) <= 300
