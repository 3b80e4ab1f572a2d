"""/resume: go on with another session; this one is closed first, and its lease is free."""

import asyncio

from agentsh.base.errors import UsageProblem
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.going_on import go_to
from agentsh.repl.slash import sessions

MAX_NUMBER_CHARS = 3
"""So many digits are a number of the list; more are the beginning of an id."""


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Go to the session that is named by id, a part of one, title, or number in the list; else choose it."""
    if not argument:
        return await sessions.run(context, "")
    if argument.isascii() and argument.isdigit() and len(argument) <= MAX_NUMBER_CHARS:
        listed = await asyncio.to_thread(context.backend.sessions)
        if not 1 <= int(argument) <= len(listed):
            raise UsageProblem(f"there is no session {argument} in the list", hint="/sessions shows it")
        argument = listed[int(argument) - 1].id
    return await go_to(context, argument)
