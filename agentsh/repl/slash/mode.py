"""/mode: show or change when the user is asked."""

from typing import cast, get_args

from agentsh.base.errors import UsageProblem
from agentsh.events.session import Mode
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.picker import Item, Menu

MEANINGS = {
    "ask": "asks before edits and commands",
    "auto": "edits run; commands run where a sandbox holds them, else they are asked",
    "plan": "reads only",
    "yolo": "never asks",
}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Change to the mode that was named; without a name, choose one."""
    session = context.session
    if not argument and context.io.pick is not None:
        items = [Item(name, name, (meaning,)) for name, meaning in MEANINGS.items()]
        argument = await context.io.pick(Menu("When are you asked?", items, session.state.mode)) or ""
        if not argument:
            return SlashOutcome()
    if not argument:
        rows = [f"  {'▸' if name == session.state.mode else ' '} {name:<5} {MEANINGS[name]}" for name in MEANINGS]
        return SlashOutcome([*rows, "  change it with /mode NAME"])
    if argument not in get_args(Mode):
        raise UsageProblem(f"there is no mode {argument[:40]!r}", hint="/mode " + " | ".join(get_args(Mode)))
    same = argument == session.state.mode  # a change is a fact, and shows itself
    await session.set_mode(cast(Mode, argument))
    return SlashOutcome([f"  mode: {argument}, as before"] if same else [])
