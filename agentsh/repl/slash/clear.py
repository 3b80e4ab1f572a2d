"""/clear: a new session from where this one came; this one is kept, with its workspace."""

from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.terminal import Onward


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Leave for a new one, with the same model and mode."""
    await context.at_rest("a new session")
    _ = context.backend
    return SlashOutcome(onward=Onward())
