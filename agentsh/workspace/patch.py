"""Unified diffs of two trees, in the form that git and patch(1) read."""

import difflib
import os
import re
from collections.abc import Iterator

from agentsh.log.store import BlobStore
from agentsh.workspace.snapshot_diff import FileChange, content, lines_of
from agentsh.workspace.trees import Node

CONTEXT_LINES = 3
_PLAIN = re.compile(rb"[A-Za-z0-9_./+@%=:,~ -]+")
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def patch_of(blobs: BlobStore, change: FileChange) -> Iterator[bytes]:
    """Yield the lines of the patch of one path; binary files have one line that says so."""
    old, new = change.before, change.after
    if (old is None or old.kind == "d") and (new is None or new.kind == "d"):
        return  # an empty directory: no patch can say that
    if old is not None and new is not None and old.kind != new.kind:
        yield from patch_of(blobs, FileChange(change.path, "D", old, None))
        yield from patch_of(blobs, FileChange(change.path, "A", None, new))
        return
    if old is not None and new is not None and old.at == new.at and _mode(old) == _mode(new):
        return  # permissions of others: no patch can say that either
    name = _name(change.path, "a/"), _name(change.path, "b/")
    yield b"diff --git %b %b\n" % name
    if old is None:
        yield b"new file mode %b\n" % _mode(new)
    elif new is None:
        yield b"deleted file mode %b\n" % _mode(old)
    elif _mode(old) != _mode(new):
        yield b"old mode %b\nnew mode %b\n" % (_mode(old), _mode(new))
    if old is not None and new is not None and old.at == new.at:
        return
    before, after = lines_of(content(blobs, old)), lines_of(content(blobs, new))
    unkept = any(node is not None and node.kind == "f" and not node.at for node in (old, new))
    if before is None or after is None or unkept:
        yield b"Binary files differ\n"
        return
    if before or after:
        yield b"--- %b\n" % (b"/dev/null" if old is None else _ended(name[0]))
        yield b"+++ %b\n" % (b"/dev/null" if new is None else _ended(name[1]))
    yield from _hunks(before, after)


def _hunks(before: list[bytes], after: list[bytes]) -> Iterator[bytes]:
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        old, new = _range(first[1], last[2] - first[1]), _range(first[3], last[4] - first[3])
        yield f"@@ -{old} +{new} @@\n".encode()
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_line(b" ", line) for line in before[i1:i2])
                continue
            yield from (_line(b"-", line) for line in before[i1:i2])
            yield from (_line(b"+", line) for line in after[j1:j2])


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"


def _range(start: int, length: int) -> str:
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _mode(node: Node | None) -> bytes:
    if node is not None and node.kind == "l":
        return b"120000"
    return b"100755" if node is not None and node.mode & 0o100 else b"100644"


def _name(path: str, prefix: str) -> bytes:
    """Return a name as git quotes it."""
    raw = os.fsencode(prefix + path)
    if _PLAIN.fullmatch(raw):
        return raw
    quoted = "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw)
    return f'"{quoted}"'.encode()


def _ended(name: bytes) -> bytes:
    """Return a name that patch(1) reads to its end although there is a space in it."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name
