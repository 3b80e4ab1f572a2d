"""/btw: ask something aside: answered from the context as it stands, and in no later request."""

from agentsh.base.errors import UsageProblem
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Ask it. Question and answer are facts, and show themselves."""
    if not argument:
        raise UsageProblem("/btw QUESTION: what is to be asked aside?")
    answer = await context.session.ask_aside(argument)
    return SlashOutcome(interrupted=answer is None)
