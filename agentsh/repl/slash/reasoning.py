"""/reasoning: what the model thought in the newest turn that it thought in. The scrollback has a line for it."""

from agentsh.base.text import clean
from agentsh.context.state import AgentItem, UserItem
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show it, a part for each reply, in the order of the turn."""
    parts: list[str] = []
    for item in reversed(context.session.state.talk):
        if isinstance(item, AgentItem) and item.fact.reasoning is not None:
            parts.append(clean(context.io.text(item.fact.reasoning)).strip("\n"))
        elif isinstance(item, UserItem) and any(parts):
            break
    rows = [f"  {row}" for part in reversed(parts) if part.strip() for row in ["", *part.split("\n")]]
    return SlashOutcome(["∴ what the model thought:", *rows[1:]] if rows else ["  nothing was thought aloud yet"])
