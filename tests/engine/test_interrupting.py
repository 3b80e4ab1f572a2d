"""An Esc at the wrong moment: it stops what it is meant for, and never the turn after that."""

import asyncio
import json
from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed
from agentsh.events.user import UserCommand, UserCommandEnded
from agentsh.log.store import OpenLog
from agentsh.models.scripted import Say
from agentsh.testing import MemoryStore
from agentsh.workspace.local import LocalWorkspace
from tests.engine import rig


class SlowSync:
    """A log whose syncs wait until they are let through. waiting: one does."""

    def __init__(self, log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting, self.through = asyncio.Event(), asyncio.Event()
        self._wait = log.wait_durable
        monkeypatch.setattr(log, "wait_durable", self.wait_durable)

    async def wait_durable(self, seq: int) -> None:
        self.waiting.set()
        await self.through.wait()
        await self._wait(seq)

    async def reached(self) -> None:
        await asyncio.wait_for(self.waiting.wait(), 8)
        await ticks()


async def ticks() -> None:
    """Let everything go on until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


async def begun(tmp_path: Path) -> rig.Rig:
    place = LocalWorkspace(tmp_path, session=rig.ID)
    return await rig.new([Say(("one",)), Say(("two",))], place=place)


async def test_while_the_intent_is_written_the_command_does_not_run_and_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = await begun(tmp_path)
    sync = SlowSync(r.log, monkeypatch)
    running = asyncio.create_task(r.session.run_command("touch ran", joins=True))
    await sync.reached()
    assert r.session.interrupt()
    await ticks()
    assert not running.done(), "it is not open any more when it returns"
    sync.through.set()
    assert await asyncio.wait_for(running, 8) is False
    assert not (tmp_path / "ran").exists()
    assert r.session.state.command is None
    await r.session.submit("did it run?")
    (end,) = r.facts(UserCommandEnded)
    assert (end.status, end.text) == ("interrupted", "It did not run: it had no effects.")
    said = [m["text"] for m in json.loads(r.model.requests[0])["messages"]]
    assert any("interrupted by the user\nIt did not run: it had no effects." in text for text in said)
    await r.session.close()


async def test_an_intent_that_cannot_be_synced_is_closed_too(tmp_path: Path) -> None:
    r = await begun(tmp_path)

    def broken() -> None:
        raise LogWriteFailed("the disk is broken")

    r.log.before_sync = broken
    with pytest.raises(LogWriteFailed, match="broken"):
        await r.session.run_command("touch ran", joins=True)
    r.log.before_sync = lambda: None
    assert not (tmp_path / "ran").exists()
    assert await r.session.run_command("true", joins=True)
    assert [end.status for end in r.facts(UserCommandEnded)] == ["error", "ok"]
    await r.session.close()


@pytest.mark.parametrize("moment", range(40))
async def test_at_any_moment_a_command_is_closed_with_what_is_known_of_it(moment: int, tmp_path: Path) -> None:
    r = await begun(tmp_path)
    running = asyncio.create_task(r.session.run_command("touch ran", joins=True))
    for _ in range(moment):
        await asyncio.sleep(0)
    r.session.interrupt()
    await running
    assert r.session.state.command is None
    ends = r.facts(UserCommandEnded)
    assert len(ends) == len(r.facts(UserCommand))
    if not ends or ends[0].text == "It did not run: it had no effects.":
        assert not (tmp_path / "ran").exists()
    assert (await r.session.submit("go on")).reason == "done"
    await r.session.close()


@pytest.mark.parametrize("what", ["command", "compact"])
async def test_before_a_command_or_a_compaction_has_begun_it_stops_that(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = await begun(tmp_path)
    sync = SlowSync(r.log, monkeypatch)
    queueing = asyncio.create_task(r.session.queue("later", steer=False))
    await sync.reached()
    if what == "command":
        work: asyncio.Task[object] = asyncio.create_task(r.session.run_command("touch ran", joins=True))
    else:
        work = asyncio.create_task(r.session.compact())
    await ticks()
    assert r.session.interrupt()
    sync.through.set()
    assert await asyncio.wait_for(work, 8) == (False if what == "command" else "interrupted")
    await queueing
    assert not (tmp_path / "ran").exists()
    assert r.facts(UserCommand) == []
    assert (await r.session.submit("go on")).reason == "done"
    await r.session.close()


async def test_beside_a_rewind_it_stops_nothing_nor_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    r = await rig.new([Say(("one",)), Say(("two",))], store=store)
    await r.session.submit("first")
    seq = (await r.session.moments())[0].to_seq
    sync = SlowSync(r.log, monkeypatch)
    rewinding = asyncio.create_task(r.session.rewind(seq, "conversation"))
    await sync.reached()
    assert r.session.busy
    assert not r.session.interrupt()
    sync.through.set()
    await asyncio.wait_for(rewinding, 8)
    assert (await r.session.submit("go on")).reason == "done"
    await r.session.close()


async def test_of_a_turn_that_could_not_begin_it_is_not_kept_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = await begun(tmp_path)
    sync = SlowSync(r.log, monkeypatch)
    queueing = asyncio.create_task(r.session.queue("later", steer=False))
    await sync.reached()
    turn = asyncio.create_task(r.session.submit("first"))
    await ticks()
    assert r.session.interrupt()
    r.log.full = lambda drafts: True
    sync.through.set()
    with pytest.raises(LogWriteFailed):
        await asyncio.wait_for(turn, 8)
    await queueing
    r.log.full = lambda drafts: False
    assert (await r.session.submit("go on")).reason == "done"
    await r.session.close()
