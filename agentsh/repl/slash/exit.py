"""/exit: leave; everything is saved already."""

from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """End the loop."""
    return SlashOutcome(leave=True)
