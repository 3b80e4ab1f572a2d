"""/help: what can be typed."""

import asyncio

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.repl import plain
from agentsh.repl.commands import COMMANDS, SlashContext, SlashOutcome
from agentsh.repl.keys import HELP

COLUMN = 18
"""Of the names."""


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List commands, or keys."""
    if argument == "keys":
        keys = HELP if context.io.plain is None else plain.HELP
        return SlashOutcome([f"  {left:<18} {right}" for left, right in keys])
    if argument:
        raise UsageProblem(f"/help {one_line(argument, 40)}: only `keys` can be said", hint="/help, or /help keys")
    custom = await asyncio.to_thread(context.io.custom)
    commands = [(f"/{name} {command.usage}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    own = [(f"/{name} {c.usage}".rstrip(), c.summary or c.file) for name, c in custom.items() if name not in COMMANDS]
    commands = [*commands, *own, ("/help keys", "what the keys do"), ("!COMMAND", "run it in the workspace")]
    return SlashOutcome([row for left, right in commands for row in _rows(left, one_line(right, 200))])


def _rows(left: str, right: str) -> list[str]:
    """Return a command and what it does, below it where it is longer than the column."""
    if len(left) <= COLUMN:
        return [f"  {left:<{COLUMN}} {right}"]
    return [f"  {left}", f"  {'':<{COLUMN}} {right}"]
