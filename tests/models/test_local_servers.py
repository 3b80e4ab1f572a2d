"""Finding servers on this machine: real sockets on free ports."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentsh.models.local_servers import HOST, USUAL, LocalServer, find_local_servers
from agentsh.testing.server import ScriptedServer, refusing

CARDS = b'{"object":"list","data":[{"id":"qwen3","owned_by":"llamacpp"},{"id":5},null]}'


@asynccontextmanager
async def answering(data: bytes | None, *, stays: bool = False) -> AsyncIterator[int]:
    """A server that sends `data` to whoever connects (None: nothing); it keeps the connection if it stays."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if data is not None:
            writer.write(data)
        if data is None or stays:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _http(body: bytes, *, length: bool = True, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\n" + (f"Content-Length: {len(body)}\r\n" if length else "")
    return head.encode() + b"\r\n" + body


async def test_a_server_is_found_with_its_models() -> None:
    with ScriptedServer(models=["llama3", "qwen3"]) as server, refusing() as url:
        nobody = int(url.split(":")[2].removesuffix("/v1"))
        found = await find_local_servers([("nobody", nobody), ("Ollama", server.port)], limit_s=2)
    assert found == [LocalServer("Ollama", server.base_url, ("llama3", "qwen3"))]


async def test_whatever_else_listens_is_not_a_model_server() -> None:
    others = [_http(b"<html>"), _http(b"[]"), _http(b'{"data":5}'), _http(CARDS, status="401 No"), b"SSH-2.0\r\n"]
    for data in others:
        async with answering(data) as port:
            assert await find_local_servers([("x", port)], limit_s=2) == []


async def test_how_the_answer_ends_and_what_it_says_of_itself() -> None:
    async with (
        answering(_http(CARDS), stays=True) as kept,
        answering(_http(CARDS, length=False)) as closed,
        answering(_http(b'{"object":"list","data":null}')) as empty,
    ):
        found = await find_local_servers([("vLLM", kept), ("vLLM", closed), ("Ollama", empty)], limit_s=2)
    assert [(s.name, s.models) for s in found] == [("llama.cpp", ("qwen3",))] * 2 + [("Ollama", ())]


async def test_silence_costs_no_more_than_the_limit() -> None:
    async with answering(None) as silent, answering(_http(CARDS)) as quick:
        began_s = time.monotonic()
        found = await find_local_servers([("a", silent), ("b", quick), ("c", silent)], limit_s=0.5)
        took_s = time.monotonic() - began_s
    assert [server.models for server in found] == [("qwen3",)]
    assert took_s < 3


def test_only_this_machine_is_asked() -> None:
    assert HOST == "127.0.0.1"
    assert [port for _, port in USUAL] == [11434, 1234, 8080, 8000]
