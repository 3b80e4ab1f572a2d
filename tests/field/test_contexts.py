"""Field reports D and G: whatever happened to a log, the next request is one that a provider takes."""

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.opening import open_folded
from agentsh.context.fold import fold
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.events.codec import encode
from agentsh.events.event import Event
from agentsh.events.turn import UserMessage
from agentsh.log.segment import OPEN_NAME
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing import server_rules as rules
from agentsh.testing.server import forever, reply
from tests.app.homes import sid
from tests.context.driver import TS, Driver
from tests.e2e.harness import Shell
from tests.e2e.test_compaction import SUMMARY, Serve, Worker, configure
from tests.log.disks import UnsyncedFiles

BUDGET = 30_000
CUTS = 60


def compacted(seed: int) -> Driver:
    """Return a session that was compacted, the first one from a seed on."""
    made = (Driver(n, budget=BUDGET, mild=True).write(14) for n in count(seed))
    return next(driver for driver in made if driver.compactions)


def next_body(whole: Driver, events: list[Event], state: SessionState) -> dict[str, Any]:
    """Reopen what is left of a session, say something, and return what would be sent."""
    driver = Driver(1)
    driver.events, driver.blobs, driver.texts, driver.state = list(events), whole.blobs, whole.texts, state
    driver.resume()
    driver.budget = BUDGET
    driver.add(UserMessage(text="go on", attachments=()))
    fitted = driver.fitted()
    assert problems(fitted.messages) == []
    found: dict[str, Any] = json.loads(driver.body(fitted))
    return found


@pytest.mark.parametrize("seed", [0, 100])
async def test_d83_d84_d86_a_log_that_is_cut_after_any_byte(tmp_path: Path, seed: int) -> None:
    """D83 anthropics/claude-code#9346, D84 #2039, D86 #40319 (compaction in between): interrupted, irrecoverable."""
    whole = compacted(seed)
    store = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"), files=UnsyncedFiles())
    log = await store.create(sid(1), by="test")
    for event in whole.events:
        await log.append([encode(event.fact, ts=TS, cause=event.cause)])
    await log.close()
    path = tmp_path / "sessions" / sid(1) / OPEN_NAME
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    for size in random.Random(seed).sample(range(head + 1, len(data)), CUTS):
        path.write_bytes(data[:size])
        opened, folded = await open_folded(store, sid(1))
        await opened.log.close()
        assert folded.state.last_seq >= data[:size].count(b"\n") - 1, "every whole line is there"
        body = next_body(whole, whole.events[: folded.state.last_seq], folded.state)
        assert rules.problems(body) == [], f"cut at byte {size}"


def damaged(events: list[Event]) -> list[list[Event]]:
    """A log without each of its events, with each of them twice, and with each pair of neighbours the other way."""
    places = range(2, len(events))  # what a session begins with is another matter: without it nothing is sent
    return [
        *(events[:n] + events[n + 1 :] for n in places),
        *(events[: n + 1] + events[n:] for n in places),
        *([*events[:n], events[n + 1], events[n], *events[n + 2 :]] for n in places if n + 1 < len(events)),
    ]


@pytest.mark.parametrize("seed", [2, 5, 9])
def test_d92_no_damage_makes_a_request_that_is_refused(seed: int) -> None:
    """D92 google-gemini/gemini-cli#19580: "invalid argument" on the first prompt after a resume; session dead."""
    whole = Driver(seed, budget=BUDGET, mild=True).write(5)
    for events in damaged(whole.events):
        assert rules.problems(next_body(whole, events, fold(events))) == []


def test_g130_what_became_of_every_event_is_told(shell: Shell, serve: Serve) -> None:
    """G130 anthropics/claude-code#89831: no record of what was dropped. By event, and who did it."""
    serve(forever(Worker(reply(SUMMARY), until=2)))
    configure(shell)
    assert shell.run("new", "count to the end", "-p", "--empty", "--mode", "yolo").code == 0
    compactions = [e["seq"] for e in shell.events() if e["type"] == "compaction"]
    assert compactions
    told = json.loads(shell.run("context", "--last", "--json").text)
    rows = {row["seq"]: row for row in told["events"]}
    assert list(rows) == list(range(1, told["seq"]))
    gone = [row for row in rows.values() if row["fate"] == "summarised"]
    assert gone
    assert {row["why"] for row in gone} == {f"by event {compactions[-1]}"}
    assert {row["fate"] for row in rows.values()} >= {"kept", "summarised", "not for the model"}
    table = shell.run("context", "--last").text
    assert f"summarised (by event {compactions[-1]}" in table
