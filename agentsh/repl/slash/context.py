"""/context: what the model was sent last: how full it is, and what of the session is in it."""

from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Draw it as a bar and a table, as `agentsh context` does."""
    if context.io.context is None:
        return SlashOutcome(["  this is not known here"])
    columns = context.io.display().get_size().columns
    return SlashOutcome([f"  {row}" for row in await context.io.context(columns - 3)])  # the last one stays free
