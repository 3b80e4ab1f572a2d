"""Keeps every line under its limit: the largest strings of a payload move to the blob store until it fits."""

from collections.abc import Mapping
from typing import Any

from agentsh.base.errors import LogWriteFailed
from agentsh.base.text import head_bytes, tail_bytes
from agentsh.log.frame import Ready, dump_json, make_ready
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
SMALLEST_BARE_BYTES = 150
"""The same for references without ends, which serve where hundreds of strings share a line."""


def reference(ref: str, text: str, size: int, end_bytes: int = END_BYTES) -> dict[str, Any]:
    """Return what stands in a line for a text that lives in a blob. end_bytes: of the head and tail that stay."""
    return {"blob": ref, "bytes": size, "head": head_bytes(text, end_bytes), "tail": tail_bytes(text, end_bytes)}


def spill(draft: Draft, blobs: BlobStore) -> Draft:
    """Return `draft` as it is where it fits, else with its largest strings as references to durable blobs.

    Raises:
        LogWriteFailed: a blob could not be written, or no strings are left to move and it is still too long.
    """
    return fitted(draft, blobs).draft


def fitted(draft: Draft, blobs: BlobStore) -> Ready:
    """Return what `spill` does, made ready.

    Raises:
        LogWriteFailed: as `spill`.
    """
    fits = as_it_is(draft)
    if fits is not None:
        return fits
    for smallest, end_bytes in ((SMALLEST_BYTES, END_BYTES), (SMALLEST_BARE_BYTES, 0)):
        payload = _spilled(draft.payload, blobs, smallest, end_bytes)
        if payload is not None:
            return make_ready(draft._replace(payload=payload), dump_json(dict(payload)))
    raise LogWriteFailed(f"a {draft.type} of {_size(draft.payload):,} bytes has too many parts for a line of the log")


def as_it_is(draft: Draft) -> Ready | None:
    """Return a draft made ready where a line takes it as it is, else None."""
    for value in draft.payload.values():
        if type(value) is str and len(value) > MAX_LINE_BYTES:
            return None  # told without a look at each character
    text = dump_json(dict(draft.payload))
    size = len(text) if text.isascii() else len(text.encode())
    return make_ready(draft, text) if size <= MAX_LINE_BYTES - ENVELOPE_BYTES else None


def _spilled(payload: Any, blobs: BlobStore, smallest: int, end_bytes: int) -> Any | None:
    """Return the payload with strings moved out until it fits, or None where that is not enough."""
    while _size(payload) > MAX_LINE_BYTES - ENVELOPE_BYTES:
        path, text = _largest(payload, ())
        if text is None or len(text) < smallest:
            return None
        data = text.encode("utf-8", "surrogatepass")
        payload = _replaced(payload, path, reference(blobs.put(data), text, len(data), end_bytes))
    return payload


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
