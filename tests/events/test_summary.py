"""The summary behind `ls` says what the fold says, over random logs."""

from hypothesis import given, settings

from agentsh.context.fold import fold
from agentsh.events.event import Event
from agentsh.events.summary import summarise
from agentsh.log.frame import decode_event
from tests.context.strategies import logs


@given(logs())
@settings(deadline=None, max_examples=150)
def test_the_summary_agrees_with_the_fold(events: list[Event]) -> None:
    summary = summarise(decode_event(e.raw, 1) for e in events)
    state = fold(events)
    assert summary["turns"] == state.totals.turns
    assert summary["prompt_tokens"] == state.totals.usage.prompt
    assert summary["completion_tokens"] == state.totals.usage.completion
    assert summary["cost_usd"] == state.totals.cost_usd
    assert summary["open_turn"] == (state.turn is not None)
    assert summary["last_seq"] == state.last_seq


def test_an_empty_log_has_a_summary() -> None:
    assert summarise(())["last_seq"] == 0
