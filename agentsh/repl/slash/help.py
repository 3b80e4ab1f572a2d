"""/help: what can be typed."""

from agentsh.repl.commands import COMMANDS, SlashContext, SlashOutcome
from agentsh.repl.keys import HELP


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List commands, or keys."""
    if argument == "keys":
        return SlashOutcome([f"  {left:<18} {right}" for left, right in HELP])
    commands = [(f"/{name} {command.usage}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    return SlashOutcome([f"  {left:<18} {right}" for left, right in (*commands, ("/help keys", "what the keys do"))])
