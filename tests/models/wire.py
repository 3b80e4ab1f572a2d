"""A real client against the scripted server over a real socket."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta
from agentsh.models.openai_chat import OpenAIChat
from agentsh.models.retry import RetryingModel
from agentsh.ports.model import Endpoint, Message, Model, Prompt, Reply, Streamed
from agentsh.testing import FakeClock

KEY = "sk-test-0123456789abcdef"
READ: dict[str, Any] = {
    "name": "read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
PROMPT = Prompt("gpt-5", (Message("system", "You are a test."), Message("user", "Grüße, 世界")), (READ,))


@asynccontextmanager
async def chat(base_url: str, *, api_key: str | None = KEY, timeout_s: float = 10.0) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat(Endpoint(base_url, api_key, timeout_s))
    try:
        yield model
    finally:
        await model.close()


async def streamed(model: Model, prompt: Prompt = PROMPT) -> list[Streamed]:
    """All that a stream yields."""
    async with aclosing(model.stream(model.encode(prompt))) as stream:
        return [item async for item in stream]


async def asked(base_url: str, **options: Any) -> list[Streamed]:
    """The same, by a client of its own."""
    async with chat(base_url, **options) as model:
        return await streamed(model)


async def answer(base_url: str) -> Reply:
    """The reply alone; that it is last, and the sum of the previews, is checked here for every test."""
    items = await asked(base_url)
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert "".join(i.text for i in items if isinstance(i, TextDelta)) == reply.text
    assert "".join(i.text for i in items if isinstance(i, ReasoningDelta)) == (reply.reasoning or "")
    return reply


class Broken(Exception):
    """A stream that failed: what it yielded, and how."""

    def __init__(self, items: list[Streamed], error: Exception) -> None:
        super().__init__(repr(error))
        self.items = items
        self.error = error

    @property
    def text(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, TextDelta))

    @property
    def retries(self) -> list[Retrying]:
        return [i for i in self.items if isinstance(i, Retrying)]


async def failure(model: Model) -> Broken:
    """What a stream yields before it fails."""
    items: list[Streamed] = []
    try:
        async with aclosing(model.stream(model.encode(PROMPT))) as stream:
            async for item in stream:
                items.append(item)  # noqa: PERF401 - they must survive the exception
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return Broken(items, error)
    raise AssertionError(f"no failure, but {items}")


async def fails(base_url: str, **options: Any) -> Broken:
    async with chat(base_url, **options) as model:
        return await failure(model)


def retrying(model: Model, jitter: float = 0.0) -> tuple[RetryingModel, FakeClock]:
    clock = FakeClock()
    return RetryingModel(model, clock, lambda: jitter), clock
