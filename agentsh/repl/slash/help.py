"""/help: what can be typed."""

from agentsh.repl.commands import COMMANDS, SlashContext, SlashOutcome

KEYS = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Up, Down, Ctrl-R", "history"),
    ("Ctrl-C", "interrupt a turn; clear the line; twice: leave"),
    ("Ctrl-D", "leave"),
)


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List commands and keys."""
    commands = [(f"/{name} {command.usage}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    return SlashOutcome([f"  {left:<18} {right}" for left, right in (*commands, *KEYS)])
