"""/permissions: when the user is asked: the mode, the rules in force, and what was allowed so far."""

import asyncio
from collections.abc import Iterable

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.slash.mode import MEANINGS


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List them, in the order in which they decide."""
    state, rules = context.session.state, await asyncio.to_thread(context.backend.granted)
    rows = [f"  {'mode':<9} {state.mode}: {MEANINGS[state.mode]}", f"  {'sandbox':<9} {context.io.sandbox}"]
    for name, given in (
        ("deny", rules.deny),
        ("ask", rules.ask),
        ("allow", rules.allow),
        ("project", rules.project),
        ("session", sorted(state.grants)),
    ):
        rows += _rows(name, given)
    rows.append("  deny, ask and allow: [permissions] of agentsh.toml · project and session: what you allowed")
    return SlashOutcome(rows)


def _rows(name: str, given: Iterable[str]) -> list[str]:
    shown = [one_line(rule, 300) for rule in given] or ["nothing"]
    return [f"  {name if n == 0 else '':<9} {rule}" for n, rule in enumerate(shown)]
