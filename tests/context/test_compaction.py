"""Compactions in the state and what they would do: undo, hysteresis, the breaker, bounds; any log, any budget."""

import copy
import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentsh.base.errors import ContextOverflow
from agentsh.base.typed import some
from agentsh.context import compaction, summarising
from agentsh.context.budget import Scale, count_message, decide, fit
from agentsh.context.marks import Marks
from agentsh.context.messages import build, kept, messages_of
from agentsh.context.planning import MIN_SUMMARY_TOKENS, plan, weighed_with
from agentsh.context.request import summary_prompt
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.context.view import view_of
from agentsh.events.base import Usage
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryAsk, SummaryTried
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, ModelChanged, Opened
from agentsh.events.tool import ToolCall, ToolResult
from agentsh.events.turn import AgentMessage, ContextBuilt, Cut, TurnFinished, UserMessage
from agentsh.models.chat_body import encode as encode_body
from agentsh.ports.model import Message, Prompt
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tokens import ByteEstimate
from agentsh.testing import server_rules as rules
from tests.context.strategies import logs
from tests.context.test_properties import add, reopened

TEXTS = InlineTexts()
COUNTER = ByteEstimate()
SPENT = Usage(prompt=10, cached=5, completion=3, reasoning=0)


def shown(state: SessionState) -> tuple[Message, ...]:
    return messages_of(build(state, TEXTS, view_of(state)))


def body(state: SessionState) -> bytes:
    return encode_body(Prompt("m", shown(state), ()))


def a_compaction(upto: int, **more: Any) -> Compaction:
    members = {
        "from_seq": 1,
        "upto_seq": upto,
        "summary": "so far",
        "by": "auto",
        "tokens_after": 400,
        "budget": 1000,
    }
    return Compaction.model_validate({**members, "tokens_before": 800, **more})


def a_built(**more: Any) -> ContextBuilt:
    members = {"request_sha256": "0", "bytes": 0, "estimator": "~", "tokens": 0, "budget": 0, "cut": None}
    return ContextBuilt.model_validate({**members, **more})


def talked(turns: int, size: int = 300) -> SessionState:
    """A session of plain turns. Event 1 is the environment, each turn three events."""
    state = SessionState()
    add(state, [(EnvironmentChanged(system_prompt="You are a test.", tools="[]", instructions=()), None)])
    reply = {"reasoning": None, "model": "m", "finish": "stop", "usage": None, "cost_usd": None}
    finished = {"reason": "done", "steps": 1, "usage": SPENT, "cost_usd": None, "duration_ms": 0}
    for n in range(turns):
        add(
            state,
            [
                (UserMessage(text=f"question {n} " + "q" * size, attachments=()), None),
                (AgentMessage.model_validate({"text": f"answer {n} " + "a" * size, **reply}), None),
                (TurnFinished.model_validate(finished), None),
            ],
        )
    return state


@given(logs(), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None, max_examples=60)
def test_an_undo_gives_the_very_bytes_back_and_keeps_what_came_since(
    events: list[Event], upto: int, cut: int, pruned: int
) -> None:
    """G131. What was pruned in between is undone with it; a cut that went beyond it ends the undo."""
    state = reopened(events)
    before, start = body(state), shown(state)
    add(state, [(a_compaction(upto), None)])
    seq = state.last_seq
    at_once = copy.deepcopy(state)
    at_once.talk[:] = kept(at_once.talk, compaction.first_needed(at_once))
    assert shown(at_once) == shown(state), "what is not needed may be forgotten"
    add(at_once, [(CompactionUndone(compaction=seq), seq)])
    assert body(at_once) == before
    add(state, [(a_built(cut=Cut(from_seq=cut, reason="x", pruned_before=pruned)), None)])
    add(state, [(UserMessage(text="and then", attachments=()), None)])
    gone, held = cut > upto + 1, copy.deepcopy(state)
    add(state, [(CompactionUndone(compaction=seq), seq)])
    if gone:
        assert (shown(state), compaction.first_needed(state)) == (shown(held), compaction.first_shown(state))
        return
    now = shown(state)
    assert (now[: len(start)], [m.text for m in now[len(start) :]]) == (start, ["and then"])
    assert rules.problems(json.loads(body(state))) == []


@given(logs(sound=True), st.data())
@settings(deadline=None, max_examples=40)
def test_a_log_with_compactions_cut_anywhere_gives_a_valid_request_within_the_budget(
    events: list[Event], data: st.DataObject
) -> None:
    budget = data.draw(st.integers(300, 6000))
    for keep in range(1, len(events) + 1):
        state = reopened(events[:keep])
        try:
            fitted = fit(state, TEXTS, COUNTER, marks=Marks(budget))
        except ContextOverflow:
            continue
        assert problems(fitted.messages) == []
        assert fitted.tokens <= budget


@given(logs(), st.integers(600, 20_000))
@settings(deadline=None, max_examples=80)
def test_what_is_planned_and_filled_is_valid_shorter_and_leaves_room(events: list[Event], budget: int) -> None:
    """G128: at least 40 % of the budget is free afterwards, or it is not planned at all."""
    state, marks = reopened(events), Marks(budget)
    scale = Scale(state, TEXTS, COUNTER)
    planned = plan(scale, marks)
    assert planned == plan(Scale(copy.deepcopy(state), TEXTS, COUNTER), marks)
    if planned is None:
        return
    text = summarising.mechanical(state, TEXTS, planned.upto_seq, max_bytes=planned.summary_tokens * 3)
    after = weighed_with(scale, planned.from_seq, planned.upto_seq, text)
    assert len(text.encode()) <= planned.summary_tokens * 3
    assert after <= planned.allowed_tokens <= min(planned.before_tokens * 0.9, budget * 0.6)
    fact = Compaction(from_seq=planned.from_seq, upto_seq=planned.upto_seq, summary=text, by="auto")
    add(state, [(fact, None)])
    assert rules.problems(json.loads(body(state))) == []
    assert Scale(state, TEXTS, COUNTER).total(view_of(state)) == after
    told = (m.text.rpartition("</changes>\n\n")[2] for m in shown(state))
    assert "go on" in told, "the newest prompt is never summarised away"


@given(logs(), st.integers(800, 20_000), st.sampled_from(["", "mind the tests", "\ud800"]))
@settings(deadline=None, max_examples=60)
def test_the_request_for_a_summary_is_valid_fits_and_comes_from_what_is_recorded(
    events: list[Event], limit: int, instructions: str
) -> None:
    """G125: whatever the history weighs."""
    state = reopened(events)

    def weigh(messages: tuple[Message, ...]) -> int:
        return sum(count_message(m, COUNTER) for m in messages)

    ask = SummaryAsk(attempt=1, max_words=100, **some(instructions=instructions or None))
    fitting = summarising.ask_that_fits(state, TEXTS, weigh, ask, limit)
    assume(fitting is not None)
    assert fitting is not None
    prompt = summary_prompt(state, TEXTS, fitting)
    assert weigh(prompt.messages) <= limit
    assert problems(prompt.messages) == []
    assert rules.problems(json.loads(encode_body(prompt))) == []
    read_back = SummaryAsk.model_validate(fitting.model_dump(exclude_unset=True))
    again = summary_prompt(copy.deepcopy(state), TEXTS, read_back)
    assert encode_body(again) == encode_body(prompt)


def test_what_fits_is_sent_as_the_next_step_would_send_it() -> None:
    """So that the provider's cache serves the long part: one message more, and nothing else."""
    state = talked(6)
    prompt = summary_prompt(state, TEXTS, SummaryAsk(attempt=1, max_words=100))
    assert prompt.messages[:-1] == shown(state)
    next_body = encode_body(Prompt(state.model, shown(state), ()))
    assert encode_body(prompt).startswith(next_body[: next_body.rindex(b"]")])


def test_a_history_of_ten_windows_still_fits_and_the_oldest_is_told_from_the_log() -> None:
    state = talked(200, size=2_000)

    def weigh(messages: tuple[Message, ...]) -> int:
        return sum(count_message(m, COUNTER) for m in messages)

    whole = weigh(shown(state))
    ask = summarising.ask_that_fits(state, TEXTS, weigh, SummaryAsk(attempt=1, max_words=100), whole // 10)
    assert ask is not None
    assert (ask.item_bytes, ask.from_seq is not None) == (500, True)
    messages = summarising.summary_messages(state, TEXTS, ask)
    assert "question 0" in messages[1].text
    assert "question 199" in messages[-3].text
    assert summarising.ask_that_fits(state, TEXTS, weigh, SummaryAsk(attempt=1, max_words=100), 300) is None


def test_the_newest_turns_stay_as_they_are_and_the_prompt_of_a_turn_that_is_cut_into() -> None:
    state, marks = talked(20), Marks(6_000)
    planned = plan(Scale(state, TEXTS, COUNTER), marks)
    assert planned is not None
    add(state, [(a_compaction(planned.upto_seq, from_seq=planned.from_seq), None)])
    texts = [m.text.rstrip("qa ") for m in shown(state)]
    assert texts[0] == "You are a test."
    assert "so far" in texts[1]
    assert texts[2].startswith("question")
    assert texts[-1] == "answer 19"
    assert sum(count_message(m, COUNTER) for m in shown(state)[2:]) <= 0.2 * planned.before_tokens
    reply = {"reasoning": None, "model": "m", "finish": "stop", "usage": None, "cost_usd": None}
    add(state, [(UserMessage(text="one long turn", attachments=()), None)])
    for n in range(20):
        add(state, [(AgentMessage.model_validate({"text": f"step {n} " + "s" * 500, **reply}), None)])
    planned = plan(Scale(state, TEXTS, COUNTER), marks)
    assert planned is not None
    add(state, [(a_compaction(planned.upto_seq), None)])
    assert shown(state)[2].text == "one long turn"
    assert shown(state)[3].text.startswith("step 1")


def test_an_undo_shows_whole_again_what_was_pruned_since() -> None:
    state = talked(1)
    reply = {"reasoning": None, "model": "m", "finish": "stop", "usage": None, "cost_usd": None}
    add(state, [(UserMessage(text="look", attachments=()), None)])
    add(state, [(AgentMessage.model_validate({"text": "I look.", **reply}), None)])
    add(state, [(ToolCall(call="c", name="look", arguments="{}"), state.last_seq)])
    result = {"call": "c", "status": "ok", "for_model": "o" * 5_000, "for_user": "", "duration_ms": 0}
    add(state, [(ToolResult.model_validate(result), state.last_seq)])
    before = body(state)
    add(state, [(a_compaction(4), None)])
    seq = state.last_seq
    add(state, [(a_built(cut=Cut(from_seq=0, reason="x", pruned_before=seq)), None)])
    assert "o" * 5_000 not in body(state).decode()
    add(state, [(CompactionUndone(compaction=seq), seq)])
    assert body(state) == before


def test_two_fifths_are_free_whatever_the_marks_say() -> None:
    """G128: marks can be configured."""
    state = talked(20)
    before = Scale(state, TEXTS, COUNTER).total(view_of(state))
    high = Marks(int(before / 0.95), high=0.9, enough=0.85, low=0.8)
    planned = plan(Scale(state, TEXTS, COUNTER), high)
    assert planned is not None
    assert planned.allowed_tokens <= 0.6 * high.budget_tokens


def test_a_short_conversation_is_not_worth_it() -> None:
    assert plan(Scale(talked(1, size=2_000), TEXTS, COUNTER), Marks(10_000)) is None
    assert plan(Scale(SessionState(), TEXTS, COUNTER), Marks(10_000)) is None
    few = plan(Scale(talked(3, size=2_000), TEXTS, COUNTER), Marks(10_000))
    assert few is not None
    assert few.summary_tokens >= MIN_SUMMARY_TOKENS


def test_no_second_compaction_before_enough_is_new() -> None:
    """G124. A tenth of the budget, counted from the last one; under another budget at once."""
    state = talked(3)
    assert compaction.may_compact(state, 700, 1000)
    add(state, [(a_compaction(4), None)])
    assert not compaction.may_compact(state, 450, 1000)
    assert compaction.may_compact(state, 500, 1000)
    assert compaction.may_compact(state, 450, 900)


def test_after_an_undo_nothing_is_taken_away_again_at_once() -> None:
    state = talked(40)
    total = Scale(state, TEXTS, COUNTER).total(view_of(state))
    marks = Marks(int(total / 0.85))
    assert decide(Scale(state, TEXTS, COUNTER), marks, can_compact=True).kind == "compact"
    add(state, [(a_compaction(100, budget=marks.budget_tokens, tokens_before=total), None)])
    seq = state.last_seq
    add(state, [(CompactionUndone(compaction=seq), seq)])
    scale = Scale(state, TEXTS, COUNTER)
    assert decide(scale, compaction.patient(state, marks), can_compact=True).kind == "keep"
    assert not compaction.may_compact(state, total, marks.budget_tokens)
    other = Marks(total)
    assert compaction.patient(state, other) == other, "another budget is another matter"


def test_only_the_newest_compaction_can_be_undone_and_only_once() -> None:
    state = talked(9)
    add(state, [(a_compaction(4), None)])
    first = state.last_seq
    add(state, [(a_compaction(10, summary="and more"), None)])
    second, before = state.last_seq, copy.deepcopy(state)
    add(state, [(CompactionUndone(compaction=first), first)])
    assert state.compaction == before.compaction
    add(state, [(CompactionUndone(compaction=second), second)])
    assert state.compaction is not None
    assert state.compaction.seq == first
    held = copy.deepcopy(state.compaction)
    add(state, [(CompactionUndone(compaction=second), second), (CompactionUndone(compaction=first), first)])
    assert state.compaction == held


def test_forty_compactions_leave_one_summary_and_what_its_undo_needs() -> None:
    state = talked(2)
    for n in range(40):
        add(state, [(a_compaction(state.last_seq, summary=f"summary {n}"), None)])
        reply = {"reasoning": None, "model": "m", "finish": "stop", "usage": None, "cost_usd": None}
        add(state, [(UserMessage(text=f"prompt {n}", attachments=()), None)])
        add(state, [(AgentMessage.model_validate({"text": f"reply {n}", **reply}), None)])
    texts = [m.text for m in shown(state)]
    assert [t for t in texts if "summary" in t] == [texts[1]]
    assert "summary 39" in texts[1]
    assert state.replaced is not None
    assert state.replaced.compaction is not None
    assert state.replaced.compaction.summary == "summary 38"
    needed = [item.seq for item in state.talk if item.seq >= compaction.first_needed(state)]
    assert len(needed) == 4, "two turns: one since the newest, one for its undo"
    assert not hasattr(state.replaced.compaction, "replaced")


def test_the_breaker_is_in_the_log() -> None:
    state = talked(1)
    add(state, [(SummaryTried(error="no", usage=SPENT, cost_usd=0.5), None)] * 2)
    assert (state.totals.usage.prompt, state.totals.cost_usd) == (20, 1.0), "failed tries are paid for"
    assert compaction.may_ask(state)
    opened = Opened(epoch=2, version="", host="", pid=1)
    add(state, [(a_built(summary={"attempt": 1, "max_words": 9}), None), (opened, None)])
    assert not compaction.may_ask(state), "a process that died while it waited counts too"
    assert state.compacting.asked is None
    other = copy.deepcopy(state)
    add(other, [(ModelChanged(model="another"), None)])
    assert compaction.may_ask(other)
    add(state, [(a_compaction(2, made="mechanical"), None)])
    assert not compaction.may_ask(state)
    add(state, [(a_compaction(2, made="model", usage=SPENT), None)])
    assert compaction.may_ask(state)
    assert state.totals.usage.prompt == 30


def test_a_request_for_a_summary_is_no_step_and_moves_nothing() -> None:
    state = talked(1)
    add(state, [(UserMessage(text="go", attachments=()), None)])
    before = shown(state)
    add(state, [(a_built(summary={"attempt": 1, "max_words": 9}), None)])
    assert state.turn is not None
    assert (state.turn.steps, shown(state)) == (0, before)
