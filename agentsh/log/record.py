"""What lies on one line of a log: drafts to append, records read back, and headers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

FORMAT = "agentsh-log/1"


class Draft(NamedTuple):
    """An event to append: everything but what the writer adds (seq, dur, crc)."""

    type: str
    ts: str
    payload: Mapping[str, Any]
    cause: int | None = None


class Record(NamedTuple):
    """An event as it lies in the log.

    dur: highest seq known to be durable when the line was written.
    raw: the exact line, LF included.
    """

    seq: int
    ts: str
    type: str
    dur: int
    cause: int | None
    payload: Mapping[str, Any]
    raw: bytes


class Header(NamedTuple):
    """The first line of a segment; not an event.

    salt: start value for the crc of every other line of the segment, from the header's exact bytes.
    """

    session: str
    ordinal: int
    first_seq: int
    nonce: str
    rescue: bool
    parent: Mapping[str, Any] | None
    prev_sha256: str | None
    created: str
    by: str
    raw: bytes
    salt: int
