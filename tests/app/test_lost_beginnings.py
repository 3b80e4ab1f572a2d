"""A log whose first segments, or all, are gone: repair leaves a session that goes on, and says what was lost."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.app.catalog import places, with_summaries
from agentsh.app.opening import open_folded
from agentsh.app.paths import Home
from agentsh.app.repairing import session_repair
from agentsh.app.stores import event_store
from agentsh.app.verifying import verify
from agentsh.context.fold import fold
from agentsh.context.state import SessionState
from agentsh.context.state_codec import encode_state, reducer
from agentsh.events.codec import decode
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.index import SummaryIndex
from agentsh.stores.jsonl import JsonlStore
from tests.app.homes import TS, events, sid
from tests.app.rig import a_home

SESSION = sid(1)
CHECKPOINT_AT = 10
"""In the last of four segments: events 1-4, 5-7, 8-9, 10 and 11."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = a_home(tmp_path / "home")
    (home.workspaces / SESSION).mkdir()
    (home.workspaces / SESSION / "file").write_text("x")
    asyncio.run(_made(home))
    return home


async def _made(home: Home) -> None:
    """Make a session of four segments, two of them sealed, with a checkpoint in the open one."""
    parts = events(SESSION, home.workspaces / SESSION, 3)
    parts[0][1]["workspace"] = {"kind": "copy", "origin": "/home/ana/shop", "base": None}
    drafts = [Draft(kind, TS, payload) for kind, payload in [*parts, ("note", {"text": "behind the checkpoint"})]]
    store = JsonlStore(home.sessions, FileBlobs(home.blobs), segment_bytes=1)
    log = await store.create(SESSION, by="test 1")
    done = 0
    for upto in (4, 7, 9, CHECKPOINT_AT, 11):
        await log.append(drafts[done:upto])
        await log.wait_durable(upto)
        if upto == CHECKPOINT_AT:
            state = encode_state(fold(decode(r) for r in store.read(SESSION)))
            assert await log.checkpoint(state, reducer=reducer(), keep=3) is not None
        elif upto < CHECKPOINT_AT:
            await log.turn_ended()
        done = upto
    await log.close()


def opened(home: Home) -> tuple[SessionState, int]:
    """Open it as `resume` does; return the state and how many records were read for it."""

    async def work() -> tuple[SessionState, int]:
        found, folded = await open_folded(event_store(home), SESSION)
        try:
            (record,) = await found.log.append([Draft("note", TS, {"text": "on"})])
            assert record.seq == folded.state.last_seq + 1
            return folded.state, folded.events
        finally:
            await found.log.close()

    return asyncio.run(work())


def repaired(home: Home) -> str:
    """Repair it; return what the log says of that."""
    with session_repair(home, SESSION) as repairer:
        plan = repairer.plan()
        assert plan is not None
        repairer.repair(plan)
        assert repairer.plan() is None
    ((_, found),) = verify(places([home]))
    assert (found.ok, found.remarks) == (True, ())
    records = list(event_store(home).read(SESSION))
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert records[0].type == "session_init"
    said: str = records[-1].payload["text"]
    return said


def lose(pattern: str) -> Callable[[Path], None]:
    def gone(place: Path) -> None:
        found = list(place.glob(pattern))
        assert found
        for path in found:
            path.unlink()

    return gone


def damage_the_header(place: Path) -> None:
    first = next(place.glob("000000*"))
    data = bytearray(first.read_bytes())
    data[20] ^= 4
    first.write_bytes(bytes(data))


LOSSES: dict[str, tuple[Callable[[Path], None], str]] = {
    "the first segment": (lose("000000*"), "events 1 to 4 are lost"),
    "all but the open one": (lose("00*"), "events 1 to 9 are lost"),
    "all": (lose("*.jsonl*"), "events 1 to 10 are lost"),
    "the open one": (lose("events.jsonl"), "event 10 is lost"),
    "the header of the first": (damage_the_header, ""),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_checkpoint_keeps_what_the_log_has_lost(home: Home, name: str) -> None:
    whole, _ = opened(home)
    lose_it, said = LOSSES[name]
    lose_it(home.sessions / SESSION)
    assert said in repaired(home)
    state, read = opened(home)
    assert read < 8, "the checkpoint was taken"
    for member in ("id", "title", "created", "cwd", "project", "model", "mode", "workspace", "talk", "totals"):
        assert getattr(state, member) == getattr(whole, member), member


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("listed", [True, False])
def test_without_a_checkpoint_it_begins_with_what_else_is_known(home: Home, name: str, listed: bool) -> None:
    place = home.sessions / SESSION
    for path in (place / "checkpoints").iterdir():
        path.unlink()
    row = {"title": "mend the shop", "cwd": "/home/ana/shop", "project": "shop", "model": "scripted", "mode": "yolo",
           "workspace": "copy", "origin": "/home/ana/shop"}  # fmt: skip
    if listed:
        SummaryIndex(home.index_file).put_many([(SESSION, "of before", json.dumps(row))])
    LOSSES[name][0](place)
    repaired(home)
    state, _ = opened(home)
    assert state.id == SESSION
    assert state.workspace is not None
    assert (state.workspace.kind, state.workspace_path) == ("copy", None), "its own, below the home"
    beginning_lost = name not in ("the open one", "the header of the first")
    if listed and beginning_lost:
        assert (state.title, state.cwd, state.model, state.mode) == (
            "mend the shop", "/home/ana/shop", "scripted", "yolo",
        )  # fmt: skip
        assert state.workspace.origin == "/home/ana/shop"
    elif beginning_lost:
        assert state.mode == "ask", "nobody knows what was allowed"
        assert state.model == ("scripted" if name == "the first segment" else "")


def test_a_beginning_is_made_anew_only_where_it_is_lost(home: Home) -> None:
    lose("000001*")(home.sessions / SESSION)
    said = repaired(home)
    assert "events 5 to 7 are lost" in said
    assert "made anew" not in said
    assert next(iter(event_store(home).read(SESSION))).payload["mode"] == "yolo"


def test_without_a_repair_it_goes_on_with_the_model_that_answered(home: Home) -> None:
    """One damaged line was enough for `resume` to take another model than before, or to find none."""
    directory = home.sessions / SESSION
    for path in (directory / "checkpoints").iterdir():
        path.unlink()
    (first,) = (path for path in directory.iterdir() if path.name.startswith("000000-"))
    first.unlink()
    (place,) = places([home])
    assert with_summaries([place])[0][1]["model"] == "scripted"
    assert opened(home)[0].model == "scripted"
