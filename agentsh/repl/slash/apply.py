"""/apply: bring what the session has changed back to where its workspace came from."""

import asyncio

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Do it, all or nothing; `check` only tells what would be done."""
    if argument not in ("", "check"):
        raise UsageProblem(
            f"/apply {one_line(argument, 60)}: only `check` can be said", hint="/apply, or /apply check"
        )
    await context.at_rest("what is brought back")
    told = await asyncio.to_thread(lambda: context.backend.apply(check=bool(argument)))
    return SlashOutcome([f"  {one_line(line, 1_000)}" for line in told])
