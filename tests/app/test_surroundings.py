"""A session starts with the same words for ever: frozen clock a day later, AGENTS.md, another process."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.build import Running, new_session, resume_session
from agentsh.app.catalog import places
from agentsh.app.contexts import Contexts
from agentsh.app.paths import Home
from agentsh.app.plan import Plan, Screens
from agentsh.app.settings import Settings, choose_model
from agentsh.app.stores import event_store
from agentsh.base.clock import SystemClock
from agentsh.context.state import SessionState
from agentsh.workspace.provision import provision
from tests.app.rig import a_home, an_id

A = an_id(1)
DEMO = choose_model(Settings(), {}, "demo")


class Frozen(SystemClock):
    """A wall clock that stands still, from the 29th of November on."""

    day = 29

    def now(self) -> datetime:
        return datetime(2026, 11, 1, 16, 20, tzinfo=UTC) + timedelta(days=self.day - 1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    return a_home(tmp_path / "home")


def plan(home: Home, clock: Frozen) -> Plan:
    return Plan(home, Settings(), DEMO, Screens(()), clock=clock)


async def born(home: Home, clock: Frozen) -> Running:
    workspace = provision(home.workspaces / A, choice="empty", source=home.root, homes=[home.root])
    return await new_session(plan(home, clock), A, workspace, cwd=home.root, mode="plan")


async def resumed(home: Home, clock: Frozen, directory: Path | None = None) -> Running:
    async def plan_for(state: SessionState) -> Plan:
        return plan(home, clock)

    return await resume_session(home, A, Settings(), plan_for=plan_for, show=lambda events: None, directory=directory)


def bodies(home: Home) -> list[bytes]:
    """Every request that was sent, built again."""
    (place,) = places((home,))
    contexts = Contexts(place)
    assert contexts.check().problems == ()
    found = [r.seq for r in event_store(home).read(A) if r.type == "context_built"]
    return [contexts.at(seq).body for seq in found]


def told(home: Home) -> list[dict[str, Any]]:
    return [
        c for r in event_store(home).read(A) if r.type == "environment_changed" for c in r.payload.get("changes", ())
    ]


async def one_session(home: Home, *, stop: bool, days: int = 0, edit: str | None = None) -> list[bytes]:
    clock = Frozen()
    running = await born(home, clock)
    await running.session.submit("hello")
    if stop:
        await running.session.close()
    clock.day += days
    if edit is not None:
        (home.workspaces / A / "AGENTS.md").write_text(edit)
    if stop:
        running = await resumed(home, clock)
    await running.session.submit("hello again")
    await running.session.close()
    return bodies(home)


async def test_the_same_bytes_after_a_resume_as_without_having_stopped(tmp_path: Path) -> None:
    found = []
    for n, stop in enumerate((False, True)):
        home = a_home(tmp_path / str(n) / "home")
        found.append([b.replace(str(home.root).encode(), b"HOME") for b in await one_session(home, stop=stop)])
    assert found[0] == found[1]


async def test_a_day_later_the_start_is_the_same_and_the_date_is_appended(home: Home) -> None:
    """H139: frozen clock, one day on."""
    old, *_, new = await one_session(home, stop=True, days=1)
    assert new.startswith(old.removesuffix(b"]}"))
    assert b"The date is 2026-11-30." in new[len(old) :]
    assert [c["what"] for c in told(home)] == ["date"]


async def test_midnight_in_a_running_session_is_seen_too(home: Home) -> None:
    await one_session(home, stop=False, days=1)
    assert [c["what"] for c in told(home)] == ["date"]


async def test_instructions_are_read_at_birth_and_an_edit_is_appended(home: Home, tmp_path: Path) -> None:
    (tmp_path / ".agentsh").mkdir()
    (tmp_path / ".agentsh" / "AGENTS.md").write_text("For all my projects.")
    old, *_, new = await one_session(home, stop=True, edit="Only here.")
    assert b"For all my projects." in old
    assert b'file=\\"~/.agentsh/AGENTS.md\\"' in old
    assert new.startswith(old.removesuffix(b"]}"))
    assert b"Only here." in new
    assert [c["what"] for c in told(home)] == ["instructions AGENTS.md"]


async def test_a_workspace_that_moved_is_told(home: Home, tmp_path: Path) -> None:
    clock = Frozen()
    running = await born(home, clock)
    await running.session.submit("hello")
    await running.session.close()
    place = tmp_path / "elsewhere"
    place.mkdir()
    running = await resumed(home, clock, place)
    await running.session.submit("hello again")
    await running.session.close()
    (change,) = told(home)
    assert change == {"what": "directory", "text": f"The workspace is at {place} now."}
    first, *_, last = bodies(home)
    assert last.startswith(first.removesuffix(b"]}"))
