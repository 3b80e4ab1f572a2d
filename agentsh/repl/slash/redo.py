"""/redo: undo the last rewind that holds, files included."""

from agentsh.repl.commands import SlashContext, SlashOutcome
from agentsh.repl.slash.rewind import told


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Bring everything back to how it was just before the rewind."""
    if not context.session.state.undoable:
        return SlashOutcome(["  there is no rewind to undo"])
    outcome = await context.session.undo_rewind()
    return SlashOutcome(told(outcome)[1:])
