"""The tool that finds files by their names."""

from typing import TYPE_CHECKING, Annotated

from agentsh.base.text import one_line, plural
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.ports.workspace import Entry, Workspace
from agentsh.tools.list import shown
from agentsh.tools.schema import Field, tool

if TYPE_CHECKING:
    from agentsh.tools.searching import Deadline

LIMIT_S = 10.0


@tool("glob", effects={"read"}, subject="pattern")
async def glob(
    ctx: ToolContext,
    pattern: Annotated[str, Field(description="e.g. *.py (in any directory) or src/**/*.{ts,tsx}")],
    path: Annotated[str, Field(description="directory")] = ".",
) -> ToolOutcome:
    """Find files by name, with their size in bytes; ignored ones are left out. At most 500 names, 10 s."""
    from agentsh.tools.searching import stoppable

    name = ctx.workspace.relative(path or ".")
    # A model that knows the whole path writes it all into the pattern.
    pattern = pattern.removeprefix(ctx.workspace.root.rstrip("/") + "/")
    prefix = "" if name == "." else name + "/"
    found, stopped = await stoppable(LIMIT_S, lambda deadline: _found(ctx.workspace, name, prefix, pattern, deadline))
    summary = f"glob {one_line(prefix + pattern, 100)} · {plural(len(found), 'file')}"
    lines = shown([(entry, entry.path) for entry in found])
    rest = len(found) - len(lines)
    if rest:
        lines.append(f"[{plural(rest, 'more name')} left out: use a narrower pattern, or path]")
    if stopped:
        summary += ", stopped early"
        lines.append(f"[stopped at the time limit of {LIMIT_S:g} s: there may be more; narrow it with path]")
    return ToolOutcome("\n".join(lines) or f"[no file below {name} matches {pattern}]", summary)


TOOL = glob


def _found(
    workspace: Workspace, name: str, prefix: str, pattern: str, deadline: "Deadline"
) -> tuple[list[Entry], bool]:
    """Return the files that fit, and whether the time was up before all were looked at."""
    from agentsh.tools.globs import matcher

    fits = matcher(pattern)
    found: list[Entry] = []
    try:
        for entry in workspace.walk(name):
            deadline.check()
            if fits(entry.path.removeprefix(prefix)):
                found.append(entry)
    except TimeoutError:
        return found, True
    return found, False
