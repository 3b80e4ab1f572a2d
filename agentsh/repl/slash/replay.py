"""/replay: the newest turns again, at the present width; gone with the next message, as it is all there above."""

import asyncio
from functools import partial

from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show them."""
    columns = context.io.display().get_size().columns
    looks = context.io.looks
    replay = partial(context.backend.replay, colour=looks.colour, palette=looks.palette)
    rows = await asyncio.to_thread(replay, columns - 1)
    more = f"  all of it: agentsh replay {context.session.state.id}"
    return SlashOutcome(page=[*rows, "", [("class:dim", more)]])
