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
OWN_LISTS = {"organization_owner": "/api/v0/models", "library": "/api/ps"}
"""By what LM Studio and Ollama call the owner of models: there they name windows. Their compatible lists do not."""


async def ask(client: "openai.AsyncOpenAI", endpoint: Endpoint, model: str) -> Window | None:
    """Return what the server says of `model`, or None where it says nothing. Never raises but for a cancellation."""
    try:
        async with asyncio.timeout(LIMIT_S):
            listed = await _get(client, "/models")
            own = _own_list(listed) if is_loopback(endpoint.base_url) else None
            found = in_list(listed, model)
            if found is not None or own is None:
                return found
            parts = urlsplit(endpoint.base_url)
            return in_list(await _get(client, f"{parts.scheme}://{parts.netloc}{own}"), model)
    except TimeoutError:
        return None


def _own_list(listed: Any) -> str | None:
    cards = listed.get("data") if isinstance(listed, dict) else None
    owners = [card.get("owned_by") for card in cards or () if isinstance(card, dict)]
    return next((OWN_LISTS[owner] for owner in owners if owner in OWN_LISTS), None)


async def _get(client: "openai.AsyncOpenAI", path: str) -> Any:
    try:
        return await client.get(path, cast_to=object)
    except foreign():
        return None
