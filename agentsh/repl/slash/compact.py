"""/compact: replace older turns by a summary in the context, or take that back. The log keeps all of it."""

from agentsh.repl.commands import SlashContext, SlashOutcome

UNDO = "undo"


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Compact; the argument says what the summary should take care of. What was done is told by the screen."""
    session = context.session
    if argument == UNDO:
        if await session.undo_compaction():
            return SlashOutcome()
        return SlashOutcome(["  there is no compaction that can be undone"])
    came_to = await session.compact(argument)
    told = {
        "done": [],
        "unneeded": ["  nothing was changed: the context would not become shorter by a tenth"],
        "interrupted": ["  interrupted: nothing was changed"],
    }
    return SlashOutcome(told[came_to], interrupted=came_to == "interrupted")
