"""/cost: what the session and its running turn have used."""

from agentsh.events.base import Usage
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Say it in two lines."""
    state = context.session.state
    rows = [_row("session", state.totals.usage, state.totals.cost_usd)]
    if state.turn is not None:
        rows.append(_row("this turn", state.turn.usage, state.turn.cost_usd))
    return SlashOutcome(rows)


def _row(name: str, usage: Usage, cost_usd: float | None) -> str:
    share = f" ({usage.cached * 100 // usage.prompt} % cached)" if usage.prompt else ""
    cost = "price not known" if cost_usd is None else f"${cost_usd:.4f}"
    return f"  {name:<10} {usage.prompt:,} tokens in{share} · {usage.completion:,} out · {cost}"
