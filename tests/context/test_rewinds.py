"""The conversation after rewinds: what is cut, what comes back, whatever the order."""

from typing import Any

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from agentsh.context.fold import apply, fold
from agentsh.context.messages import build
from agentsh.context.rewinds import CONVERSATION, Moments, fold_whole, settle
from agentsh.context.state import AgentItem, SessionState
from agentsh.context.view import view_of
from agentsh.events.base import NO_USAGE, Fact
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, RewindUndone, Rewound, SnapshotTaken
from agentsh.events.tool import CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, ContextBuilt, Cut, TodoChanged, TurnFinished, UserMessage
from agentsh.ports.snapshots import Step
from agentsh.ports.texts import InlineTexts

STARTED = ToolStarted(call="c", effects=("exec",), sandbox="none", pid=None, decision="auto")
CALL = ToolCall(call="c", name="shell", arguments="{}")
END = TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=1)


def log(*facts: Fact, causes: dict[int, int] | None = None) -> list[Event]:
    made: Any = facts
    return [Event(n, "", (causes or {}).get(n), fact, b"") for n, fact in enumerate(made, 1)]


def user(text: str) -> UserMessage:
    return UserMessage(text=text, attachments=())


def agent(text: str) -> AgentMessage:
    return AgentMessage(text=text, reasoning=None, model="m", finish="stop", usage=None, cost_usd=None)


def built(cut: int | None) -> ContextBuilt:
    return ContextBuilt(
        request_sha256="", bytes=1, estimator="e", tokens=1, budget=1,
        cut=None if cut is None else Cut(from_seq=cut, reason="x"),
    )  # fmt: skip


def said(state: SessionState) -> list[str]:
    blocks = build(state, InlineTexts(), view_of(state))
    return [m.text for block in blocks for m in block.messages if m.role != "system"]


def turns(n: int) -> list[Fact]:
    """Three events each."""
    return [f for k in range(n) for f in (user(f"u{k}"), agent(f"a{k}"), END)]


def test_the_talk_is_cut_back_and_comes_back() -> None:
    events = log(*turns(3), Rewound(to_seq=3, what="both"), user("new"))
    assert said(fold_whole(events[:10])) == ["u0", "a0"]
    assert said(fold_whole(events)) == ["u0", "a0", "new"]
    undone = log(*turns(3), Rewound(to_seq=3, what="both"), user("new"), RewindUndone(rewound=10))
    assert said(fold_whole(undone)) == ["u0", "a0", "u1", "a1", "u2", "a2"]


def test_files_alone_leave_the_talk_and_so_does_their_undo() -> None:
    events = log(*turns(2), Rewound(to_seq=3, what="files"), user("x"), RewindUndone(rewound=7))
    assert said(fold_whole(events)) == said(fold(events)) == ["u0", "a0", "u1", "a1", "x"]
    assert not fold(events).behind


def test_back_into_what_an_earlier_rewind_took_out() -> None:
    events = log(*turns(3), Rewound(to_seq=3, what="both"), user("x"), Rewound(to_seq=8, what="both"))
    assert said(fold_whole(events)) == ["u0", "a0", "u1", "a1", "u2", "a2"]


def test_back_into_the_middle_of_a_turn() -> None:
    result = ToolResult(call="c", status="ok", for_model="the result", for_user="", duration_ms=1)
    facts = (user("u"), agent("a"), CALL, STARTED, result, END, Rewound(to_seq=4, what="both"), user("on"))
    state = fold_whole(log(*facts, causes={3: 2, 4: 3, 5: 4}))
    (item,) = [i for i in state.talk if isinstance(i, AgentItem)]
    assert item.calls[0].result is None
    assert state.calls == {}
    assert state.turn is not None
    assert state.turn.user_seq == 8, "the turn that was cut into goes on no more"
    assert said(fold_whole(log(*facts[:6], Rewound(to_seq=2, what="both"), causes={3: 2, 4: 3, 5: 4}))) == ["u", "a"]


def test_a_cut_and_a_list_that_came_later_do_not_hold_any_more() -> None:
    events = log(
        *turns(2), built(4), TodoChanged(items=("one",)), *turns(1), built(8), TodoChanged(items=("two",)),
        Rewound(to_seq=11, what="both"),
    )  # fmt: skip
    assert (fold(events[:-1]).context_from, fold(events[:-1]).todo) == (8, ("two",))
    state = fold_whole(events)
    assert (state.context_from, state.todo) == (4, ("one",))
    assert fold(events).behind, "what was forgotten is asked for again"


def test_snapshots_and_who_may_have_changed_files() -> None:
    edit = CodeEdit(call="c", path="p", diff="", before=None, after=None, snapshot="s2")
    start = SnapshotTaken(snapshot="s1", files=0, bytes=0, by="start")
    events = log(agent("a"), CALL, start, STARTED, edit, causes={2: 1, 4: 2, 5: 4})
    assert fold(events[:3]).unfinished is None
    assert fold(events[:4]).unfinished == "tool"
    state = fold(events)
    assert (state.unfinished, state.snapshot) == (None, Step(5, "s2", "tool"))
    known = Moments()
    for event in events:
        known.add(event)
    assert known.steps == [Step(3, "s1", "start"), Step(5, "s2", "tool")]
    state = fold(log(start, Rewound(to_seq=1, what="both", files=2)))
    assert (state.winding, state.unfinished) == ((2, 1), "rewind")
    apply(state, Event(3, "", 2, SnapshotTaken(snapshot="s3", files=0, bytes=0, by="rewind"), b""))
    assert (state.winding, state.unfinished) == (None, None)


def test_totals_are_not_taken_back() -> None:
    state = fold_whole(log(*turns(3), Rewound(to_seq=3, what="both")))
    assert state.totals == fold(log(*turns(3))).totals, "it was spent"


FACTS = st.one_of(
    st.builds(user, st.sampled_from("xyz")),
    st.builds(agent, st.sampled_from("xyz")),
    st.just(END),
    st.builds(built, st.one_of(st.none(), st.integers(1, 30))),
    st.builds(Rewound, to_seq=st.integers(-3, 40), what=st.sampled_from(["conversation", "files", "both"])),
    st.builds(RewindUndone, rewound=st.integers(-3, 40)),
    st.just(EnvironmentChanged(system_prompt="s", tools="[]", instructions=())),
)


@given(st.lists(FACTS, max_size=25))
@hypothesis.settings(deadline=None, max_examples=120)
def test_a_rewind_gives_the_talk_of_that_moment_whatever_came_before(facts: list[Fact]) -> None:
    events = log(*facts)
    for seq in {1, len(events) // 2, len(events) - 1} & set(range(1, len(events) + 1)):
        then = fold_whole(events[:seq])
        again = fold_whole([*events, *log(*facts, Rewound(to_seq=seq, what="both"))[-1:]])
        for name in set(CONVERSATION) - {"turn", "partial", "calls", "questions", "compacting"}:
            assert getattr(again, name) == getattr(then, name), name
        assert again.turn is None


@given(st.lists(FACTS, max_size=25))
@hypothesis.settings(deadline=None, max_examples=120)
def test_a_live_state_that_settles_is_the_folded_one(facts: list[Fact]) -> None:
    events, state = log(*facts), SessionState()
    for event in events:
        apply(state, event)
        if state.behind:
            settle(state, fold_whole(events[: event.seq]))
    assert state == fold_whole(events)


@given(st.lists(FACTS, max_size=25))
@hypothesis.settings(deadline=None, max_examples=120)
def test_the_turns_to_go_back_to_are_those_of_the_talk(facts: list[Fact]) -> None:
    uncut = [fact for fact in facts if not (isinstance(fact, ContextBuilt) and fact.cut)]
    events, known = log(*uncut), Moments()
    for event in events:
        known.add(event)
    talk = fold_whole(events).talk
    assert [turn.seq for turn in known.turns] == [i.seq for i in talk if getattr(i, "opens_turn", False)]
