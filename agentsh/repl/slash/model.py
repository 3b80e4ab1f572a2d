"""/model: show or change the model."""

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Change to the model that was named; without a name, say which it is and which are known."""
    session, known = context.session, list(context.io.models)
    if argument:
        before = session.state.model
        await session.set_model(argument)
        same = session.state.model == before  # a change is a fact, and shows itself
        return SlashOutcome([f"  model: {one_line(before, 200)}, as before"] if same else [])
    rows = [f"  model: {one_line(session.state.model, 200)}"]
    others = [one_line(name, 200) for name in known if name != session.state.model]
    if others:
        rows.append("  known: " + ", ".join(others))
    return SlashOutcome([*rows, "  change it with /model NAME"])
