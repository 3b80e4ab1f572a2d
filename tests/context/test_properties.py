"""Any log, cut anywhere, folds to a state whose request no provider would refuse."""

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.base.errors import ContextOverflow
from agentsh.context.budget import count_message, fit
from agentsh.context.fold import apply, fold
from agentsh.context.marks import Marks
from agentsh.context.messages import build, messages_of
from agentsh.context.repairs import repairs
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.context.view import View, view_of
from agentsh.events.codec import decode, encode
from agentsh.events.event import Event
from agentsh.events.turn import UserMessage
from agentsh.log.frame import decode_event, encode_event
from agentsh.models.chat_body import encode as encode_body
from agentsh.ports.model import Message, Prompt
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tokens import ByteEstimate
from agentsh.testing import server_rules as rules
from tests.context.strategies import TS, logs

TEXTS = InlineTexts()
COUNTER = ByteEstimate()


def shown(state: SessionState, view: View | None = None) -> tuple[Message, ...]:
    return messages_of(build(state, TEXTS, view or view_of(state)))


def add(state: SessionState, facts: list[tuple[object, int | None]]) -> None:
    for fact, cause in facts:
        line = encode_event(encode(fact, ts=TS, cause=cause), seq=state.last_seq + 1, dur=0, salt=1)  # type: ignore[arg-type]
        apply(state, decode(decode_event(line, 1)))


def reopened(events: list[Event]) -> SessionState:
    """The state after a crash at this point, an opening, and a new prompt."""
    state = fold(events)
    add(state, [(r.fact, r.cause) for r in repairs(state)])
    add(state, [(UserMessage(text="go on", attachments=()), None)])
    return state


@given(logs())
@settings(deadline=None, max_examples=80)
def test_any_log_gives_a_request_that_a_strict_server_takes(events: list[Event]) -> None:
    """Judged by the rules of the scripted server, which share no code with the builder."""
    state = reopened(events)
    prompt = Prompt("m", shown(state), ())
    assert rules.problems(json.loads(encode_body(prompt))) == []


@given(logs())
@settings(deadline=None, max_examples=80)
def test_any_log_gives_a_valid_request(events: list[Event]) -> None:
    state = reopened(events)
    assert problems(shown(state)) == []


@given(logs(sound=True))
@settings(deadline=None, max_examples=20)
def test_a_log_cut_at_any_event_gives_a_valid_request(events: list[Event]) -> None:
    for keep in range(1, len(events) + 1):
        state = reopened(events[:keep])
        assert problems(shown(state)) == []


@given(logs())
@settings(deadline=None, max_examples=80)
def test_repairs_leave_nothing_to_repair(events: list[Event]) -> None:
    state = fold(events)
    add(state, [(r.fact, r.cause) for r in repairs(state)])
    assert repairs(state) == []
    assert state.turn is None
    assert not state.calls


@given(logs(), st.integers(200, 6000))
@settings(deadline=None, max_examples=80)
def test_fitting_is_valid_within_budget_and_the_same_after_its_cut_was_recorded(
    events: list[Event], budget: int
) -> None:
    state = reopened(events)
    try:
        fitted = fit(state, TEXTS, COUNTER, marks=Marks(budget))
    except ContextOverflow:
        return
    assert problems(fitted.messages) == []
    assert sum(count_message(m, COUNTER) for m in fitted.messages) == fitted.tokens <= budget
    assert any(m.role == "user" and m.text.endswith("go on") for m in fitted.messages), (
        "the newest prompt is never cut"
    )
    if fitted.cut is not None:
        state.context_from = fitted.cut.from_seq
        state.pruned_before = fitted.cut.pruned_before or state.pruned_before
        assert shown(state) == fitted.messages


@given(logs(sound=True))
@settings(deadline=None, max_examples=20)
def test_a_new_event_never_changes_earlier_messages(events: list[Event]) -> None:
    state = reopened(events)
    before = shown(state, View())
    later = copy.deepcopy(state)
    add(later, [(UserMessage(text="more", attachments=()), None)])
    assert shown(later, View())[: len(before)] == before


@given(logs())
@settings(deadline=None, max_examples=20)
def test_a_log_folded_in_two_parts_is_the_log_folded_at_once(events: list[Event]) -> None:
    for cut in range(len(events)):
        state = fold(events[:cut])
        for event in events[cut:]:
            apply(state, event)
        assert state == fold(events)
