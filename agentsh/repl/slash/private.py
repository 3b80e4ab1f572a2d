"""/private: keep what is typed from here on out of the history file, or keep it there again."""

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.repl.commands import SlashContext, SlashOutcome

WORDS = {"on": True, "off": False}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Change it, or take it as `on` or `off` says. The log of the session is another matter: it keeps all."""
    if argument and argument not in WORDS:
        raise UsageProblem(f"/private {one_line(argument, 40)}: only `on` or `off` can be said")
    io = context.io
    io.private = WORDS.get(argument, not io.private)
    if io.private:
        return SlashOutcome(["  private: the history keeps nothing that you type from here on; /private ends it"])
    return SlashOutcome(["  what you type is kept in the history again"])
