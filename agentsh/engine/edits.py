"""A changed file as a fact: hashes and a diff."""

import hashlib
from collections.abc import Iterator
from itertools import chain

from agentsh.events.tool import CodeEdit
from agentsh.ports.tool import Edit

MAX_DIFF_BYTES = 400_000
"""Of a file. Above this nobody reads a diff, and the fact holds sizes only."""
MAX_COMPARED = 2_000
"""Lines compared on each side once equal beginnings and ends are set aside: difflib needs the square of that time in
the worst case, 0.2 s for 2,000 lines. What is longer is shown as replaced whole."""
CONTEXT_LINES = 3


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
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    changed = (before[head : len(before) - tail], after[head : len(after) - tail])
    if max(map(len, changed)) > MAX_COMPARED:
        return _replaced(before, after, head, tail)
    # The shared ends are left out of the comparison but for the context, and put back into the line numbers.
    skip = max(head - CONTEXT_LINES, 0)
    beyond = max(tail - CONTEXT_LINES, 0)
    old, new = before[skip : len(before) - beyond], after[skip : len(after) - beyond]
    import difflib  # not before a first edit

    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    return "".join(chain.from_iterable(_hunk(old, new, group, skip) for group in groups))


def _shared(a: list[str], b: list[str]) -> int:
    """Return how many lines two lists begin with in common."""
    most = min(len(a), len(b))
    return next((n for n in range(most) if a[n] != b[n]), most)


def _replaced(before: list[str], after: list[str], head: int, tail: int) -> str:
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    lines = [f"@@ -{_range(head, len(gone))} +{_range(head, len(come))} @@"]
    lines += ["-" + line for line in gone] + ["+" + line for line in come]
    return "\n".join(lines) + "\n"


def _hunk(
    before: list[str], after: list[str], group: list[tuple[str, int, int, int, int]], skip: int
) -> Iterator[str]:
    first, last = group[0], group[-1]
    old, new = _range(first[1] + skip, last[2] - first[1]), _range(first[3] + skip, last[4] - first[3])
    yield f"@@ -{old} +{new} @@\n"
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from (f" {line}\n" for line in before[i1:i2])
            continue
        yield from (f"-{line}\n" for line in before[i1:i2])
        yield from (f"+{line}\n" for line in after[j1:j2])


def _range(start: int, length: int) -> str:
    """Return a range as unified diffs write it: counted from 1, an empty one named by the line before it."""
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def code_edit(call: str, edit: Edit, *, snapshot: str | None = None) -> CodeEdit:
    """Return the fact for an edit. snapshot: of the workspace after the call.

    Takes up to a second for a file of the largest size: call it in a thread.
    """
    before, after = _ref(edit.before), _ref(edit.after)
    return CodeEdit(call=call, path=edit.path, diff=diff(edit), before=before, after=after, snapshot=snapshot)
