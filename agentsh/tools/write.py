"""The tool that writes a whole file."""

from typing import Annotated

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line, plural
from agentsh.ports.tool import Edit, ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_FILE_BYTES, line_count, load


@tool("write", effects={"write"}, subject="path", tryable=True)
def write(
    ctx: ToolContext,
    path: Annotated[str, Field(description="file, relative to the workspace")],
    content: Annotated[str, Field(description="the whole new text")],
) -> ToolOutcome:
    """Create a file, or replace one whole, as UTF-8. Missing directories are made. At most 10 MB."""
    name = ctx.workspace.relative(path)
    try:
        after = content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailed(f"content has half a surrogate pair at character {error.start}; UTF-8 has no such") from None
    if len(after) > MAX_FILE_BYTES:
        raise ToolFailed(f"content has {len(after):,} bytes, more than the limit of {MAX_FILE_BYTES:,}")
    before = load(ctx.workspace, path) if ctx.workspace.exists(path) else None
    lines = plural(line_count(content), "line")
    if before == after:
        return ToolOutcome(f"{name} has this content already ({lines})", f"write {one_line(name, 100)} · unchanged")
    ctx.workspace.write_bytes(path, after)
    did = "created" if before is None else "replaced"
    return ToolOutcome(
        f"{did} {name} ({lines}, {plural(len(after), 'byte')})",
        f"write {one_line(name, 100)} · {did}, {lines}",
        edits=(Edit(name, before, after),),
    )


TOOL = write
