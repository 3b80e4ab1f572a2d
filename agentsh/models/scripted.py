"""A model that plays a script: for tests and documents. Encodes a plain, stable body."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable

from agentsh.base.errors import ModelError
from agentsh.base.light import dataclass
from agentsh.events.base import Usage
from agentsh.events.signals import TextDelta
from agentsh.ports.model import Call, Prompt, Reply, Streamed


@dataclass(frozen=True, slots=True)
class Say:
    """A reply: text in `pieces`, then tool calls as (name, arguments as a JSON value)."""

    pieces: tuple[str, ...] = ()
    calls: tuple[tuple[str, object], ...] = ()


Move = Say | ModelError | Callable[[dict[str, object]], Say]


class ScriptedModel:
    """Plays one move for each request; errors are raised. requests: the bodies it was sent, in order."""

    def __init__(self, moves: Iterable[Move]) -> None:
        self._moves = list(moves)
        self.requests: list[bytes] = []
        self._ids = 0

    def encode(self, prompt: Prompt) -> bytes:
        """Return the prompt as JSON."""
        messages = [
            {
                "role": m.role,
                "text": m.text,
                "calls": [[c.id, c.name, c.arguments] for c in m.calls],
                "call_id": m.call_id,
            }
            for m in prompt.messages
        ]
        return json.dumps({"model": prompt.model, "tools": list(prompt.tools), "messages": messages}).encode()

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        """Play the next move."""
        self.requests.append(body)
        if not self._moves:
            raise ModelError("the script is at its end")
        move = self._moves.pop(0)
        if isinstance(move, ModelError):
            raise move
        if callable(move):
            move = move(json.loads(body))
        for piece in move.pieces:
            yield TextDelta(piece)
        yield self._reply(move, len(body))

    def _reply(self, move: Say, size: int) -> Reply:
        calls = []
        for name, arguments in move.calls:
            self._ids += 1
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            calls.append(Call(f"call_{self._ids}", name, text))
        text = "".join(move.pieces)
        usage = Usage(prompt=size // 3, cached=0, completion=len(text) // 3, reasoning=0)
        return Reply(text, None, tuple(calls), "tool_calls" if calls else "stop", usage, "scripted")

    async def close(self) -> None:
        """Nothing to give back."""
