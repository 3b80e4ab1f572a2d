"""/config: the settings in force, and where each comes from."""

import asyncio

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List those whose name holds the words that are given; what was set goes before what is as usual."""
    found = [
        s for s in await asyncio.to_thread(context.backend.settings) if all(w in s.name for w in argument.split())
    ]
    if not found:
        return SlashOutcome([f"  there is no setting with {one_line(argument, 60)!r} in its name"])
    found.sort(key=lambda s: s.origin == "default")
    width = max(len(s.name) for s in found)
    return SlashOutcome(
        [f"  {s.name:<{width}}  {one_line(s.value, 200)}  · {one_line(s.origin, 200)}" for s in found]
    )
