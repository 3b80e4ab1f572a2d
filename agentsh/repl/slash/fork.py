"""/fork: a new session that goes on from here, or from an earlier event; this one goes on too."""

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Make it, and say how to go there. argument: a seq, or empty for now."""
    if context.io.fork is None:
        return SlashOutcome(["  this session cannot be forked from here"])
    if argument and not (argument.isascii() and argument.isdigit()):
        raise UsageProblem(f"/fork {one_line(argument, 60)}: name an event by its number, or nothing for now")
    made = await context.io.fork(int(argument) if argument else None)
    return SlashOutcome([f"  {one_line(line, 500)}" for line in made])
