"""Jobs in the state: told of once, however it comes; what no request can hold is forgotten."""

from typing import Any

import pytest

from agentsh.context.fold import fold
from agentsh.context.jobs import KEPT_JOBS, lost, untold
from agentsh.context.messages import build, messages_of
from agentsh.context.view import View
from agentsh.events.base import NO_USAGE
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, Opened
from agentsh.events.tool import JobChanged, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, ContextBuilt, Cut, TurnFinished, UserMessage
from agentsh.ports.texts import InlineTexts

START = EnvironmentChanged(system_prompt="You are a test.", tools="[]", instructions=())
END = TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0)


def user(text: str) -> UserMessage:
    return UserMessage(text=text, attachments=())


def agent(text: str = "") -> AgentMessage:
    return AgentMessage(text=text, reasoning=None, model="m", finish="stop", usage=None, cost_usd=None)


def job(name: str, state: str = "ended", **more: Any) -> JobChanged:
    told: dict[str, Any] = {} if state == "running" else {"for_model": f"job {name} is over"}
    return JobChanged(job=name, state=state, command=f"run {name}", **told, **more)


def log(*facts: Any, causes: dict[int, int] | None = None) -> list[Event]:
    return [
        Event(seq, "2026-11-29T16:20:00Z", (causes or {}).get(seq), fact, b"") for seq, fact in enumerate(facts, 1)
    ]


def asked(events: list[Event]) -> list[str]:
    state = fold(events)
    return [m.text for m in messages_of(build(state, InlineTexts(), View(state.context_from)))]


def test_an_end_that_no_result_told_is_told_with_the_next_message() -> None:
    events = log(START, user("a"), job("1", "running"), agent("b"), END, job("1", exit=0))
    assert [j.job for j in untold(fold(events))] == ["1"]
    events += [Event(7, "", None, user("c"), b"")]
    assert untold(fold(events)) == []
    assert asked(events)[-1].count("job 1 is over") == 1
    assert asked(events)[-1].endswith("c")
    assert "over" not in "".join(asked(events)[:-1])


def test_an_end_that_a_result_told_is_not_told_again() -> None:
    result = ToolResult(call="c", status="ok", for_model="[job 1 is over]", for_user="", duration_ms=0, jobs=("1",))
    call = ToolCall(call="c", name="look", arguments="{}")
    started = ToolStarted(call="c", effects=("read",), sandbox="none", pid=None, decision="auto")
    events = log(
        START, user("a"), job("1", "running"), agent(), call, started, job("1"), result, END, user("b"),
        causes={5: 4, 6: 5, 8: 6},
    )  # fmt: skip
    state = fold(events)
    assert untold(state) == []
    assert state.jobs["1"].command == "run 1"
    assert "".join(asked(events)).count("job 1 is over") == 1


def test_old_news_goes_with_its_message() -> None:
    cut = ContextBuilt(
        request_sha256="0", bytes=0, estimator="~", tokens=0, budget=0, cut=Cut(from_seq=9, reason="x")
    )
    events = log(START, user("a"), job("1"), END, user("b"), END, user("c"), END, user("d"), cut, END, user("e"))
    assert "job 1 is over" not in "".join(asked(events))
    assert fold(events).changes == []


def test_what_ran_when_agentsh_died_is_unknown() -> None:
    state = fold(log(START, job("1", "running"), job("2", "running"), job("1"), Opened(epoch=2, version="", host="")))
    (fact,) = (new.fact for new in lost(state))
    assert isinstance(fact, JobChanged)
    assert (fact.job, fact.state) == ("2", "unknown")
    assert lost(fold(log(START, job("2", "running"), fact))) == []


@pytest.mark.parametrize("running", [0, 3])
def test_the_newest_are_kept_and_all_that_run(running: int) -> None:
    facts = [*(job(f"r{n}", "running") for n in range(running)), *(job(str(n)) for n in range(50))]
    state = fold(log(START, *facts))
    assert len(state.jobs) == KEPT_JOBS + running
    assert "49" in state.jobs
