"""Keeps every line under its limit: the largest strings of a payload move to the blob store until it fits."""

from collections.abc import Mapping
from typing import Any

from agentsh.base.text import head_bytes, tail_bytes
from agentsh.log.frame import dump_json
from agentsh.log.record import Draft
from agentsh.log.store import BlobStore

MAX_LINE_BYTES = 25_000
"""Encoded, LF included. See docs/log-format.md."""
ENVELOPE_BYTES = 300
"""Room for everything but the payload: seq, ts, type, dur, cause, crc and their names."""
END_BYTES = 200
"""Size of the head and of the tail that stay in the line, for people."""
SMALLEST_BYTES = 600
"""Moving a string shorter than this out would not make the line shorter."""


def reference(ref: str, text: str, size: int) -> dict[str, Any]:
    """Return what stands in a line for a text that lives in a blob."""
    return {"blob": ref, "bytes": size, "head": head_bytes(text, END_BYTES), "tail": tail_bytes(text, END_BYTES)}


def spill(draft: Draft, blobs: BlobStore) -> Draft:
    """Return `draft` as it is where it fits, else with its largest strings as references to durable blobs.

    Raises:
        LogWriteFailed: a blob could not be written.
        ValueError: what is left has no large strings and is still too long (thousands of members).
    """
    limit = MAX_LINE_BYTES - ENVELOPE_BYTES
    size = _size(draft.payload)
    if size <= limit:
        return draft
    payload: Any = draft.payload
    while size > limit:
        path, text = _largest(payload, ())
        if text is None or len(text) < SMALLEST_BYTES:
            raise ValueError(f"a {draft.type} of {size:,} bytes has no string that could be moved to a blob")
        data = text.encode("utf-8", "surrogatepass")
        payload = _replaced(payload, path, reference(blobs.put(data), text, len(data)))
        size = _size(payload)
    return draft._replace(payload=payload)


def _size(payload: Mapping[str, Any]) -> int:
    return len(dump_json(dict(payload)).encode())


def _largest(value: Any, path: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], str | None]:
    """Return the path and text of the longest string below `value` that is not an end of a reference."""
    if isinstance(value, str):
        return path, value
    best: tuple[tuple[str | int, ...], str | None] = ((), None)
    if isinstance(value, Mapping):
        items: Any = () if "blob" in value else value.items()
    else:
        items = enumerate(value) if isinstance(value, list | tuple) else ()
    for key, inner in items:
        found = _largest(inner, (*path, key))
        if found[1] is not None and (best[1] is None or len(found[1]) > len(best[1])):
            best = found
    return best


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of `value` with what lies at `path` replaced; the rest is shared."""
    if not path:
        return new
    key = path[0]
    if isinstance(value, Mapping):
        return {k: _replaced(v, path[1:], new) if k == key else v for k, v in value.items()}
    return [_replaced(v, path[1:], new) if k == key else v for k, v in enumerate(value)]
