"""A session whose model talks long and writes summaries: what the tests of the compactor share."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agentsh.context.fold import fold
from agentsh.context.request import rebuild
from agentsh.events.codec import decode
from agentsh.events.turn import ContextBuilt
from agentsh.models.scripted import Move
from agentsh.ports.model import Streamed
from agentsh.ports.texts import InlineTexts
from agentsh.testing import Say, ScriptedModel
from tests.engine.rig import ID, Rig, new

BUDGET = 6_000
GOOD = Say(
    (
        "## Goal\nKeep counting.\n## Decisions\nNone.\n## Files touched\nnone\n",
        "## Open work\nThe rest.\n## Exact facts\nThe number is 41.",
    )
)


def is_summary(request: dict[str, Any]) -> bool:
    return "about to be replaced by a summary" in str(request["messages"][-1]["text"])


class SummingModel(ScriptedModel):
    """Talks long, and answers requests for a summary with the moves it was given, the last one for ever."""

    def __init__(self, summaries: Sequence[Move], *, chars: int = 900) -> None:
        super().__init__([])
        self.summaries = list(summaries)
        self.chars = chars
        self.asked: list[dict[str, Any]] = []
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        request = json.loads(body)
        if not is_summary(request):
            n = len(self.requests)
            self._moves = [Say((f"answer {n} " + "a" * self.chars,))]
        else:
            self.asked.append(request)
            self.waiting.set()
            await self.go_on.wait()
            self._moves = [self.summaries.pop(0) if len(self.summaries) > 1 else self.summaries[0]]
        async for item in super().stream(body):
            yield item


async def talking(
    summaries: Sequence[Move], *, turns: int = 8, chars: int = 900, **more: Any
) -> tuple[Rig, SummingModel]:
    """A session that has grown to about `turns` long answers, without a compaction of its own."""
    model = SummingModel(summaries, chars=chars)
    rig = await new([], model=model, budget_tokens=more.pop("budget_tokens", BUDGET), **more)
    for n in range(turns):
        await rig.session.submit(f"question {n} " + "q" * 900)
    return rig, model


def sent(model: ScriptedModel) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(model.requests[-1])["messages"]
    return found


def logged(rig: Rig) -> list[Any]:
    return [decode(record) for record in rig.store.read(ID)]


def assert_requests_are_rebuilt(rig: Rig) -> int:
    """Every request is built again from the log before it, byte for byte; how many of them were for a summary."""
    events = logged(rig)
    found = 0
    for n, event in enumerate(events):
        if isinstance(event.fact, ContextBuilt) and event.fact.summary is not None:
            found += 1
        if isinstance(event.fact, ContextBuilt):
            again = rebuild(fold(events[:n]), event.fact, InlineTexts())
            assert hashlib.sha256(rig.model.encode(again.prompt)).hexdigest() == event.fact.request_sha256
    return found
