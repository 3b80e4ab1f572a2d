"""The model behind `--model demo`: a script that drives the real loop, so that all can be tried without a key."""

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from agentsh.base.clock import Clock, SystemClock
from agentsh.base.errors import RequestRejected
from agentsh.events.base import Usage
from agentsh.events.signals import TextDelta
from agentsh.models import chat_body
from agentsh.models.demo_plans import Move, next_move
from agentsh.ports.model import Call, Endpoint, Prompt, Reply, Streamed

PIECE_S = 0.02
"""Seconds between two pieces of text: slow enough that streaming can be seen."""
REPLY_S = 0.25
"""At most so many seconds for one reply; the longest script has seven."""
PIECE_WORDS = 2


class DemoModel:
    """A script, not an AI: no request leaves the process.

    The next move follows from the messages of the request alone, so that a session goes on after a crash, a
    fork or a replay just as it would with a real model. endpoint: not used; all wires are made from one.
    """

    def __init__(self, endpoint: Endpoint | None = None, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def encode(self, prompt: Prompt) -> bytes:
        """Return the body that the Chat Completions wire would send."""
        return chat_body.encode(prompt)

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        """Play the next move, in small pieces.

        Raises:
            RequestRejected: the body is not one of `encode`.
        """
        messages = _messages(body)
        move = next_move(messages)
        pieces = list(_pieces(move.text))
        pause_s = min(PIECE_S, REPLY_S / max(len(pieces), 1))
        for piece in pieces:
            await self._clock.sleep(pause_s)
            yield TextDelta(piece)
        yield _reply(move, messages, len(body))

    async def close(self) -> None:
        """Nothing to give back."""


def _messages(body: bytes) -> list[dict[str, Any]]:
    try:
        messages: list[dict[str, Any]] = json.loads(body)["messages"]
    except (ValueError, KeyError, TypeError) as error:
        raise RequestRejected(f"the demo model cannot read this request: {error}") from None
    return messages


def _reply(move: Move, messages: list[dict[str, Any]], size: int) -> Reply:
    asked = sum(len(message.get("tool_calls") or ()) for message in messages)
    calls = tuple(
        Call(f"demo_{asked + n}", name, json.dumps(arguments, ensure_ascii=False))
        for n, (name, arguments) in enumerate(move.calls, 1)
    )
    # Estimated at four bytes a token, as nothing counts tokens here.
    completion = (len(move.text.encode()) + sum(len(call.arguments) for call in calls)) // 4 + 1
    usage = Usage(prompt=size // 4, cached=0, completion=completion, reasoning=0)
    return Reply(move.text, None, calls, "tool_calls" if calls else "stop", usage, "demo")


def _pieces(text: str) -> Iterator[str]:
    words = text.split(" ")
    for start in range(0, len(words), PIECE_WORDS):
        piece = " ".join(words[start : start + PIECE_WORDS])
        yield piece if start == 0 else f" {piece}"
