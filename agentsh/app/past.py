"""The past of a session that goes on: as much of it as is shown again, read from its end."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.log.store import EventStore

SHOWN_TURNS = 3
"""How many of the newest turns `resume` shows again."""
SHOWN_EVENTS = 400
"""And no more events than that: about 60 steps of a turn with tools, two screens of a long one."""


class Shown(NamedTuple):
    """What is shown again: the first event, how many are left out behind it, and the newest in order."""

    first: Event | None
    left_out: int
    newest: list[Event]


class Past:
    """The log as it was when the session was opened, until something is recorded."""

    def __init__(self, store: EventStore, session: str) -> None:
        self.session = session
        self._store = store

    def shown(self, turns: int = SHOWN_TURNS, events: int = SHOWN_EVENTS) -> Shown:
        """Return the beginning and the newest turns, at most `events`; all of it where that is not more. Blocks.

        Raises:
            SessionReadOnly: the log cannot be read any more.
        """
        newest = list(reversed(list(_until(self._newest(), turns, events))))
        if not newest:
            return Shown(None, 0, [])
        if newest[0].seq == 1:
            return Shown(newest[0], 0, newest[1:])
        first = next(map(decode, self._store.read(self.session)), None)
        starts = turn_starts(newest)
        shown = newest[starts[-turns:][0] :] if starts else newest
        return Shown(first, max(shown[0].seq - 2, 0), shown)

    def _newest(self) -> Iterator[Event]:
        return map(decode, self._store.newest(self.session))


def _until(newest: Iterator[Event], turns: int, events: int) -> Iterator[Event]:
    """Yield events from the last one back, to the end of the turn before the last `turns`."""
    ended = 0
    for event in islice(newest, events):
        ended += event.fact.type == "turn_finished"
        yield event
        if ended > turns:
            return


def turn_starts(events: list[Event]) -> list[int]:
    """Return the places of the user messages that open a turn; one that joins a running turn opens none."""
    starts, running = [], False
    for n, event in enumerate(events):
        match event.fact.type:
            case "session_init" | "turn_finished":
                running = False
            case "user_message":
                if not running:
                    starts.append(n)
                running = True
            case "agent_message":
                running = True
    return starts
