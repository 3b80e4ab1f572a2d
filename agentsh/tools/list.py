"""The tool that lists a directory."""

from typing import Annotated

from agentsh.base.errors import PathRefused
from agentsh.base.text import one_line, plural
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.ports.workspace import Entry
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES

MAX_NAMES = 500


@tool("list", effects={"read"}, subject="path")
def list_(ctx: ToolContext, path: Annotated[str, Field(description="directory")] = ".") -> ToolOutcome:
    """List a directory. Directories end in /, links in @, files show their size in bytes. At most 500 names."""
    name = ctx.workspace.relative(path or ".")
    try:
        entries = ctx.workspace.entries(name)
    except PathRefused as error:
        instead = "; use read" if "no directory" in error.message else ""
        instead = "; use glob for patterns" if any(c in path for c in "*?[{") else instead
        raise PathRefused(error.message + instead) from None
    summary = f"list {one_line(name, 100)} · {len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"
    if not entries:
        return ToolOutcome(f"[{name} is empty]", summary)
    lines = shown([(entry, entry.path.rpartition("/")[2]) for entry in entries])
    if len(lines) < len(entries):
        rest = plural(len(entries) - len(lines), "more name")
        lines.append(f"[{rest} left out: list a directory below {name}, or use glob]")
    return ToolOutcome("\n".join(lines), summary)


TOOL = list_


def shown(entries: list[tuple[Entry, str]]) -> list[str]:
    """Return one line for each entry and its name, as many as there is room for."""
    lines: list[str] = []
    room = MAX_SHOWN_BYTES
    for entry, name in entries[:MAX_NAMES]:
        line = (
            name.replace("\n", "\\n")
            + {"directory": "/", "link": "@", "other": "|", "file": f"\t{entry.size}"}[entry.kind]
        )
        room -= len(line.encode("utf-8", "surrogatepass")) + 1
        if room < 0:
            break
        lines.append(line)
    return lines
