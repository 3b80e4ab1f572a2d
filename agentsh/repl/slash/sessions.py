"""/sessions: all sessions, searched as you type over titles, first prompts and text; Enter goes on with one."""

import asyncio

from agentsh.base.text import one_line
from agentsh.repl.backend import Listed
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.going_on import go_to
from agentsh.repl.picker import Item, Menu, numbered


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Open the menu; without one, list the newest by number."""
    backend, own = context.backend, context.session.state.id
    listed = await asyncio.to_thread(backend.sessions)
    menu = Menu("Sessions", [_item(s, own) for s in listed], own, backend.preview, backend.search)
    if context.io.pick is None:
        columns = context.io.display().get_size().columns - 1
        named = [Item(item.key, f"{item.key}  {item.label}", item.notes) for item in menu.items]
        return SlashOutcome(
            [*numbered(Menu(menu.title, named), columns), "  go on with one: /resume N, or /resume ID"]
        )
    key = await context.io.pick(menu)
    return SlashOutcome() if key is None else await go_to(context, key)


def _item(listed: Listed, own: str) -> Item:
    about = ("this one", *listed.about) if listed.id == own else listed.about
    label = one_line(listed.title or listed.first, 300) or "(nothing was said)"
    return Item(listed.id, label, about, f"{listed.id} {listed.first}")
