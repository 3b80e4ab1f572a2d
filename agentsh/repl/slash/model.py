"""/model: show or change the model."""

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.picker import Item, Menu
from agentsh.repl.status import crowded


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Change to the model that was named; without a name, choose one of those that are known."""
    session, known = context.session, list(context.io.models)
    if argument:
        before = session.state.model
        await session.set_model(argument)
        same = session.state.model == before  # a change is a fact, and shows itself
        rows = [f"  model: {one_line(before, 200)}, as before"] if same else []
        return SlashOutcome([*rows, *crowded(session.state, session.budget_tokens)])
    if context.io.pick is not None:
        items = [Item(name, name) for name in dict.fromkeys([session.state.model, *known])]
        chosen = await context.io.pick(Menu("Models · any other: /model NAME", items, session.state.model))
        return SlashOutcome() if chosen in (None, session.state.model) else await run(context, str(chosen))
    rows = [f"  model: {one_line(session.state.model, 200)}"]
    others = [one_line(name, 200) for name in known if name != session.state.model]
    if others:
        rows.append("  known: " + ", ".join(others))
    return SlashOutcome([*rows, "  change it with /model NAME"])
