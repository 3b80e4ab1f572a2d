"""Sessions by what was said in them: the text of the open segments of their logs, newest session first.

What was moved to blobs is not looked into; sealed segments (a log has some once it is longer than 64 MiB) and
archives are by `search_whole` only.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agentsh.app.catalog import LOG_NAME, Place, check_plain, sized
from agentsh.app.stores import event_store
from agentsh.base.errors import AgentshError
from agentsh.base.text import one_line
from agentsh.events.upcast import upcast
from agentsh.log.plain import open_plain

LIMIT_S = 2.0
"""Somebody waits for it while typing; what was found until then is shown."""
MOST = 200
LEAST_CHARS = 2
MAX_BYTES = 16 << 20
"""Of one log, its newest part."""
AROUND_CHARS = 30
SAID = ("text", "arguments", "for_model", "command", "title", "path")
"""The members that hold what was said and done; names of members and types are not searched."""


def search(
    places: Iterable[Place], text: str, stop: threading.Event, *, limit_s: float = LIMIT_S, most: int = MOST
) -> dict[str, str]:
    """Return the sessions that hold `text`, whatever its case, each with the words around its newest place.

    stop: once it is set nothing more is looked into. most: so many sessions end it.
    """
    wanted = " ".join(text.split()).casefold()
    if len(wanted) < LEAST_CHARS:
        return {}
    needle = json.dumps(wanted, ensure_ascii=False)[1:-1]
    found: dict[str, str] = {}
    end_s = time.monotonic() + limit_s

    def over() -> bool:
        return stop.is_set() or time.monotonic() >= end_s

    for place in places:
        if over() or len(found) >= most:
            break
        where = next(_in_log(place, needle, wanted, over), None)
        if where is not None:
            found[place.id] = where
    return found


def search_whole(place: Place, text: str) -> str | None:
    """Return the words around the newest place in a whole log, older segments and archives too; None where none is.

    It reads every record: seconds for a log of hundreds of megabytes. A log that does not open holds nothing.
    """
    wanted, found = " ".join(text.split()).casefold(), None
    try:
        check_plain(place)
        for record in event_store(place.home).read(place.id):
            found = _around(upcast(record.type, record.payload), wanted) or found
    except (OSError, AgentshError):
        return found
    return found


def is_whole(place: Place) -> bool:
    """Tell whether `search` looks into all of a log."""
    return not place.archived and sized(place).size <= min(place.size, MAX_BYTES)


def _in_log(place: Place, needle: str, wanted: str, over: Callable[[], bool]) -> Iterator[str]:
    """Yield the words around each place, the newest first."""
    try:
        with open(place.home.sessions / place.id / LOG_NAME, "rb", opener=open_plain) as file:
            file.seek(max(file.seek(0, 2) - MAX_BYTES, 0))
            data = file.read(MAX_BYTES)
    except OSError:
        return
    raw = needle.encode("utf-8", "surrogatepass")
    low = data.lower() if raw.isascii() else data.decode("utf-8", "replace").casefold().encode("utf-8", "replace")
    same = len(low) == len(data)  # else places in the one are none in the other
    if not same:
        data = low
    at = low.rfind(raw)
    while at >= 0 and not over():
        start, end = low.rfind(b"\n", 0, at) + 1, low.find(b"\n", at)
        around = _around(_payload(data[start : end if end >= 0 else len(data)]), wanted)
        if around is not None:
            yield around
        at = low.rfind(raw, 0, start) if start else -1


def _payload(line: bytes) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(payload := value.get("payload"), dict):
        return None
    return upcast(str(value.get("type")), payload)


def _around(payload: Any, wanted: str) -> str | None:
    for text in _texts(payload):
        flat = " ".join(text.split())
        at = flat.casefold().find(wanted)
        if at >= 0:
            start = max(at - AROUND_CHARS, 0)
            lead = "…" if start else ""
            return lead + one_line(flat[start : at + len(wanted) + 3 * AROUND_CHARS], 4 * AROUND_CHARS + len(wanted))
    return None


def _texts(payload: Any) -> Iterator[str]:
    if isinstance(payload, Mapping):
        for name in SAID:
            text = payload.get(name)
            if isinstance(text, str):
                yield text
