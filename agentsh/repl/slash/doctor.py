"""/doctor: look at everything around the session, and say what to do about what is wrong."""

import asyncio

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.rows import Row, wrapped

STYLES = {"ok": "class:add", "warn": "class:ask", "fail": "class:alarm"}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show the findings."""
    columns = context.io.display().get_size().columns
    rows: list[Row] = []
    for found in await asyncio.to_thread(context.backend.doctor):
        head = f"{one_line(found.subject, 16):<16} "
        first, *more = wrapped(head + one_line(found.text, 500), max(columns - 9, 10))
        rows.append([("", "  "), (STYLES[found.state], f"{found.state:<5}"), ("", " " + first)])
        rows += [[("", f"        {row}")] for row in more]
        if found.do:
            rows += [[("class:dim", row)] for row in wrapped(f"        → {one_line(found.do, 500)}", columns - 1)]
    return SlashOutcome(page=rows)
