"""A state becomes bytes and comes back the same, whatever the log; and it does not grow with the log."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.context import state_codec
from agentsh.context.fold import KEPT_DAMAGES, apply, fold
from agentsh.context.messages import build
from agentsh.context.state import CallState, SessionState
from agentsh.context.state_codec import decode_state, encode_state, reducer
from agentsh.context.view import View
from agentsh.events.base import NO_USAGE
from agentsh.events.codec import decode, encode
from agentsh.events.event import Event
from agentsh.events.session import Recovered
from agentsh.events.turn import AgentMessage, ContextBuilt, Cut, TurnFinished, UserMessage
from agentsh.log.frame import decode_event, encode_event, with_crc
from agentsh.ports.texts import InlineTexts
from tests.context.strategies import TS, logs

TEXTS = InlineTexts()


def event(seq: int, fact: Any, cause: int | None = None) -> Event:
    return decode(decode_event(encode_event(encode(fact, ts=TS, cause=cause), seq=seq, dur=0, salt=1), 1))


def built(from_seq: int | None) -> ContextBuilt:
    cut = None if from_seq is None else Cut(from_seq=from_seq, reason="x")
    return ContextBuilt(request_sha256="0", bytes=0, estimator="~", tokens=0, budget=0, cut=cut)


def said(text: str) -> AgentMessage:
    return AgentMessage(text=text, reasoning=None, model="m", finish="stop", usage=None, cost_usd=None)


@given(logs(), st.data())
@settings(deadline=None, max_examples=100)
def test_a_state_comes_back_and_is_folded_on_as_if_it_had_never_been_bytes(events: list[Event], data: Any) -> None:
    whole = fold(events)
    assert decode_state(encode_state(whole)) == whole
    cut = data.draw(st.integers(0, len(events)))
    state = decode_state(encode_state(fold(events[:cut])))
    for event_ in events[cut:]:
        apply(state, event_)
    assert state == whole
    assert encode_state(state) == encode_state(whole)


@st.composite
def talks_with_cuts(draw: st.DrawFn) -> list[Event]:
    """Turns of one or more steps, steered or not, and cuts that only move on: to any event up to the newest item."""
    events, cut, newest = [event(1, UserMessage(text="first", attachments=()))], 0, 1
    for step in draw(st.lists(st.sampled_from(["user", "agent", "agent", "end", "cut", "cut"]), max_size=30)):
        seq = len(events) + 1
        if step == "user":
            events.append(event(seq, UserMessage(text=f"user {seq}", attachments=())))
        elif step == "agent":
            events.append(event(seq, said(f"agent {seq}")))
        elif step == "end":
            events.append(
                event(seq, TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0))
            )
        else:
            cut = draw(st.integers(cut, newest))
            events.append(event(seq, built(cut)))
        newest = seq if step in ("user", "agent") else newest
    return events


@given(talks_with_cuts())
@settings(deadline=None, max_examples=200)
def test_what_is_forgotten_at_a_cut_was_in_no_request(events: list[Event]) -> None:
    """Judged by a fold that knows no cut, and so forgets nothing."""
    state, uncut = SessionState(), SessionState()
    for e in events:
        apply(state, e)
        apply(uncut, event(e.seq, built(None)) if isinstance(e.fact, ContextBuilt) else e)
        for from_seq in {i.seq for i in state.talk if i.seq >= state.context_from} | {state.context_from}:
            assert build(state, TEXTS, View(from_seq)) == build(uncut, TEXTS, View(from_seq))


def test_an_open_call_stays_one_object() -> None:
    call = '{"seq":4,"ts":"x","type":"tool_call","dur":0,"cause":3,"payload":{"call":"c","name":"n","arguments":"{}"}'
    started = '{"seq":5,"ts":"x","type":"tool_started","dur":0,"cause":4,"payload":{"call":"c","effects":["exec"],'
    started += '"sandbox":"none","pid":1,"decision":"auto"}'
    lines = [with_crc(text, 1) for text in (call, started)]
    events = [event(2, UserMessage(text="u", attachments=())), event(3, said("a"))]
    events += [decode(decode_event(line, 1)) for line in lines]
    state = decode_state(encode_state(fold(events)))
    item = state.talk[-1]
    assert item.calls[0] is state.calls[4]  # type: ignore[union-attr]
    assert (state.calls[4].started_seq, state.calls[4].effects) == (5, ("exec",))


def test_the_state_of_a_long_session_is_no_larger_than_that_of_a_short_one() -> None:
    """One step after the other, with a cut whenever there are twelve items: bytes, and every container."""
    state, seq, sizes = SessionState(), 0, dict[int, int]()

    def add(fact: Any, cause: int | None = None) -> None:
        nonlocal seq
        seq += 1
        apply(state, event(seq, fact, cause))

    for step in range(2_000):
        items = [item.seq for item in state.talk]
        add(UserMessage(text=f"{step:>20}", attachments=()))
        add(built(items[6] if len(items) > 12 else None))
        add(said(f"{step:>20}"))
        add(TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0))
        add(Recovered(cut_bytes=0, quarantined=(), damages=({"where": f"000000:{step:>9}"},), calls=0, turn=False))
        assert len(state.talk) <= 16
        sizes[step] = len(encode_state(state))
    assert len(state.known_damages) == KEPT_DAMAGES
    assert max(sizes[n] for n in range(1_900, 2_000)) <= max(sizes[n] for n in range(1_100, 1_200)) + 100


def test_texts_that_have_no_utf8_form_come_back() -> None:
    for text in ("\ud800", "\udc00\ud800", "a\udfffb", "\0\x85\u2028", "修复"):
        state = fold([event(1, UserMessage(text=text, attachments=()))])
        again = decode_state(encode_state(state))
        assert again == state
    state = SessionState(title="x\ud83d\ude00y")  # two halves, which JSON's own escapes would join
    assert decode_state(encode_state(state)).title == state.title


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[1]", b"\xff", b"null", b'["a"]', b"[" * 100_000])
def test_bytes_that_are_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_state(data)
    whole = json.loads(encode_state(SessionState()))
    with pytest.raises(ValueError):
        decode_state(json.dumps(whole[:-1]).encode())


def test_every_field_of_the_state_is_carried() -> None:
    """A field of a type that the codec does not know fails here, and not in somebody's session."""
    assert len(json.loads(encode_state(SessionState()))) == len(fields(SessionState))


@dataclass
class _Small:
    a: int = 0
    b: "list[CallState] | None" = None
    c: dict[str, tuple[int, str]] = field(default_factory=dict)


def test_the_reducer_names_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(kind: type) -> str:
        reducer.cache_clear()
        monkeypatch.setattr(state_codec, "SessionState", kind)
        return reducer()

    first = named(SessionState)
    more = make_dataclass("SessionState", [("more", int, 0)], bases=(SessionState,))
    other = make_dataclass("SessionState", [("more", str, "")], bases=(SessionState,))
    names = {first, named(_Small), named(more), named(other)}
    assert len(names) == 4
    monkeypatch.setattr(state_codec, "FOLD_VERSION", 99)
    assert named(SessionState) not in names
    monkeypatch.undo()
    reducer.cache_clear()
    assert reducer() == first


def test_the_reducer_has_the_same_name_in_every_process() -> None:
    """Else no checkpoint would ever be of use, and nothing but time would tell."""
    code = "from agentsh.context.state_codec import reducer; print(reducer())"
    names = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert names == {reducer()}


def test_a_type_that_the_codec_does_not_know_is_told_at_once() -> None:
    with pytest.raises(TypeError, match="complex"):
        state_codec._coder(list[complex])
