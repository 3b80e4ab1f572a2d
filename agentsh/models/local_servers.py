"""Finds model servers on this machine, for the first run with nothing configured; asks no other host, ever."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentsh.models.windows import of_card
from agentsh.ports.window import Window

HOST = "127.0.0.1"
USUAL = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000))
"""The ports on which these listen by default.

Sources, read in 2026: docs.ollama.com/api/openai-compatibility; lmstudio.ai/docs/api/openai-api; llama.cpp's
documentation of `llama-server`, `--port`; docs.vllm.ai, "OpenAI-Compatible Server".
"""
LIMIT_S = 0.2
"""For all of them together: the first prompt waits for it. A server on the loopback answers in a few ms."""
MAX_ANSWER_BYTES = 1_000_000

# Other programs listen on 8080 and 8000 too, so a server is called by what it says of itself, where it does.
_OWNERS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "sglang": "SGLang", "library": "Ollama"}


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answers. base_url: fit for OPENAI_BASE_URL. models: their ids, as it lists them; may be empty.

    windows: how much each takes, as far as the list says.
    """

    name: str
    base_url: str
    models: tuple[str, ...]
    windows: Mapping[str, Window] = field(default_factory=dict)


async def find_local_servers(
    usual: Sequence[tuple[str, int]] = USUAL, *, limit_s: float = LIMIT_S
) -> list[LocalServer]:
    """Return the servers that answered `GET /v1/models` within `limit_s` seconds, in the order of `usual`.

    Never raises: what does not answer, or not so, is not there.
    """
    tasks = [asyncio.create_task(_ask(name, port)) for name, port in usual]
    try:
        await asyncio.wait(tasks, timeout=limit_s)
    finally:
        for task in tasks:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    return [answer for answer in answers if isinstance(answer, LocalServer)]


async def _ask(name: str, port: int) -> LocalServer | None:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        # HTTP/1.0, so that the answer is neither chunked nor kept open.
        request = f"GET /v1/models HTTP/1.0\r\nHost: {HOST}:{port}\r\nAccept: application/json\r\n\r\n"
        writer.write(request.encode())
        answer = await _read(reader)
    finally:
        writer.transport.abort()  # at once: there is nothing left to send
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return _server(name, port, answer)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return the whole answer: to its stated length, else to the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        field, _, value = line.partition(b":")
        if field == b"content-length" and value.strip().isdigit():
            return head + await reader.readexactly(min(int(value), MAX_ANSWER_BYTES))
    body = bytearray()
    while len(body) < MAX_ANSWER_BYTES and (part := await reader.read(65536)):
        body += part
    return head + bytes(body)


def _server(name: str, port: int, answer: bytes) -> LocalServer | None:
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        return None
    try:
        listed = json.loads(body)
    except ValueError:
        return None
    cards = listed.get("data") if isinstance(listed, dict) else None
    # Ollama without models answers null.
    if not (isinstance(cards, list) or (cards is None and "data" in listed and listed.get("object") == "list")):
        return None
    cards = [card for card in cards or [] if isinstance(card, dict) and isinstance(card.get("id"), str)]
    owner = str(cards[0].get("owned_by", "")) if cards else ""
    windows = {card["id"]: window for card in cards if (window := of_card(card)) is not None}
    ids = tuple(card["id"] for card in cards)
    return LocalServer(_OWNERS.get(owner, name), f"http://{HOST}:{port}/v1", ids, windows)
