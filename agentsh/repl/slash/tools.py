"""/tools: what the model is offered, and the size of it."""

import json

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List the tools with their first line."""
    environment = context.session.state.environment
    text = context.io.text(environment.tools) if environment is not None else "[]"
    try:
        tools = json.loads(text)
    except ValueError:
        return SlashOutcome(["  the list of tools cannot be read any more; `agentsh resume` records it anew"])
    rows = []
    for tool in tools:
        first = str(tool.get("description", "")).strip().partition("\n")[0]
        rows.append(f"  {one_line(str(tool.get('name')), 20):<12} {one_line(first, 300)}")
    return SlashOutcome([*rows, f"  {len(text.encode()):,} bytes in each request"])
