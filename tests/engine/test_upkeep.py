"""Checkpoints come when they are due, no turn waits for one, and a session opened from one goes on the same."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest

from agentsh.context.fold import KEPT_DAMAGES
from agentsh.context.state_codec import decode_state, encode_state, reducer
from agentsh.engine.upkeep import LOOK_AFTER_S, CheckpointPolicy
from agentsh.events.session import Checkpoint, Recovered
from agentsh.log.store import Damage, Opened
from agentsh.models.scripted import Say
from agentsh.testing import FailingLog, MemoryStore
from tests.engine.rig import ID, Rig, again, new

ALWAYS = CheckpointPolicy(every_events=1)
NEVER = CheckpointPolicy(every_events=10**9, every_bytes=10**12, every_s=10**9)
TURN = [Say(("I look.",), (("look", {"path": "a"}),)), Say(("Seen.",))]


async def saved(rig: Rig, count: int) -> list[int]:
    """Return the seqs of the checkpoints that were recorded, once there are so many."""
    for _ in range(200):
        found = [fact.upto_seq for fact in rig.facts(Checkpoint)]
        if len(found) >= count:
            return found
        await asyncio.sleep(0)
    raise AssertionError(f"{found} checkpoints, not {count}")


def test_whichever_comes_first_triggers() -> None:
    policy = CheckpointPolicy()
    assert not policy.due(events=999, size=(8 << 20) - 1, seconds=299.9)
    assert policy.due(events=1_000, size=1, seconds=0.0)
    assert policy.due(events=1, size=8 << 20, seconds=0.0)
    assert policy.due(events=1, size=1, seconds=300.0)
    assert not policy.due(events=0, size=1 << 40, seconds=1e9), "nothing is new"


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        (ALWAYS, 3),
        (replace(NEVER, every_bytes=1), 3),
        (replace(NEVER, every_s=50.0), 3),
        (replace(NEVER, every_s=150.0), 1),
        (NEVER, 0),
    ],
)
async def test_each_trigger_at_the_end_of_a_turn(policy: CheckpointPolicy, count: int) -> None:
    rig = await new(TURN * 3, policy=policy)
    for _ in range(3):
        rig.clock.advance(60)
        await rig.session.submit("go")
        await asyncio.sleep(0.01)
        assert rig.screen.types[-1] in ("turn_finished", "checkpoint")
    assert len(await saved(rig, count)) == count
    await rig.session.close()


async def test_a_session_goes_on_from_a_checkpoint_as_from_its_whole_log() -> None:
    rig = await new(TURN * 2, policy=ALWAYS)
    await rig.session.submit("one")
    (upto,) = await saved(rig, 1)
    await rig.session.submit("two")
    await rig.session.close()
    kept = rig.store._log(ID).folded[0][1]
    assert (kept.upto_seq, decode_state(kept.state).last_seq) == (upto, upto)

    requests, states = [], []
    for checkpoints in (True, False):
        store = rig.store.crashed(ID)
        if not checkpoints:
            store._log(ID).folded.clear()
        opened = await store.open(ID, reducer=reducer())
        assert (opened.folded is not None) == checkpoints
        assert len(opened.records) < 10 or not checkpoints
        back = await again(store, TURN, opened=opened, policy=NEVER)
        states.append(encode_state(back.session.state))
        await back.session.submit("three")
        requests.append(back.model.requests)
        await back.session.close()
    assert states[0] == states[1]
    assert requests[0] == requests[1]


class SlowLog(FailingLog):
    """Lets checkpoints wait for the gate, or fail; tells of damage."""

    gate: asyncio.Event
    failing = False
    skipped: Sequence[Damage] = ()

    def checkpoint(self, state: bytes, *, reducer: str, keep: int) -> Awaitable[str | None]:
        if self.failing:
            return asyncio.sleep(0, None)
        going_on = super().checkpoint(state, reducer=reducer, keep=keep)
        return self._later(going_on)

    async def _later(self, going_on: Awaitable[str | None]) -> str | None:
        await self.gate.wait()
        return await going_on

    async def verify_skipped(self) -> Sequence[Damage]:
        return self.skipped


async def reopened(store: MemoryStore, *, policy: CheckpointPolicy = NEVER) -> tuple[Rig, SlowLog]:
    opened = await store.open(ID, reducer=reducer())
    log = SlowLog(opened.log)
    log.gate = asyncio.Event()
    rig = await again(
        store, TURN * 3, opened=Opened(log, opened.records, opened.recovery, opened.folded), policy=policy
    )
    return rig, log


async def test_no_turn_waits_for_a_checkpoint_and_closing_does() -> None:
    first = await new(TURN, policy=NEVER)
    await first.session.submit("one")
    await first.session.close()
    rig, log = await reopened(first.store, policy=ALWAYS)
    await rig.session.submit("two")
    await rig.session.submit("three")
    assert rig.facts(Checkpoint) == []
    closing = asyncio.create_task(rig.session.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    log.gate.set()
    await closing
    (fact,) = rig.facts(Checkpoint)
    folded = rig.store._log(ID).folded[-1][1]
    assert fact.upto_seq == folded.upto_seq < rig.session.state.last_seq
    assert decode_state(folded.state).last_seq == fact.upto_seq


async def test_one_that_failed_is_tried_again_at_the_next_turn() -> None:
    first = await new(TURN, policy=NEVER)
    await first.session.submit("one")
    await first.session.close()
    rig, log = await reopened(first.store, policy=replace(NEVER, every_events=20))
    log.gate.set()
    log.failing = True
    await rig.session.submit("two")
    await rig.session.submit("three")
    assert rig.facts(Checkpoint) == []
    log.failing = False
    await rig.session.submit("four")
    assert len(await saved(rig, 1)) == 1
    await rig.session.close()


async def test_a_long_log_without_one_gets_one_at_its_opening() -> None:
    first = await new(TURN * 2, policy=NEVER)
    await first.session.submit("one")
    await first.session.submit("two")
    await first.session.close()
    back = await again(first.store, [], policy=CheckpointPolicy(every_events=first.session.state.last_seq))
    assert len(await saved(back, 1)) == 1
    await back.session.close()
    once_more = await again(first.store, [], policy=CheckpointPolicy(every_events=first.session.state.last_seq))
    await once_more.session.close()
    assert once_more.facts(Checkpoint) == []


async def test_damage_that_a_checkpoint_spared_the_opening_is_told_once() -> None:
    first = await new(TURN, policy=NEVER)
    await first.session.submit("one")
    await first.session.close()
    damages = [Damage(f"000000:{n}", "crc", 10, n, rot=True) for n in range(30)]
    for told in ([20, 30], [10, None], None):
        rig, log = await reopened(first.store)
        log.skipped = [*damages, Damage("000000:1", "bom", 3, 0)]
        await asyncio.sleep(0)
        rig.clock.advance(LOOK_AFTER_S)
        for _ in range(20):
            await asyncio.sleep(0)
        facts = rig.facts(Recovered)
        assert ([len(facts[0].damages), facts[0].damages_total] if facts else None) == told
        await rig.session.close()


async def test_a_session_that_knows_of_too_many_damages_tells_no_more() -> None:
    first = await new(TURN, policy=NEVER)
    await first.session.submit("one")
    first.session.state.known_damages.update(map(str, range(KEPT_DAMAGES)))
    from agentsh.engine.open import tell

    await tell(first.journal, [Damage("000000:1", "crc", 10, 1)])
    assert first.facts(Recovered) == []
    await first.session.close()
