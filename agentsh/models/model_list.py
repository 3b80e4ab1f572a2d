"""Asks a server for its list of models, to learn how much one of them takes. Nobody waits for it."""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentsh.models.openai_errors import foreign, is_loopback
from agentsh.models.windows import in_list
from agentsh.ports.model import Endpoint
from agentsh.ports.window import Window

if TYPE_CHECKING:
    import openai

LIMIT_S = 5.0
"""Seconds for all questions together."""
OWN_LISTS = ("/api/v0/models", "/api/ps")
"""What LM Studio and Ollama say of themselves; their OpenAI-compatible lists name no windows."""


async def ask(client: "openai.AsyncOpenAI", endpoint: Endpoint, model: str) -> Window | None:
    """Return what the server says of `model`, or None where it says nothing. Never raises but for a cancellation."""
    paths = ["/models"]
    if is_loopback(endpoint.base_url):
        parts = urlsplit(endpoint.base_url)
        paths += [f"{parts.scheme}://{parts.netloc}{path}" for path in OWN_LISTS]
    try:
        async with asyncio.timeout(LIMIT_S):
            for path in paths:
                found = in_list(await _get(client, path), model)
                if found is not None:
                    return found
    except TimeoutError:
        return None
    return None


async def _get(client: "openai.AsyncOpenAI", path: str) -> Any:
    try:
        return await client.get(path, cast_to=object)
    except foreign():
        return None
