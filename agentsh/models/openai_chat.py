"""The Chat Completions wire over the official openai client: exact bytes out, tolerant stream in."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from agentsh.base.errors import ModelError, ModelKeyMissing, ModelKeyRefused, StreamCut
from agentsh.events.signals import TextDelta
from agentsh.models import chat_body, model_list, sse
from agentsh.models.chat_reply import Assembly
from agentsh.models.openai_errors import (
    CHECK_KEY,
    check_url,
    described,
    foreign,
    garbled,
    is_loopback,
    shown_url,
    translate,
)
from agentsh.ports.model import Endpoint, Prompt, Streamed
from agentsh.ports.window import Window

if TYPE_CHECKING:
    import openai

CONNECT_S = 10.0
"""Seconds for the connection alone; a server that is there accepts at once."""
TAIL_S = 5.0
"""Seconds that usage may come after the finish reason; the answer is whole without it."""
DRAIN_S = 0.1
"""Seconds for the end of the body after `[DONE]`: read to its end, a connection can be used again."""
ANY_KEY = "none"
"""What a server on this machine is sent where no key is set; the client insists on one."""


class OpenAIChat:
    """Reaches one endpoint. The client and its connections are made at the first request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: openai.AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    def encode(self, prompt: Prompt) -> bytes:
        """Return the body; see `chat_body.encode`."""
        return chat_body.encode(prompt)

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        """Send exactly `body`; yield previews and, last, the Reply.

        Raises:
            ModelError: as `openai_errors.translate` says. Once text was yielded, only StreamCut.
        """
        response = await self._send(body)
        assembly, shown = Assembly(), False
        try:
            async with contextlib.aclosing(_chunks(response.aiter_bytes(), assembly, self._endpoint)) as chunks:
                async for chunk in chunks:
                    for delta in assembly.take(chunk):
                        shown = shown or isinstance(delta, TextDelta)
                        yield delta
        except foreign() as error:
            if assembly.finish is None:
                raise translate(error, self._endpoint, began=True, shown=shown) from error
        finally:
            await response.aclose()
        for delta in assembly.rest():
            yield delta
        if assembly.finish is None:
            url = shown_url(self._endpoint.base_url)
            raise StreamCut(f"the answer of {url} ended without a finish reason")
        yield assembly.reply(model=assembly.model or str(json.loads(body).get("model", "")))

    async def window(self, model: str) -> Window | None:
        """Return what the server's list of models says of `model`; see `model_list.ask`."""
        try:
            client = await self._connected()
        except ModelError:
            return None
        return await model_list.ask(client, self._endpoint, model)

    async def close(self) -> None:
        """Close the connections. Idempotent; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _send(self, body: bytes) -> Any:
        """Return the response, its body unread."""
        client = await self._connected()
        import openai

        options: Any = {"headers": {"Content-Type": "application/json"}}
        try:
            # post() is the client's public way to send what it has no method for: `content` goes out unchanged.
            stream = await client.post(
                "/chat/completions",
                cast_to=object,
                content=body,
                options=options,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except foreign() as error:
            raise translate(error, self._endpoint) from error
        return stream.response

    async def _connected(self) -> "openai.AsyncOpenAI":
        async with self._making:
            if self._client is None:
                url, key = check_url(self._endpoint), _key(self._endpoint)
                # In a thread: the import takes 0.2 s, and meanwhile the screen must not stand still.
                self._client = await asyncio.to_thread(_client, self._endpoint, url, key)
            return self._client


def _client(endpoint: Endpoint, url: str, key: str) -> "openai.AsyncOpenAI":
    from agentsh.models.openai_loading import load_openai

    load_openai()
    import openai

    timeout = openai.Timeout(endpoint.timeout_s, connect=min(CONNECT_S, endpoint.timeout_s))
    http = None
    if url.startswith("http:") and is_loopback(url):
        # Nothing to verify there. Loading the world's authorities takes 25 ms, a tenth of a whole turn; without
        # them a redirect to TLS fails, it is not trusted.
        http = openai.DefaultAsyncHttpx2Client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    try:
        return openai.AsyncOpenAI(api_key=key, base_url=url, timeout=timeout, max_retries=0, http_client=http)
    except foreign() as error:
        raise translate(error, endpoint) from error


def _key(endpoint: Endpoint) -> str:
    key = (endpoint.api_key or "").strip()
    if key:
        if not (key.isascii() and key.isprintable()):
            raise ModelKeyRefused("the API key holds characters that no HTTP header can carry", hint=CHECK_KEY)
        return key
    if is_loopback(endpoint.base_url):
        return ANY_KEY
    raise ModelKeyMissing(
        f"no API key for {shown_url(endpoint.base_url)}",
        hint="set OPENAI_API_KEY, or try `--model demo`, which needs none",
    )


async def _chunks(data: AsyncIterator[bytes], assembly: Assembly, endpoint: Endpoint) -> AsyncGenerator[Any, None]:
    """Yield the chunks of a stream, or the one completion of a server that does not stream.

    Raises:
        StreamGarbled: it is neither.
        ValueError: an event is no JSON.
    """
    first, data = await sse.opening(data)
    if first in (b"{", b"["):
        yield json.loads(await sse.whole(data))
        return
    if first == b"<":
        page = (await sse.whole(data)).decode("utf-8", "replace")
        raise garbled(endpoint, described(page))
    count = 0
    async with contextlib.aclosing(sse.events(data)) as events:
        while (event := await _next(events, assembly)) is not None:
            if event.strip() == "[DONE]":
                await _drain(events)
                break
            if event.strip():
                count += 1
                yield _json(event)
    if first and not count and assembly.finish is None:
        raise garbled(endpoint, "no event in its answer")


async def _next(events: AsyncIterator[str], assembly: Assembly) -> str | None:
    """Return the next event or None at the end; once the finish reason is there, wait no longer than TAIL_S."""
    try:
        async with asyncio.timeout(None if assembly.finish is None else TAIL_S):
            return await anext(events, None)
    except TimeoutError:
        return None


async def _drain(events: AsyncIterator[str]) -> None:
    with contextlib.suppress(*foreign()):
        async with asyncio.timeout(DRAIN_S):
            async for _ in events:
                pass


def _json(event: str) -> Any:
    try:
        return json.loads(event)
    except ValueError:
        raise ValueError(f"an event that is no JSON: {described(event)}") from None
