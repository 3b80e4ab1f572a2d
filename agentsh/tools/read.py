"""The tool that reads a file."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from agentsh.base.text import clean, head_bytes, one_line, plural
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES, TextFile, decode, kind_of_binary, load
from agentsh.workspace.capture import binary_note

if TYPE_CHECKING:
    from agentsh.tools.notebook import Notebook

MAX_LINES = 2_000
NOTEBOOK = ".ipynb"


@tool("read", effects={"read"}, subject="path")
async def read(
    ctx: ToolContext,
    path: Annotated[str, Field(description="file, relative to the workspace")],
    offset: Annotated[int, Field(description="first line, from 1; of a PDF: page")] = 1,
    limit: Annotated[int, Field(description="number of lines or pages")] = MAX_LINES,
) -> ToolOutcome:
    """Read a text file: its exact text, without line numbers. At most 2,000 lines, 28 kB a call; then use offset.

    Images are shown, notebooks as cells, PDFs as text.
    """
    name = ctx.workspace.relative(path)
    data = await asyncio.to_thread(load, ctx.workspace, path)
    first, limit = max(offset, 1), min(max(limit, 1), MAX_LINES)
    if data.startswith(b"%PDF-"):
        return await _pdf(name, data, first, limit)
    return await asyncio.to_thread(_read, name, data, first, limit)


TOOL = read


def _read(name: str, data: bytes, first: int, limit: int) -> ToolOutcome:
    from agentsh.workspace.images import image_attachment, media_type_of

    if media_type_of(data) is not None:
        image = image_attachment(name, data)
        size = f"{image.width} × {image.height}"
        note = f"[{name}: {image.media_type}, {size} pixels]"
        return ToolOutcome(note, f"read {one_line(name, 100)} · {kind_of_binary(data)}, {size}", images=(image,))
    file = decode(data)
    if file is None:
        kind = kind_of_binary(data)
        note = f"{name} is a {kind}, not text; it cannot be shown.\n{binary_note(data, len(data))}"
        return ToolOutcome(note, f"read {one_line(name, 100)} · {kind}, {len(data):,} bytes")
    cells = _cells(file.text) if name.endswith(NOTEBOOK) else None
    if cells is not None:
        what = f"{cells.language} notebook, {plural(cells.cells, 'cell')}, not its JSON"
        return _shown(name, TextFile(cells.text, "utf-8", b""), first, limit, [what])
    return _shown(name, file, first, limit, file.remarks)


def _cells(text: str) -> "Notebook | None":
    from agentsh.tools.notebook import notebook

    return notebook(text)


async def _pdf(name: str, data: bytes, first: int, limit: int) -> ToolOutcome:
    from agentsh.tools.pdf import pdf_pages

    pages = await pdf_pages(name, data, first=first, count=limit, max_bytes=MAX_SHOWN_BYTES)
    about = f"read {one_line(name, 100)} · "
    if first > pages.total:
        text = f"{name} has only {plural(pages.total, 'page')}: offset {first} is past its end."
        return ToolOutcome(text, f"{about}past its end", "error")
    shown: list[str] = []
    room = MAX_SHOWN_BYTES
    for number, text in enumerate(pages.texts, first):
        whole = f"--- page {number} ---\n{clean(text).strip() or '[no text: it may be a picture]'}\n"
        room -= len(whole.encode("utf-8", "surrogatepass"))
        if room < 0 and shown:
            break
        shown.append(whole if room >= 0 else f"{head_bytes(whole, MAX_SHOWN_BYTES)}\n[page {number} is cut]\n")
    last = first - 1 + len(shown)
    part = f"pages {first}-{last} of {pages.total}" if len(shown) > 1 else f"page {first} of {pages.total}"
    rest = pages.total - last
    more = f"[{plural(rest, 'more page')}: read on with offset={last + 1}]" if rest else ""
    return ToolOutcome(f"[{name}: PDF, {part}]\n{''.join(shown)}{more}", f"{about}PDF, {part}")


def _shown(name: str, file: TextFile, first: int, limit: int, remarks: list[str]) -> ToolOutcome:
    lines = file.text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    total = len(lines)
    about = f"read {one_line(name, 100)}"
    if not total:
        return ToolOutcome(f"[{name} is empty]", f"{about} · empty")
    if first > total:
        return ToolOutcome(
            f"{name} has only {plural(total, 'line')}: offset {first} is past its end.",
            f"{about} · past its end",
            "error",
        )
    body, last, cut = _fitting(lines, first, limit)
    head = list(remarks)
    if last - first + 1 < total:
        head.insert(0, f"lines {first}-{last} of {total}")
    if last == total and not file.text.endswith("\n"):
        head.append("no line end after the last line")
    text = f"[{name}: {', '.join(head)}]\n{body}" if head else body
    if cut:
        text += f"\n[line {last} is cut: it has {len(lines[last - 1].encode('utf-8', 'surrogatepass')):,} bytes]\n"
    if last < total:
        text += f"[{total - last} more line{'s' if total - last > 1 else ''}: read on with offset={last + 1}]"
    part = plural(total, "line") if last - first + 1 == total else f"lines {first}-{last} of {total}"
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
