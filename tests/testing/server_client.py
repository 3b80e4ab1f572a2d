"""The official client against a scripted server, and what a client makes of the chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

USER: Any = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def client(base_url: str, **options: Any) -> AsyncIterator[Any]:
    from openai import AsyncOpenAI

    settings = {"api_key": "sk-test", "max_retries": 0, "timeout": 10.0, **options}
    async with AsyncOpenAI(base_url=base_url, **settings) as connected:
        yield connected


async def streamed(openai: Any, **body: Any) -> list[Any]:
    """The chunks of one streamed chat completion."""
    wanted = {"model": "gpt-5", "messages": USER, "stream": True, **body}
    return [chunk async for chunk in await openai.chat.completions.create(**wanted)]


async def chunks(base_url: str, **body: Any) -> list[Any]:
    """The same, by a client of its own."""
    async with client(base_url) as openai:
        return await streamed(openai, **body)


async def complete(base_url: str, **body: Any) -> Any:
    """One chat completion that is not streamed."""
    async with client(base_url) as openai:
        return await openai.chat.completions.create(**{"model": "gpt-5", "messages": USER, **body})


def texts(received: list[Any]) -> list[str]:
    deltas = [chunk.choices[0].delta.content for chunk in received if chunk.choices]
    return [text for text in deltas if text]


def assembled(received: list[Any]) -> list[tuple[int, str, str, str]]:
    """Calls put together by index, as a client must: index, id, name, arguments."""
    calls: dict[int, list[str]] = {}
    for chunk in received:
        for delta in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            entry = calls.setdefault(delta.index, ["", "", ""])
            pieces = (delta.id, delta.function and delta.function.name, delta.function and delta.function.arguments)
            for place, piece in enumerate(pieces):
                entry[place] += piece or ""
    return [(index, *entry) for index, entry in sorted(calls.items())]  # type: ignore[misc]


def reasons(received: list[Any]) -> list[str]:
    return [chunk.choices[0].finish_reason for chunk in received if chunk.choices and chunk.choices[0].finish_reason]
