"""What `resume` shows again on a terminal."""

from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from agentsh.app.past import turn_starts
from agentsh.events.event import Event, Opaque

KINDS = ["session_init", "user_message", "agent_message", "turn_finished", "note"]


def events(kinds: Sequence[str]) -> list[Event]:
    return [Event(n, "", None, Opaque(kind, {}), b"") for n, kind in enumerate(kinds, 1)]


def by_looking_back(all_events: Sequence[Event]) -> list[int]:
    """The same by its definition: a user message opens a turn if nothing runs before it."""
    starts = []
    for n, event in enumerate(all_events):
        earlier = (e.fact.type for e in reversed(all_events[:n]))
        said = next((k for k in earlier if k != "note"), "session_init")
        if event.fact.type == "user_message" and said in ("turn_finished", "session_init"):
            starts.append(n)
    return starts


@given(st.lists(st.sampled_from(KINDS)))
def test_a_turn_starts_at_a_user_message_while_nothing_runs(kinds: list[str]) -> None:
    assert turn_starts(events(kinds)) == by_looking_back(events(kinds))


class Counting(list[Event]):
    """Counts what is asked of it."""

    asked = 0

    def __iter__(self) -> Any:
        for event in super().__iter__():
            self.asked += 1
            yield event

    def __getitem__(self, at: Any) -> Any:
        self.asked += len(self) if isinstance(at, slice) else 1
        return super().__getitem__(at)


def test_each_event_is_looked_at_once() -> None:
    many = Counting(events(["session_init", *["user_message", "agent_message", "turn_finished"] * 1_000]))
    assert len(turn_starts(cast("list[Event]", many))) == 1_000
    assert many.asked == len(many)
