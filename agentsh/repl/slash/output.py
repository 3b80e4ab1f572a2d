"""/output: the whole of what a tool or a command printed. The scrollback has it folded."""

import asyncio

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line, plural
from agentsh.repl.commands import SlashContext, SlashOutcome

MOST_LINES = 2_000
"""Of one output, half of them from its end; more are in the log."""


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Show the newest, or with a number an earlier one: 2 is the one before it."""
    outputs = context.io.outputs
    if not outputs:
        return SlashOutcome(["  nothing was printed yet"])
    if argument and not (argument.isascii() and argument.isdigit() and 1 <= int(argument[:9]) <= len(outputs)):
        raise UsageProblem(
            f"there is no output {one_line(argument, 20)!r}", hint=f"/output 1 is the newest of {len(outputs)}"
        )
    number = int(argument or 1)
    head, text = await asyncio.to_thread(outputs.printed, number - 1)
    lines = text.expandtabs(4).split("\n") if text.strip() else ["(nothing)"]
    left_out = len(lines) - MOST_LINES
    if left_out > 0:
        half = MOST_LINES // 2
        lines[half:-half] = [f"… {plural(left_out, 'more line')}: agentsh replay {context.session.state.id} --json"]
    earlier = f" · /output {number + 1}: the one before" if number < len(outputs) else ""
    return SlashOutcome([f"● {head}{earlier}", *(f"  {line}" for line in lines)])
