"""The tool that replaces text in a file."""

from typing import Annotated

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line, plural
from agentsh.ports.tool import Edit, ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_FILE_BYTES, decode, kind_of_binary, load


@tool("edit", effects={"write"}, subject="path", tryable=True)
def edit(
    ctx: ToolContext,
    path: Annotated[str, Field(description="file, relative to the workspace")],
    old: Annotated[str, Field(description="exact text to replace, with its indentation")],
    new: Annotated[str, Field(description="text to put there")],
    replace_all: Annotated[bool, Field(description="every occurrence, not just one")] = False,
) -> ToolOutcome:
    """Replace text in a file. old must occur exactly once, unless replace_all. Files of at most 10 MB.

    Whole lines that are there once, but for white space, are taken too.
    """
    from agentsh.tools.replacing import changed_lines, replace

    name = ctx.workspace.relative(path)
    before = load(ctx.workspace, path)
    file = decode(before)
    if file is None:
        raise ToolFailed(f"{name} is a {kind_of_binary(before)}, not text")
    try:
        replaced = replace(file.text, old, new, newline=file.newline, everywhere=replace_all)
    except ToolFailed as error:
        raise ToolFailed(f"{name}: {error.message}") from None
    after = file.encode(replaced.text)
    if after == before:
        raise ToolFailed(f"{name}: old and new are the same; nothing was changed")
    if len(after) > MAX_FILE_BYTES:
        raise ToolFailed(f"{name} would have {len(after):,} bytes, more than the limit of {MAX_FILE_BYTES:,}")
    ctx.workspace.write_bytes(path, after)
    added, removed = changed_lines(file.text, replaced.text)
    where = f"line {replaced.lines[0]}" if len(replaced.lines) == 1 else f"from line {replaced.lines[0]}"
    alike = "" if replaced.likeness == "exact" else f"; alike {replaced.likeness}, and indented as the file is"
    return ToolOutcome(
        f"edited {name} ({plural(len(replaced.lines), 'place')}, {where}{alike})",
        f"edit {one_line(name, 100)} +{added} -{removed}",
        edits=(Edit(name, before, after),),
    )


TOOL = edit
