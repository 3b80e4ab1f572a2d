"""The tool that lists a directory, or the files that fit a pattern."""

from typing import Annotated

from agentsh.base.text import one_line, plural
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.ports.workspace import Entry
from agentsh.tools.globs import matcher
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES

MAX_NAMES = 500


@tool("list", effects={"read"}, subject="path")
def list_(
    ctx: ToolContext,
    path: Annotated[str, Field(description="directory")] = ".",
    glob: Annotated[str | None, Field(description="e.g. *.py or src/**/*.ts")] = None,
) -> ToolOutcome:
    """List a directory; with glob, all files below it that match, ignored ones left out. At most 500 names.

    Directories end in /, links in @, files show their size in bytes.
    """
    # A model that knows one argument only writes the pattern into the path.
    if glob is None and any(c in path for c in "*?[{") and not ctx.workspace.exists(path):
        path, glob = ".", ctx.workspace.relative(path)
    name = ctx.workspace.relative(path or ".")
    if glob is None:
        entries = ctx.workspace.entries(name)
        what, about = "entry" if len(entries) == 1 else "entries", name
    else:
        prefix = "" if name == "." else name + "/"
        fits = matcher(glob)
        entries = [e for e in ctx.workspace.walk(name) if fits(e.path.removeprefix(prefix))]
        what, about = "file" if len(entries) == 1 else "files", prefix + glob
    summary = f"list {one_line(about, 100)} · {len(entries):,} {what}"
    if not entries:
        nothing = f"{name} is empty" if glob is None else f"no file below {name} matches {glob}"
        return ToolOutcome(f"[{nothing}]", summary)
    return ToolOutcome(_shown(entries, name, whole=glob is not None), summary)


TOOL = list_


def _shown(entries: list[Entry], directory: str, *, whole: bool) -> str:
    """Return one line for each entry. whole: paths from the workspace root instead of names."""
    lines: list[str] = []
    room = MAX_SHOWN_BYTES
    for entry in entries[:MAX_NAMES]:
        name = entry.path if whole else entry.path.rpartition("/")[2]
        line = name + {"directory": "/", "link": "@", "other": "|", "file": f"\t{entry.size}"}[entry.kind]
        room -= len(line.encode("utf-8", "surrogatepass")) + 1
        if room < 0:
            break
        lines.append(line)
    if len(lines) < len(entries):
        rest = plural(len(entries) - len(lines), "more name")
        lines.append(f"[{rest} left out: list a directory below {directory}, or use a narrower glob]")
    return "\n".join(lines)
