"""/tag: show, add and take away tags."""

from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Add the words that are named; a word with `-` before it is taken away."""
    session = context.session
    tags = dict.fromkeys(session.state.tags)
    for word in one_line(argument, 1_000).split():
        name = word.lstrip("+-")
        if word.startswith("-"):
            tags.pop(name, None)
        elif name:
            tags[name] = None
    await session.tag(tuple(tags))
    return SlashOutcome(["  tags: " + (one_line(", ".join(tags), 1_000) or "none") + "  (/tag NAME, /tag -NAME)"])
