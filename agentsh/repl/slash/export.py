"""/export: the session as Markdown, as a page of HTML, or as the lines of its log, in a new file."""

import asyncio
from pathlib import Path
from typing import cast, get_args

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.repl.backend import ExportFormat
from agentsh.repl.commands import SlashContext, SlashOutcome

ENDINGS = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".jsonl": "jsonl"}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Write it. The form is named, or told by the file's ending; else it is Markdown.

    Raises:
        UsageProblem: a word is in the place of the form that is none.
    """
    word, _, rest = argument.partition(" ")
    form, name = (word, rest.strip()) if word in get_args(ExportFormat) else ("", argument)
    if not form and word.isalnum() and word.isascii() and not Path(name).suffix:  # `pdf`, `pdf x`: no name of a file
        raise UsageProblem(
            f"/export {one_line(argument, 60)}: the forms are {', '.join(get_args(ExportFormat))}",
            hint="/export md NOTES, /export page.html; without a form the ending tells it",
        )
    file = Path(name) if name else None
    if not form:
        form = ENDINGS.get(file.suffix.lower(), "md") if file is not None else "md"
    written = await asyncio.to_thread(context.backend.export, cast(ExportFormat, form), file)
    return SlashOutcome([f"  written: {one_line(str(written), 1_000)}"])
