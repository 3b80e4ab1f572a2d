"""/todo: the todo list as it stands."""

from agentsh.base.text import one_line, plural
from agentsh.repl.commands import SlashContext, SlashOutcome

MARKS = {"done": "☑", "completed": "☑", "in_progress": "▶"}


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show it."""
    rows, open_ = [], 0
    for item in context.session.state.todo:
        known = item if isinstance(item, dict) else {"text": item}
        mark = MARKS.get(str(known.get("status")), "☐")
        open_ += mark != "☑"
        text = known.get("text") or known.get("content") or known.get("title") or item
        rows.append(f"  {mark} {one_line(str(text), 300)}")
    if not rows:
        return SlashOutcome(["  there is no todo list yet"])
    return SlashOutcome([*rows, f"  {plural(open_, 'item')} of {len(rows):,} left"])
