"""What is remembered of the copies of a session: how its last push went, and whether anybody has tried.

In `sessions/ID/upload.json`. A cache: without it, a push compares with what is there. `ls` reads it on the fast path.
"""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from agentsh.app.paths import Home
from agentsh.base.clock import timestamp
from agentsh.base.ids import random_hex
from agentsh.log.plain import open_plain

STATE = "upload.json"
MAX_BYTES = 65_536


class State(NamedTuple):
    """What the last push of a session did. stamp: the log that it brought all of, "" for none yet, or a part.
    problem: or why not.

    at: when. asked: when the place was last found to be one that can be written, "" for never.
    """

    url: str
    stamp: str
    last_seq: int
    at: str
    problem: str | None = None
    asked: str = ""

    def answered(self, since: str) -> bool:
        """Tell whether anything is known of the place that is newer than the timestamp `since`."""
        tried = bool(self.stamp or self.problem) and self.at >= since
        return tried or (self.problem is None and self.asked >= since)


def state_of(home: Home, session: str) -> State | None:
    """Return how the last push of a session went, or None where there was none, or nobody knows."""
    try:
        with open(home.sessions / session / STATE, "rb", opener=open_plain) as file:
            value = json.loads(file.read(MAX_BYTES))
        return State(
            str(value["url"]), str(value["stamp"]), int(value["last_seq"]), str(value["at"]),
            None if value["problem"] is None else str(value["problem"]), str(value.get("asked") or ""),
        )  # fmt: skip
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def remember(home: Home, session: str, state: State) -> None:
    """Keep how a push went, where that can be."""
    path = os.path.join(home.sessions, session, STATE)
    new = f"{path}.{random_hex(4)}.new"
    with suppress(OSError):
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump(state._asdict(), file)
            os.replace(new, path)
        except OSError:
            with suppress(OSError):
                os.unlink(new)


def remember_failure(home: Home, session: str, url: str, message: str) -> None:
    """Keep that a push did not work, and why."""
    before = state_of(home, session)
    asked = before.asked if before is not None and before.url == url else ""
    remember(home, session, State(url, "", 0, now(), message, asked))


def remember_begin(home: Home, session: str, url: str) -> None:
    """Keep that copies of this session are to go there: whoever ends before it was tried leaves that behind."""
    before = state_of(home, session)
    if before is None or before.url != url:
        remember(home, session, State(url, "", 0, now()))


def remember_asked(home: Home, session: str, url: str) -> None:
    """Keep that the place can be written, as far as that is known without a push; an older problem stays."""
    remember_begin(home, session, url)
    before = state_of(home, session)
    if before is not None:
        remember(home, session, before._replace(asked=now()))


def now() -> str:
    """Return the time as states have it."""
    return timestamp(datetime.now(UTC))
