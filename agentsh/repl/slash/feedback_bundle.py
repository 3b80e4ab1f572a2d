"""/feedback-bundle: a file for a bug report: what happened and when, without what was said."""

import asyncio
from pathlib import Path

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Write it to a new file, and say what is in it."""
    file = Path(argument) if argument else None
    written = await asyncio.to_thread(context.backend.feedback_bundle, file)
    return SlashOutcome([
        f"  written: {one_line(str(written), 1_000)}",
        "  in it: version, system, settings without their texts, findings of doctor, and the log with every text "
        "replaced by its length. It is a zip of plain text: look into it before you send it.",
    ])  # fmt: skip
