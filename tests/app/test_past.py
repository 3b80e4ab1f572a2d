"""What `resume` shows again on a terminal."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.app.past import Past, turn_starts
from agentsh.events.event import Event, Opaque
from agentsh.log.record import Draft
from agentsh.testing import MemoryStore

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


async def a_log(kinds: Sequence[str]) -> MemoryStore:
    store = MemoryStore()
    log = await store.create("x", by="t")
    if kinds:
        await log.append([Draft(kind, "", {}) for kind in kinds])
    await log.close()
    return store


TURN = ["user_message", "agent_message", "turn_finished"]


@pytest.mark.parametrize(
    ("kinds", "left_out", "shown"),
    [
        ([], 0, []),
        (["session_init"], 0, [1]),
        (["session_init", *TURN * 3], 0, list(range(1, 11))),
        (["session_init", "note", *TURN * 4], 4, [1, *range(6, 15)]),
        (["session_init", *TURN * 9, "opened", "user_message", "agent_message"], 21, [1, *range(23, 32)]),
        (["session_init", *TURN * 2, *["note"] * 60], 38, [1, *range(40, 68)]),
        (["session_init", *TURN * 9, "user_message", *["note"] * 20], 21, [1, *range(23, 50)]),
        (["session_init", "user_message", *["note"] * 60], 33, [1, *range(35, 63)]),
    ],
)
async def test_the_newest_turns_are_shown_and_the_rest_is_counted(
    kinds: list[str], left_out: int, shown: list[int]
) -> None:
    """Three turns at most, and 28 events; a turn that is longer is shown from its middle on."""
    store = await a_log(kinds)
    found = Past(store, "x").shown(3, 28)
    events_ = ([found.first] if found.first is not None else []) + found.newest
    assert ([e.seq for e in events_], found.left_out) == (shown, left_out)
    assert found.left_out + len(events_) == len(kinds)


@given(st.lists(st.sampled_from([*KINDS, "turn_finished"]), max_size=60), st.integers(1, 3), st.integers(1, 40))
def test_what_is_shown_ends_the_log_and_is_counted_right(kinds: list[str], turns: int, most: int) -> None:
    found = Past(asyncio.run(a_log(["session_init", *kinds])), "x").shown(turns, most)
    newest = [e.seq for e in found.newest]
    assert found.first is not None
    assert newest == list(range(len(kinds) + 2 - len(newest), len(kinds) + 2))
    assert found.left_out + len(newest) + 1 == len(kinds) + 1
    assert len(newest) <= most
