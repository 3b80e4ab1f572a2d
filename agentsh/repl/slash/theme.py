"""/theme: show or change the colours of this session."""

from agentsh.base.errors import UsageProblem
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.looks import THEMES
from agentsh.repl.picker import Item, Menu

MEANINGS = {
    "auto": "by the background, where the terminal tells it; else its own colours",
    "light": "for a light background",
    "dark": "for a dark background",
    "plain": "no colours",
}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Change to the theme that was named; without a name, choose one. The scrollback stays as it is."""
    looks = context.io.looks
    if not looks.possible:
        return SlashOutcome(["  no colours here: NO_COLOR is set, or the terminal has none"])
    if not argument and context.io.pick is not None:
        items = [Item(name, name, (MEANINGS[name],)) for name in THEMES]
        argument = await context.io.pick(Menu("Which colours?", items, looks.theme)) or ""
        if not argument:
            return SlashOutcome()
    if not argument:
        rows = [f"  {'▸' if name == looks.theme else ' '} {name:<5} {MEANINGS[name]}" for name in THEMES]
        return SlashOutcome([*rows, "  change it with /theme NAME"])
    if argument not in THEMES:
        raise UsageProblem(f"there is no theme {argument[:40]!r}", hint="/theme " + " | ".join(THEMES))
    looks.choose(argument)
    own = " (this terminal does not say that it has 256: its own are used)" if looks.own_colours else ""
    return SlashOutcome([f'  theme: {argument}{own}; to keep it: theme = "{argument}" below [ui] in agentsh.toml'])
