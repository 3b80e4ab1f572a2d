"""The conversation after rewinds: what is cut, what comes back, whatever the order."""

from typing import Any, Literal

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.context.fold import apply, fold, settle
from agentsh.context.messages import build
from agentsh.context.state import AgentItem, SessionState, history
from agentsh.events.base import Fact
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, RewindUndone, Rewound, SnapshotTaken
from agentsh.events.tool import CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, ContextBuilt, Cut, UserMessage
from agentsh.ports.snapshots import Step
from agentsh.ports.texts import InlineTexts

What = Literal["conversation", "files", "both"]


def log(*facts: Fact, causes: dict[int, int] | None = None) -> list[Event]:
    made: Any = facts
    return [Event(n, "", (causes or {}).get(n), fact, b"") for n, fact in enumerate(made, 1)]


def user(text: str) -> UserMessage:
    return UserMessage(text=text, attachments=())


def agent(text: str) -> AgentMessage:
    return AgentMessage(text=text, reasoning=None, model="m", finish="stop", usage=None, cost_usd=None)


def said(state: SessionState) -> list[str]:
    return [m.text for m in build(state, InlineTexts(), from_seq=state.context_from) if m.role != "system"]


def turns(n: int) -> list[Fact]:
    """Three events each: the message, the answer, a remark that stands for all else."""
    return [
        f for k in range(n) for f in (user(f"u{k}"), agent(f"a{k}"), SnapshotTaken(snapshot="s", files=0, bytes=0))
    ]


def test_the_talk_is_cut_back_and_comes_back() -> None:
    events = log(*turns(3), Rewound(to_seq=3, what="both"), user("new"))
    assert said(fold(events[:10])) == ["u0", "a0"]
    assert said(fold(events)) == ["u0", "a0", "new"]
    undone = log(*turns(3), Rewound(to_seq=3, what="both"), user("new"), RewindUndone(rewound=10))
    assert said(fold(undone)) == ["u0", "a0", "u1", "a1", "u2", "a2"]


def test_files_alone_leave_the_talk() -> None:
    events = log(*turns(2), Rewound(to_seq=3, what="files"))
    assert said(fold(events)) == ["u0", "a0", "u1", "a1"]


def test_back_into_what_an_earlier_rewind_took_out() -> None:
    events = log(*turns(3), Rewound(to_seq=3, what="both"), user("x"), Rewound(to_seq=8, what="both"))
    assert said(fold(events)) == ["u0", "a0", "u1", "a1", "u2", "a2"]


def test_back_into_the_middle_of_a_turn() -> None:
    call = ToolCall(call="c", name="shell", arguments="{}")
    result = ToolResult(call="c", status="ok", for_model="the result", for_user="", duration_ms=1)
    started = ToolStarted(call="c", effects=("exec",), sandbox="none", pid=None, decision="auto")
    facts = (user("u"), agent("a"), call, started, result, Rewound(to_seq=4, what="both"))
    events = log(*facts, causes={3: 2, 4: 3, 5: 4})
    state = fold(events)
    (item,) = [i for i in state.talk if isinstance(i, AgentItem)]
    assert item.calls[0].result is None
    (whole,) = [i for i in history(state) if isinstance(i, AgentItem)]
    assert whole.calls[0].result is not None, "the log's own history is not touched"
    assert "the result" not in said(state)
    before = fold(log(*facts[:5], Rewound(to_seq=2, what="both"), causes={3: 2, 4: 3, 5: 4}))
    assert said(before) == ["u", "a"]


def test_a_cut_that_came_later_does_not_hold_any_more() -> None:
    events = log(*turns(2), built(4), *turns(1), built(8), Rewound(to_seq=10, what="both"))
    assert fold(events[:-1]).context_from == 8
    assert fold(events, whole=True).context_from == 4
    assert fold(events).behind, "what was forgotten is asked for again"


def test_snapshots_and_who_may_have_changed_files() -> None:
    started = ToolStarted(call="c", effects=("exec",), sandbox="none", pid=None, decision="auto")
    call = ToolCall(call="c", name="shell", arguments="{}")
    edit = CodeEdit(call="c", path="p", diff="", before=None, after=None, snapshot="s2")
    start = SnapshotTaken(snapshot="s1", files=0, bytes=0, by="start")
    events = log(agent("a"), call, start, started, edit, causes={2: 1, 4: 2, 5: 4})
    assert fold(events[:3]).unfinished is None
    assert fold(events[:4]).unfinished == "tool"
    state = fold(events, whole=True)
    assert state.unfinished is None
    assert fold(events).snapshots == [Step(5, "s2", "tool")], "the last one alone, unless somebody needs them all"
    assert state.snapshots == [Step(3, "s1", "start"), Step(5, "s2", "tool")]
    state = fold(log(start, Rewound(to_seq=1, what="both", files=2)))
    assert (state.winding, state.unfinished) == ((2, 1), "rewind")
    apply(state, Event(3, "", 2, SnapshotTaken(snapshot="s3", files=0, bytes=0, by="rewind"), b""))
    assert (state.winding, state.unfinished) == (None, None)


FACTS = st.one_of(
    st.builds(user, st.sampled_from("xyz")),
    st.builds(agent, st.sampled_from("xyz")),
    st.builds(Rewound, to_seq=st.integers(-3, 40), what=st.sampled_from(["conversation", "files", "both"])),
    st.builds(RewindUndone, rewound=st.integers(-3, 40)),
    st.just(EnvironmentChanged(system_prompt="s", tools="[]", instructions=())),
)


@given(st.lists(FACTS, max_size=30))
@hypothesis.settings(deadline=None, max_examples=150)
def test_a_rewind_gives_the_talk_of_that_moment_whatever_came_before(facts: list[Fact]) -> None:
    events = log(*facts)
    talks: dict[int, list[int]] = {0: []}
    state = SessionState()
    for event in events:
        apply(state, event)
        talks[event.seq] = [item.seq for item in state.talk]
    for seq in range(1, len(events) + 1):
        again = fold([*events, Event(len(events) + 1, "", None, Rewound(to_seq=seq, what="both"), b"")])
        assert [item.seq for item in again.talk] == talks[seq]


def built(cut: int | None) -> ContextBuilt:
    return ContextBuilt(
        request_sha256="", bytes=1, estimator="e", tokens=1, budget=1,
        cut=None if cut is None else Cut(from_seq=cut, reason="x"),
    )  # fmt: skip


CUTS = st.one_of(FACTS, st.builds(built, st.one_of(st.none(), st.integers(1, 30))))


@given(st.lists(CUTS, max_size=30))
@hypothesis.settings(deadline=None, max_examples=200)
def test_what_is_forgotten_is_never_missed(facts: list[Fact]) -> None:
    """A state that forgets gives the same requests as one that does not, or knows that it is behind."""
    state, whole = SessionState(), SessionState(whole=True)
    for event in log(*facts):
        apply(state, event)
        apply(whole, event)
        if state.behind:
            settle(state, fold(log(*facts)[: event.seq], whole=True))
            assert not state.behind
        assert state.context_from == whole.context_from
        assert said(state) == said(whole)


@pytest.mark.parametrize("what", ["conversation", "both"])
def test_totals_are_not_taken_back(what: What) -> None:
    state = fold(log(*turns(3), Rewound(to_seq=3, what=what)))
    assert state.totals.turns == fold(log(*turns(3))).totals.turns, "it was spent"
