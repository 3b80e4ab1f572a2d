"""Old payloads to new ones, on read only: pure functions by event type. Old lines are never rewritten.

Format 1 is the first format, so the table is empty; the mechanism and its tests stand so that the first
change of a payload is one function and one line here, tested against the logs in tests/golden.
"""

from collections.abc import Callable, Mapping
from typing import Any

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]

UPCASTERS: dict[str, tuple[Upcaster, ...]] = {}
"""Per type, applied in order; each must leave a payload that is new already, or that makes no sense, as it is.

Whoever adds one raises `VERSION` in `events/summary.py`, so that rows of `ls` made without it are made anew. Whoever
looks into a payload without `decode` asks here first.
"""


def upcast(kind: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload as today's vocabulary has it."""
    for step in UPCASTERS.get(kind, ()):
        payload = step(payload)
    return payload
