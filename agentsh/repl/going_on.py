"""Leaving for another session; /resume and /sessions both do."""

import asyncio

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.terminal import Onward


async def go_to(context: SlashContext, name: str) -> SlashOutcome:
    """Leave for another session, once it is known that it can be opened."""
    await context.at_rest("another session")
    session = await asyncio.to_thread(context.backend.check, name)
    if session == context.session.state.id:
        return SlashOutcome([f"  {one_line(session, 100)} is the session that you are in"])
    await context.at_rest("another session")
    return SlashOutcome(onward=Onward(session))
