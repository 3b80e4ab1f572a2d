"""What a crash, a full disk or a bug leaves behind, and what the next opening makes of it."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from agentsh.base.errors import BlobMissing, LogWriteFailed, StreamCut
from agentsh.engine.open import renew_environment
from agentsh.events.base import BlobRef
from agentsh.events.session import EnvironmentChanged, Note
from agentsh.events.signals import DiskNearlyFull, SavingStopped
from agentsh.events.tool import PartialOutput, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, PartialMessage
from agentsh.log.record import Draft
from agentsh.log.store import Damage, Opened, Recovery
from agentsh.ports.texts import InlineTexts
from agentsh.testing import Say
from tests.engine.rig import ID, CutModel, again, new


async def test_what_streams_for_a_second_is_on_disk_while_it_streams() -> None:
    gate = asyncio.Event()

    class Slow(CutModel):
        async def stream(self, body: bytes):  # type: ignore[no-untyped-def]
            from agentsh.events.signals import ReasoningDelta, TextDelta

            yield ReasoningDelta("hm, ")
            yield TextDelta("shown for a second")
            await gate.wait()
            raise StreamCut("cut")

    rig = await new([], model=Slow())
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        for _ in range(50):
            await asyncio.sleep(0)
        rig.clock.advance(1.0)
        for _ in range(50):
            await asyncio.sleep(0)
        saved = rig.facts(PartialMessage)
        assert [p.text for p in saved if p.text] == ["shown for a second"]
        killed = rig.store.crashed(ID)
        back = await again(killed, [])
        assert [(m.text, m.reasoning, m.finish) for m in back.facts(AgentMessage)] == [
            ("shown for a second", "hm, ", "cut")
        ]
        gate.set()
        await task


async def test_the_output_of_a_running_tool_is_on_disk_and_told_after_a_crash() -> None:
    rig = await new([Say((), (("hang", {"path": "1"}),))])
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        await rig.counter.started.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        rig.clock.advance(1.0)
        for _ in range(20):
            await asyncio.sleep(0)
        killed = rig.store.crashed(ID)
        (result,) = (await again(killed, [])).facts(ToolResult)
        assert result.status == "unknown"
        assert "half of the output" in str(result.for_model)
        rig.session.interrupt()
        await task


async def test_a_result_that_could_not_be_written_is_held_and_written_later() -> None:
    """D100 openai/openai-agents-python#4690: written before the next model call, and the tool does not run again."""
    rig = await new([Say((), (("change", {"path": "1"}),)), Say(("ok",)), Say(("fine",))])
    full = False

    def no_room(drafts: Sequence[Draft]) -> bool:
        nonlocal full
        full = full or any(d.type == "tool_result" for d in drafts)
        return full

    rig.log.full = no_room
    with pytest.raises(LogWriteFailed):
        await rig.session.submit("go")
    assert rig.counter.runs == ["1"]
    assert any(isinstance(s, SavingStopped) for s in rig.screen.signals)
    rig.log.full = lambda drafts: False
    assert (await rig.session.submit("again")).reason == "done"
    assert [r.status for r in rig.facts(ToolResult)] == ["ok"], "it ran once, and its result is the real one"
    assert rig.counter.runs == ["1"]
    await rig.session.close()


async def test_on_a_disk_that_is_nearly_full_nothing_with_effects_starts_and_all_of_it_is_recorded() -> None:
    rig = await new(
        [
            Say((), (("change", {"path": "1"}), ("look", {"path": "2"}))),
            Say(("no room",)),
            Say((), (("change", {"path": "3"}),)),
            Say(("ok",)),
        ]
    )
    rig.log.free_bytes = 5_000_000
    async with rig.session:
        assert (await rig.session.submit("go")).reason == "done"
        assert [s.reason for s in rig.screen.signals if isinstance(s, DiskNearlyFull)] == [
            "the disk is nearly full, 5 MB are free"
        ] * 2
        denied, read = rig.facts(ToolResult)
        assert (denied.status, denied.for_user) == ("denied", "denied: the disk is nearly full, 5 MB are free")
        assert read.status == "ok"
        assert rig.counter.runs == []
        assert not any("write" in started.effects for started in rig.facts(ToolStarted))
        rig.log.free_bytes = None
        await rig.session.submit("again, there is room now")
        assert rig.counter.runs == ["3"]


async def test_a_bug_of_the_adapter_closes_the_turn_and_is_raised() -> None:
    class Broken(CutModel):
        async def stream(self, body: bytes):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError("a bug")
            yield

    rig = await new([], model=Broken())
    async with rig.session:
        with pytest.raises(ZeroDivisionError):
            await rig.session.submit("go")
        assert rig.session.state.turn is None


async def test_an_interruption_that_comes_when_the_turn_is_over_does_not_stop_the_next_one() -> None:
    rig = await new([Say(("one",)), Say(("two",))])

    def interrupt_late() -> None:
        if any(r.type == "turn_finished" for r in rig.store.read(ID)):
            rig.session.interrupt()

    rig.log.before_sync = interrupt_late
    async with rig.session:
        assert (await rig.session.submit("a")).reason == "done"
        rig.log.before_sync = lambda: None
        assert (await rig.session.submit("b")).reason == "done"


async def test_all_that_happened_while_the_disk_was_full_is_written_later_and_in_order() -> None:
    rig = await new([Say(("one",))])
    rig.log.full = lambda drafts: True
    for text in ("A", "B"):
        with pytest.raises(LogWriteFailed):
            await rig.journal.record(Note(text=text), happened=True)
    rig.log.full = lambda drafts: False
    await rig.session.submit("go")
    await rig.session.close()
    assert [n.text for n in rig.facts(Note)] == ["A", "B"]
    assert rig.screen.types.index("note") < rig.screen.types.index("user_message")


async def test_an_unknown_result_is_capped_however_much_was_printed() -> None:
    rig = await new([Say((), (("hang", {"path": "1"}),))])
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        await rig.counter.started.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        (started,) = [e for e in rig.screen.events if isinstance(e.fact, ToolStarted)]
        for n in range(60):
            text = PartialOutput(call="call_1", text=f"{n} " + "x" * 3_900)
            await rig.journal.record(text, cause=started.seq)
        back = await again(rig.store.crashed(ID), [])
        (result,) = back.facts(ToolResult)
        assert isinstance(result.for_model, str)
        assert len(result.for_model) < 20_000
        rig.session.interrupt()
        await task


@pytest.mark.parametrize(("recovery", "status"), [
    (Recovery(cut_bytes=60, unfinished=True), "denied"),
    (Recovery(cut_bytes=400), "unknown"),
    (Recovery(damages=(Damage("0:1", "crc", 90, 7),)), "unknown"),
    (Recovery(damages=(Damage("0:1", "crc", 90, 3),)), "denied"),
])  # fmt: skip
async def test_a_call_whose_start_may_be_lost_is_not_said_to_have_had_no_effects(
    recovery: Recovery, status: str
) -> None:
    rig = await new([Say((), (("change", {"path": "x"}),)), Say(("ok",))])
    async with rig.session:
        await rig.session.submit("go")
    whole = [r.type for r in rig.store.read(ID)]
    store = rig.store.crashed(ID, whole.index("tool_call") + 1)
    opened = await store.open(ID)
    back = await again(store, [], opened=Opened(opened.log, opened.records, recovery))
    (result,) = back.facts(ToolResult)
    assert result.status == status
    assert ("no effects" in str(result.for_model)) == (status == "denied")


async def test_an_environment_that_does_not_read_any_more_is_recorded_anew_and_told() -> None:
    rig = await new([Say(("one",))])
    fresh = EnvironmentChanged(system_prompt="anew", tools="[]", instructions=())
    async with rig.session:
        assert not await renew_environment(rig.journal, InlineTexts(), lambda: fresh)
        gone = BlobRef(blob="sha256:0", bytes=9, head="[", tail="]")
        lost = EnvironmentChanged(system_prompt="x", tools=gone, instructions=())
        await rig.journal.record(lost)
        with pytest.raises(BlobMissing):
            await rig.session.submit("go")
        assert await renew_environment(rig.journal, InlineTexts(), lambda: fresh)
        assert rig.facts(Note)
        assert (await rig.session.submit("go")).reason == "done"
    assert json.loads(rig.model.requests[-1])["messages"][0]["text"] == "anew"
