"""Jupyter notebooks as text: each cell with its kind, its source and the text of its outputs.

Source of the form: the JSON schema of nbformat 4 (nbformat.readthedocs.io). Other versions are shown as the JSON
that they are.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from agentsh.base.text import clean, middle_cut

MAX_OUTPUT_BYTES = 2_000
"""Of one output; its middle is left out."""


class Notebook(NamedTuple):
    """text: all cells. cells: how many. language: of the kernel."""

    text: str
    cells: int
    language: str


def notebook(text: str) -> Notebook | None:
    """Return the text of a notebook, or None where it is none, or one that does not read."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cells = found.get("cells") if isinstance(found, dict) and found.get("nbformat") == 4 else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None
    kernel = _dict(_dict(found.get("metadata")).get("kernelspec"))
    language = _dict(_dict(found.get("metadata")).get("language_info")).get("name") or kernel.get("language")
    lines = [line for number, cell in enumerate(cells, 1) for line in _cell(number, cell)]
    return Notebook("".join(line + "\n" for line in lines), len(cells), str(language or "unknown language"))


def _cell(number: int, cell: dict[str, Any]) -> Iterator[str]:
    count = cell.get("execution_count")
    ran = f" [{count}]" if isinstance(count, int) else ""
    yield f"--- cell {number}: {clean(str(cell.get('cell_type')))}{ran} ---"
    yield from _lines(_joined(cell.get("source")))
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        text = _output(_dict(output))
        if text.strip():
            yield f"--- output of cell {number} ---"
            yield from _lines(middle_cut(clean(text), MAX_OUTPUT_BYTES))


def _output(output: dict[str, Any]) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        return _joined(output.get("text"))
    if kind == "error":
        return f"{output.get('ename')}: {output.get('evalue')}\n" + _joined(output.get("traceback"), "\n")
    data = _dict(output.get("data"))
    others = "".join(
        f"[{name}]\n" for name in data if name.startswith(("image/", "application/", "video/", "audio/"))
    )
    return _joined(data.get("text/plain")) + ("\n" if others and "text/plain" in data else "") + others


def _joined(value: object, between: str = "") -> str:
    """Return a text, which the form has as one or as a list of its lines."""
    if isinstance(value, list):
        return between.join(str(part) for part in value)
    return value if isinstance(value, str) else ""


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
