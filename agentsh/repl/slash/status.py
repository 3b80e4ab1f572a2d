"""/status: what this session is and what it has used."""

from agentsh.base.text import one_line
from agentsh.context.size import size_of
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Say it in a few lines."""
    state = context.session.state
    place = state.workspace
    usage, size, budget = state.totals.usage, size_of(state), context.session.budget_tokens
    cost = "price not known" if state.totals.cost_usd is None else f"${state.totals.cost_usd:.4f}"
    where = state.workspace_path or (
        f"{place.kind}" + (f" of {place.origin}" if place.origin else "") if place else "?"
    )
    facts = (
        ("session", state.id + (f" · {one_line(state.title, 100)}" if state.title else "")),
        ("model", one_line(state.model, 200)),
        ("mode", f"{state.mode} · sandbox {context.io.sandbox}"),
        ("workspace", one_line(where, 500)),
        ("turns", f"{state.totals.turns:,}"),
        ("context", f"{size} of {budget:,} tokens{f', {size.cached:.0%} cached' if size.cached is not None else ''}"),
        ("tokens", f"{usage.prompt:,} in ({usage.cached:,} cached) · {usage.completion:,} out · {cost}"),
        ("log", f"{state.last_seq:,} events"),
    )
    return SlashOutcome([f"  {name:<10} {value}" for name, value in facts])
