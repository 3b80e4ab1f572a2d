"""/output: what the tools of the newest turn printed, whole. The scrollback has its first and its last lines."""

import asyncio

from agentsh.base.text import clean, middle_cut, one_line
from agentsh.context.items import ending
from agentsh.context.state import AgentItem, CommandItem, TalkItem, UserItem
from agentsh.events.base import Text
from agentsh.repl.commands import SlashContext, SlashOutcome

MAX_BYTES = 200_000
"""Of one result: what is more is in the log, and an editor reads it better."""


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show it, the newest call first: that is the one that was asked for."""
    found: list[tuple[str, Text]] = []
    for item in reversed(context.session.state.talk):
        found += _results(item, context)
        if found and isinstance(item, UserItem) and item.opens_turn:
            break
    whole = [(head, await asyncio.to_thread(_lines, context, text)) for head, text in found]
    told = [(head, lines) for head, lines in whole if len(lines) > 1] or whole  # one line stands in the scrollback
    rows = [row for head, lines in told for row in ("", f"● {head}", *(f"  {line}" for line in lines))]
    return SlashOutcome(rows[1:] or ["  no tool has run yet"])


def _lines(context: SlashContext, text: Text) -> list[str]:
    shown = middle_cut(context.io.text(text), MAX_BYTES, "the whole is in the log")
    return clean(shown).expandtabs(8).rstrip("\n").split("\n")


def _results(item: TalkItem, context: SlashContext) -> list[tuple[str, Text]]:
    """Return the results of an item, the newest first: in a line what it was, and its text."""
    if isinstance(item, CommandItem):
        return [(f"! {ending(item.fact)}", item.fact.text)]
    if not isinstance(item, AgentItem):
        return []
    ended = [(call.name, call.result) for call in reversed(item.calls) if call.result is not None]
    return [
        (_head(name, context.io.text(r.for_user)), r.for_model if r.output is None else r.output) for name, r in ended
    ]


def _head(name: str, said: str) -> str:
    first = said.partition("\n")[0]
    return one_line(first if first.startswith(name) else f"{name} {first}", 200)
