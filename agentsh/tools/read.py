"""The tool that reads a file."""

from typing import Annotated

from agentsh.base.text import head_bytes, one_line
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES, TextFile, decode, kind_of_binary, load
from agentsh.workspace.capture import binary_note

MAX_LINES = 2_000


@tool("read", effects={"read"}, subject="path")
def read(
    ctx: ToolContext,
    path: Annotated[str, Field(description="file, relative to the workspace")],
    offset: Annotated[int, Field(description="first line, from 1")] = 1,
    limit: Annotated[int, Field(description="number of lines")] = MAX_LINES,
) -> ToolOutcome:
    """Read a text file: its exact text, without line numbers. At most 2,000 lines, 28 kB a call; then use offset."""
    name = ctx.workspace.relative(path)
    data = load(ctx.workspace, path)
    file = decode(data)
    if file is None:
        kind = kind_of_binary(data)
        note = f"{name} is a {kind}, not text; it cannot be shown.\n{binary_note(data, len(data))}"
        return ToolOutcome(note, f"read {one_line(name, 100)} · {kind}, {len(data):,} bytes")
    return _shown(name, file, max(offset, 1), min(max(limit, 1), MAX_LINES))


TOOL = read


def _shown(name: str, file: TextFile, first: int, limit: int) -> ToolOutcome:
    lines = file.text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    total = len(lines)
    about = f"read {one_line(name, 100)}"
    if not total:
        return ToolOutcome(f"[{name} is empty]", f"{about} · empty")
    if first > total:
        return ToolOutcome(
            f"{name} has only {total} lines: offset {first} is past its end.", f"{about} · past its end", "error"
        )
    body, last, cut = _fitting(lines, first, limit)
    head = list(file.remarks)
    if last - first + 1 < total:
        head.insert(0, f"lines {first}-{last} of {total}")
    if last == total and not file.text.endswith("\n"):
        head.append("no line end after the last line")
    text = f"[{name}: {', '.join(head)}]\n{body}" if head else body
    if cut:
        text += f"\n[line {last} is cut: it has {len(lines[last - 1].encode('utf-8', 'surrogatepass')):,} bytes]\n"
    if last < total:
        text += f"[{total - last} more lines: read on with offset={last + 1}]"
    part = f"{total} lines" if last - first + 1 == total else f"lines {first}-{last} of {total}"
    return ToolOutcome(text, f"{about} · {part}")


def _fitting(lines: list[str], first: int, limit: int) -> tuple[str, int, bool]:
    """Return the lines from `first` on that fit, the number of the last, and whether that one had to be cut."""
    kept: list[str] = []
    room = MAX_SHOWN_BYTES
    for line in lines[first - 1 : first - 1 + limit]:
        room -= len(line.encode("utf-8", "surrogatepass")) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return head_bytes(lines[first - 1], MAX_SHOWN_BYTES), first, True
    return "".join(line + "\n" for line in kept), first - 1 + len(kept), False
