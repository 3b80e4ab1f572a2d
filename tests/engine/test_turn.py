"""A walking turn on memory: what is recorded, in which order, whatever happens."""

import asyncio
import json

import pytest

from agentsh.base.errors import ModelUnavailable
from agentsh.context.fold import fold
from agentsh.engine.turn import Limits
from agentsh.events.codec import decode
from agentsh.events.tool import ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, TurnFinished
from agentsh.ports.approver import Answer
from agentsh.testing import Say, ScriptedApprover
from tests.engine.rig import ID, CutModel, Rig, again, new


def results(rig: Rig) -> list[ToolResult]:
    return rig.facts(ToolResult)


async def test_a_turn_with_two_tools_is_recorded_in_the_order_of_the_design() -> None:
    rig = await new(
        [
            Say(("I will ", "look."), (("look", {"path": "a"}),)),
            Say((), (("change", {"path": "a"}),)),
            Say(("Done.",)),
        ]
    )
    async with rig.session:
        outcome = await rig.session.submit("please")
    assert outcome.reason == "done"
    assert outcome.steps == 3
    assert rig.screen.types == [
        "session_init", "environment_changed", "user_message", "renamed",
        "context_built", "agent_message", "tool_call", "tool_started", "tool_result",
        "context_built", "agent_message", "tool_call", "tool_started", "tool_result",
        "context_built", "agent_message", "turn_finished",
    ]  # fmt: skip
    by_seq = {e.seq: e for e in rig.screen.events}
    for event in rig.screen.events:
        if event.fact.type in ("tool_started", "tool_call", "tool_result"):
            assert event.cause is not None
            expected = {"tool_call": "agent_message", "tool_started": "tool_call", "tool_result": "tool_started"}
            assert by_seq[event.cause].fact.type == expected[event.fact.type]


async def test_what_is_published_is_what_a_reader_of_the_log_decodes() -> None:
    rig = await new([Say(("hi",), (("look", {"path": "x" * 40_000}),)), Say(("bye",))])
    async with rig.session:
        await rig.session.submit("long " * 9_000)
    assert [decode(r) for r in rig.store.read(ID)] == rig.screen.events
    assert max(len(r.raw) for r in rig.store.read(ID)) <= 25_000
    assert fold(rig.screen.events).talk == rig.session.state.talk


async def test_neighbouring_reads_run_together_and_report_in_source_order() -> None:
    calls = tuple(("look", {"path": str(n)}) for n in range(4))
    rig = await new([Say((), calls), Say(("ok",))])
    async with rig.session:
        await rig.session.submit("look at all")
    kinds = [t for t in rig.screen.types if t in ("tool_started", "tool_result")]
    assert kinds == ["tool_started"] * 4 + ["tool_result"] * 4
    assert [r.for_model for r in results(rig)] == ["saw 0", "saw 1", "saw 2", "saw 3"]


@pytest.mark.parametrize(
    ("calls", "status", "text"),
    [
        ((("nothing", {}),), "error", "There is no tool"),
        ((("look", '{"path":'),), "error", "not JSON"),
        ((("look", "[1]"),), "error", "not an object"),
        ((("broken", {}),), "error", "KeyError"),
    ],
)
async def test_whatever_goes_wrong_in_a_call_is_its_one_result(
    calls: tuple[tuple[str, object], ...], status: str, text: str
) -> None:
    rig = await new([Say((), calls), Say(("I see.",))])
    async with rig.session:
        outcome = await rig.session.submit("go")
    assert outcome.reason == "done"
    assert [r.status for r in results(rig)] == [status]
    assert isinstance(results(rig)[0].for_model, str)
    assert text in str(results(rig)[0].for_model)
    request = json.loads(rig.model.requests[1])
    assert all(isinstance(json.loads(c[2]), dict) for m in request["messages"] for c in m["calls"])


async def test_an_interrupted_tool_says_so_and_later_calls_did_not_run() -> None:
    rig = await new([Say((), (("hang", {"path": "1"}), ("change", {"path": "2"}))), Say(("ok",))])
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        await rig.counter.started.wait()
        assert rig.session.interrupt()
        outcome = await task
        assert outcome.reason == "interrupted"
        assert [r.status for r in results(rig)] == ["interrupted", "denied"]
        assert "half of the output" in str(results(rig)[0].for_model)
        assert rig.counter.runs == ["hang"]
        await rig.session.submit("go on")
    sent = json.loads(rig.model.requests[1])["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "tool", "user"]


@pytest.mark.parametrize("ticks", range(120))
async def test_an_interruption_at_any_moment_leaves_a_log_that_is_closed_and_valid(ticks: int) -> None:
    calls = (("look", {"path": "a"}), ("look", {"path": "b"}), ("change", {"path": "c"}))
    rig = await new([Say(("a", "b"), calls), Say(("c",), calls), Say(("d",)), Say(("e",))])
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        accepted, before = rig.session.interrupt(), len(rig.counter.runs)
        outcome = await task
        if accepted and ticks < 60:
            assert outcome.reason == "interrupted", "an accepted interruption is not swallowed"
            assert len(rig.counter.runs) <= before + 1, "no effect begins after it but one that had begun"
        state = rig.session.state
        assert state.turn is None
        assert not state.calls
        assert rig.screen.types.count("tool_call") == rig.screen.types.count("tool_result")
        runs = len(rig.counter.runs)
        started = [f for f in rig.facts(ToolStarted) if "write" in f.effects]
        assert runs <= len(started)
        assert fold([decode(r) for r in rig.store.read(ID)]) == state


async def test_a_model_error_ends_the_turn_and_is_told() -> None:
    rig = await new([ModelUnavailable("the server answered 500"), Say(("fine now",))])
    async with rig.session:
        outcome = await rig.session.submit("go")
        assert outcome.reason == "error"
        assert isinstance(outcome.error, ModelUnavailable)
        finished = rig.screen.events[-1].fact
        assert isinstance(finished, TurnFinished)
        assert finished.error == "the server answered 500"
        assert (await rig.session.submit("again")).reason == "done"


async def test_the_text_of_a_cut_stream_is_kept() -> None:
    rig = await new([], model=CutModel())
    async with rig.session:
        outcome = await rig.session.submit("go")
    assert outcome.reason == "error"
    assert [(m.text, m.finish) for m in rig.facts(AgentMessage)] == [("half an ans", "cut")]


async def test_approvals_are_facts_and_a_yes_for_the_session_is_asked_once() -> None:
    approver = ScriptedApprover([Answer("no", "not that file"), Answer("session")])
    moves = [Say((), (("change", {"path": str(n)}),)) for n in range(3)]
    rig = await new([*moves, Say(("ok",))], mode="ask", approver=approver)
    async with rig.session:
        await rig.session.submit("go")
    assert rig.counter.runs == ["1", "2"]
    assert [r.status for r in results(rig)] == ["denied", "ok", "ok"]
    assert "not that file" in str(results(rig)[0].for_model)
    assert rig.screen.types.count("approval_asked") == 2
    assert rig.session.state.grants == {"change"}


async def test_with_nobody_to_ask_the_call_is_denied_and_the_turn_goes_on() -> None:
    rig = await new([Say((), (("change", {"path": "x"}),)), Say(("ok",))], mode="ask")
    async with rig.session:
        outcome = await rig.session.submit("go")
        assert outcome.reason == "done"
        assert rig.session.unasked == 1
        assert rig.counter.runs == []


async def test_limits_stop_a_turn() -> None:
    moves = [Say((), (("look", {"path": "a"}),)) for _ in range(5)]
    rig = await new(moves, limits=Limits(max_steps=2))
    async with rig.session:
        outcome = await rig.session.submit("go")
    assert (outcome.reason, outcome.steps) == ("max_steps", 2)
    rig = await new(moves, limits=Limits(max_cost_usd=0.0000001))
    async with rig.session:
        outcome = await rig.session.submit("go")
    assert (outcome.reason, outcome.steps) == ("max_cost", 1)


async def test_steering_joins_at_the_next_step() -> None:
    rig = await new([Say(("first",)), Say(("second",))])
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        await asyncio.sleep(0)
        await rig.session.queue("and this", steer=True)
        await task
        assert not rig.session.state.queue
    sent = json.loads(rig.model.requests[-1])["messages"]
    assert [m["text"] for m in sent if m["role"] == "user"] == ["go", "and this"]


async def test_a_session_cut_after_any_event_reopens_with_one_result_for_each_call() -> None:
    """D96 NousResearch/hermes-agent#99296: the repair is in the log, and the second opening repairs nothing."""
    calls = (("look", {"path": "a"}), ("change", {"path": "c"}))
    rig = await new([Say(("a",), calls), Say(("b",))])
    async with rig.session:
        await rig.session.submit("go")
    whole = list(rig.store.read(ID))
    for keep in range(2, len(whole) + 1):
        store = rig.store.crashed(ID, keep)
        back = await again(store, [Say(("on",))])
        assert back.counter.runs == []
        facts = [e.fact for e in map(decode, store.read(ID))]
        asked = [f for f in facts if f.type == "tool_call"]
        assert len([f for f in facts if f.type == "tool_result"]) == len(asked)
        async with back.session:
            assert (await back.session.submit("go on")).reason == "done"
            assert back.session.state.turn is None
        once = await again(store, [])
        assert once.screen.types == ["opened"], "recovery is idempotent"


@pytest.mark.parametrize("ticks", range(0, 120, 3))
async def test_two_cancellations_do_not_leave_the_log_behind(ticks: int) -> None:
    calls = (("look", {"path": "a"}), ("change", {"path": "c"}))
    rig = await new([Say(("a", "b"), calls), Say(("c",), calls), Say(("d",)), Say(("e",))])
    task = asyncio.create_task(rig.session.submit("go"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await rig.session.close()
    await asyncio.gather(task, return_exceptions=True)
    seqs = len(list(rig.store.read(ID)))
    await asyncio.sleep(0.01)
    assert len(list(rig.store.read(ID))) == seqs
    if ticks:
        assert rig.session.state.turn is None
    assert (await again(rig.store, [])).screen.types == ["opened"]


async def test_a_yes_for_the_session_is_for_that_very_command() -> None:
    long = "touch " * 500
    approver = ScriptedApprover([Answer("session"), Answer("no")])
    rig = await new(
        [Say((), (("hang", {"path": long + "a"}),)), Say((), (("hang", {"path": long + "b"}),)), Say(("ok",))],
        mode="ask",
        approver=approver,
    )
    async with rig.session:
        task = asyncio.create_task(rig.session.submit("go"))
        await rig.counter.started.wait()
        rig.session.interrupt()
        await task
        await rig.session.submit("and now the other")
    assert len(approver.questions) == 2
