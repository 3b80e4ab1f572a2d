"""A session is born whole or not at all, and one that never began is told from one that did."""

import asyncio
import contextlib
import fcntl
import random
from dataclasses import replace
from pathlib import Path

import pytest

from agentsh.app.build import new_session, resume_session
from agentsh.app.opening import open_folded
from agentsh.app.paths import Home
from agentsh.app.plan import Plan, Screens
from agentsh.app.settings import Choice, Settings, choose_model
from agentsh.app.stores import event_store
from agentsh.base.errors import LogError, LogWriteFailed, SessionExists
from agentsh.context.state import SessionState
from agentsh.context.state_codec import reducer
from agentsh.events.event import Event
from agentsh.log.record import Draft
from agentsh.testing import KeepingRenderer, MemoryStore
from agentsh.workspace.provision import Provisioned, provision
from tests.app.rig import a_home, a_session, an_id

A = an_id(1)
DEMO = choose_model(Settings(), {}, "demo")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "home")


def plan(home: Home, choice: Choice = DEMO) -> Plan:
    return Plan(home, Settings(), choice, Screens(()))


def workspace(home: Home, kind: str = "empty") -> Provisioned:
    source = home.root.parent / "source"
    source.mkdir(exist_ok=True)
    (source / "a.txt").write_text("a")
    choice = {"empty": "empty", "copy": "from", "in-place": "in-place"}[kind]
    return provision(home.workspaces / A, choice=choice, source=source, homes=[home.root])  # type: ignore[arg-type]


def left(home: Home) -> list[str]:
    """What lies in the two places where a session leaves something."""
    found = [*home.sessions.rglob("*"), *home.workspaces.rglob("*")]
    return sorted(str(place.relative_to(home.root)) for place in found)


async def test_a_birth_is_recorded(home: Home, tmp_path: Path) -> None:
    running = await new_session(plan(home), A, workspace(home), cwd=tmp_path, mode="ask")
    await running.session.close()
    records = list(event_store(home).read(A))
    assert [record.type for record in records] == ["session_init", "environment_changed"]
    assert records[1].payload["request"] == {"wire": "demo", "profile": None, "options": {}, "host": None}


@pytest.mark.parametrize("kind", ["empty", "copy", "in-place"])
async def test_a_birth_that_fails_leaves_nothing(home: Home, tmp_path: Path, kind: str) -> None:
    home.blobs.write_text("a file where the blobs should be")
    provisioned = workspace(home, kind)
    with pytest.raises(LogWriteFailed):
        await new_session(plan(home), A, provisioned, cwd=tmp_path, mode="ask")
    assert left(home) == []
    assert (tmp_path / "source" / "a.txt").exists(), "a directory of the user's is not ours to remove"
    home.blobs.unlink()
    running = await new_session(plan(home), A, workspace(home), cwd=tmp_path, mode="ask")  # nothing is still open
    await running.session.close()


async def test_a_birth_whose_append_fails_leaves_nothing(home: Home, tmp_path: Path) -> None:
    choice = replace(DEMO, options={f"member-{n}": n for n in range(5_000)})  # no string to move away
    with pytest.raises(LogWriteFailed, match="too many parts for a line"):
        await new_session(plan(home, choice), A, workspace(home), cwd=tmp_path, mode="ask")
    assert left(home) == []


async def test_what_was_there_before_stays(home: Home, tmp_path: Path) -> None:
    log = a_session(home, A)
    before = log.read_bytes()
    with pytest.raises(SessionExists):
        await new_session(plan(home), A, workspace(home), cwd=tmp_path, mode="ask")
    assert log.read_bytes() == before
    assert not (home.workspaces / A).exists()
    (home.sessions / A / "notes.txt").write_text("of the user's")
    log.unlink()
    with pytest.raises(SessionExists):
        await new_session(plan(home), A, workspace(home), cwd=tmp_path, mode="ask")
    assert (home.sessions / A / "notes.txt").exists()


async def test_a_birth_that_is_cancelled_is_whole_or_not_there(home: Home, tmp_path: Path) -> None:
    chance = random.Random(1)
    whole = 0
    for n in range(25):
        session = an_id(n)
        provisioned = provision(home.workspaces / session, choice="empty", source=tmp_path, homes=[])
        birth = asyncio.create_task(new_session(plan(home), session, provisioned, cwd=tmp_path, mode="ask"))
        await asyncio.sleep(chance.uniform(0, 0.04))
        birth.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await birth).session.close()
        place = home.sessions / session
        if place.exists() and [r.type for r in event_store(home).read(session)]:
            whole += 1
            assert provisioned.path.exists()
        else:
            assert not provisioned.path.exists()
        assert event_store(home).holder(session) is None
    assert whole < 25


@pytest.mark.parametrize(
    ("kept", "more", "why"),
    [(0, b"", "no entry"), (1, b"", "no entry"), (1, b"garbage\n", "nothing of it reads")],
)
async def test_a_session_without_an_event_cannot_be_resumed(home: Home, kept: int, more: bytes, why: str) -> None:
    log = a_session(home, A)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:kept]) + more)

    async def plan_for(state: SessionState) -> Plan:
        raise AssertionError("no model is needed to say so")

    with pytest.raises(LogError, match=why) as caught:
        await resume_session(home, A, Settings(), plan_for=plan_for, show=lambda events: None)
    assert caught.value.exit_code == 1
    assert caught.value.hint is not None
    assert event_store(home).holder(A) is None


async def test_an_environment_that_is_lost_is_recorded_anew(home: Home, tmp_path: Path) -> None:
    a_session(home, A)  # has none
    home.workspaces.joinpath(A).mkdir()

    async def plan_for(state: SessionState) -> Plan:
        return plan(home)

    for times in (1, 1):
        running = await resume_session(home, A, Settings(), plan_for=plan_for, show=lambda events: None)
        await running.session.close()
        records = list(event_store(home).read(A))
        assert sum(record.type == "environment_changed" for record in records) == times
        assert running.session.state.environment is not None


async def test_a_checkpoint_that_lies_about_its_reducer_costs_nothing() -> None:
    store = MemoryStore()
    log = await store.create("x", by="t")
    await log.append([Draft("renamed", "", {"title": "kept", "by": "user"})])
    assert await log.checkpoint(b'["not a state"]', reducer=reducer(), keep=3)
    await log.close()
    opened, folded = await open_folded(store, "x")
    assert (opened.folded, folded.state.title, folded.events) == (None, "kept", 1)
    await opened.log.close()


class Collecting(KeepingRenderer):
    """Tries, at each fact, whether `gc` could begin."""

    def __init__(self, home: Home) -> None:
        super().__init__()
        self.free: dict[str, bool] = {}
        self._lock = home.blobs / "lock"

    def on(self, event: Event) -> None:
        with self._lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.free[event.fact.type] = False
            else:
                self.free[event.fact.type] = True
        super().on(event)


async def test_gc_waits_until_what_is_recorded_anew_is_named(home: Home, tmp_path: Path) -> None:
    running = await new_session(plan(home), A, workspace(home), cwd=tmp_path, mode="ask")
    await running.session.close()
    for blob in home.blobs.rglob("*.zst"):
        blob.unlink()
    watching = Collecting(home)

    async def plan_for(state: SessionState) -> Plan:
        return Plan(home, Settings(), DEMO, Screens((watching,)))

    back = await resume_session(home, A, Settings(), plan_for=plan_for, show=lambda past: None)
    await back.session.close()
    assert watching.free["environment_changed"] is False, watching.types
