"""A changed file as a fact: hashes and a diff."""

import difflib
import hashlib

from agentsh.events.tool import CodeEdit
from agentsh.ports.tool import Edit

MAX_DIFF_BYTES = 400_000
"""Above this a diff by lines takes seconds and nobody reads it; the fact then holds sizes only."""


def _ref(data: bytes | None) -> str | None:
    return None if data is None else "sha256:" + hashlib.sha256(data).hexdigest()


def _lines(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    if b"\0" in data or len(data) > MAX_DIFF_BYTES:
        return None
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"  # as diff(1) marks it
    else:
        lines.pop()
    return lines


def diff(edit: Edit) -> str:
    """Return the unified diff of an edit, without file names, or one line where there is none to be had."""
    before, after = _lines(edit.before), _lines(edit.after)
    if before is None or after is None:
        sizes = [0 if d is None else len(d) for d in (edit.before, edit.after)]
        return f"binary or large: {sizes[0]:,} bytes before, {sizes[1]:,} after\n"
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "".join(line + "\n" for line in lines)


def code_edit(call: str, edit: Edit) -> CodeEdit:
    """Return the fact for an edit."""
    return CodeEdit(
        call=call, path=edit.path, diff=diff(edit), before=_ref(edit.before), after=_ref(edit.after), snapshot=None
    )
