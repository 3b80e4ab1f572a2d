"""/rename: show the title, or give the session another."""

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome

MAX_CHARS = 200


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Record the new title."""
    title = one_line(argument, MAX_CHARS)
    if not title:
        return SlashOutcome([f"  title: {one_line(context.session.state.title or 'none yet', MAX_CHARS)}"])
    await context.session.rename(title)
    return SlashOutcome()
