"""/diff: what the session has changed, as a patch in colours."""

import asyncio

from agentsh.base.text import clean, plural
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.rows import Row, cut

MAX_ROWS = 2_000
_STYLES = (("+++", "name"), ("---", "name"), ("diff ", "name"), ("@@", "mark"), ("+", "add"), ("-", "del"))


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show it."""
    lines = await asyncio.to_thread(context.backend.diff)
    if not lines:
        return SlashOutcome(["  nothing was changed yet"])
    columns = context.io.display().get_size().columns
    rows = [_row(line, columns) for line in lines[:MAX_ROWS]]
    if len(lines) > MAX_ROWS:
        more = f"  … {plural(len(lines) - MAX_ROWS, 'more line')}: agentsh diff {context.session.state.id}"
        rows.append([("class:dim", more)])
    return SlashOutcome(page=rows)


def _row(line: str, columns: int) -> Row:
    style = next((name for mark, name in _STYLES if line.startswith(mark)), "dim")
    return [(f"class:{style}", cut("  " + clean(line).replace("\n", " ").expandtabs(4), columns - 1))]
