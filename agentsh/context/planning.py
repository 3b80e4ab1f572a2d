"""What a compaction would do: which part it replaces, and how long its summary may be. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agentsh.context.budget import Scale
from agentsh.context.marks import Marks
from agentsh.context.state import Compacted, SessionState, UserItem
from agentsh.context.view import Block, view_of
from agentsh.events.base import Text

TAIL_SHARE = 0.2
"""Of the request: so much of the newest conversation stays as it is."""
SHRINK = 0.1
"""A compaction that frees less than this share of the request is not done."""
FREE_SHARE = 0.4
"""Of the budget, that must be free after it."""
SUMMARY_SHARE = 0.1
"""Of the budget, for the summary."""
MIN_SUMMARY_TOKENS, MAX_SUMMARY_TOKENS = 150, 6_000


class Plan(NamedTuple):
    """What a compaction would do. upto_seq: the last event that the summary is to stand for; from_seq: the first.

    before_tokens: of the next request as it is. base_tokens: of it with an empty summary. allowed_tokens: what it
    may have at most with a summary: a tenth less than before, and at least 40 % of the budget free. summary_tokens:
    what the summary should have.
    """

    from_seq: int
    upto_seq: int
    before_tokens: int
    base_tokens: int
    allowed_tokens: int
    summary_tokens: int


def plan(scale: Scale, marks: Marks) -> Plan | None:
    """Return how the conversation would be compacted; None where it would not become shorter by enough."""
    view = view_of(scale.state)
    blocks, tokens = scale.weigh(view)
    before = sum(tokens) + scale.fixed_tokens
    start = _tail_start(scale.state, blocks, tokens, int(min(marks.budget_tokens * TAIL_SHARE, before * TAIL_SHARE)))
    talk = [block.seq for block in blocks if block.kind in ("user", "reply")]
    if start is None or not talk:
        return None
    first = scale.state.compaction.from_seq if scale.state.compaction is not None else talk[0]
    base = weighed_with(scale, first, start - 1, "")
    allowed = min(int(before * (1 - SHRINK)), int(marks.budget_tokens * (1 - FREE_SHARE)), marks.enough_tokens)
    room = allowed - base
    if room < MIN_SUMMARY_TOKENS:
        return None
    wanted = max(min(MAX_SUMMARY_TOKENS, int(marks.budget_tokens * SUMMARY_SHARE)), MIN_SUMMARY_TOKENS)
    return Plan(min(first, start - 1), start - 1, before, base, allowed, min(room, wanted))


def weighed_with(scale: Scale, from_seq: int, upto_seq: int, summary: Text) -> int:
    """Return the tokens of the next request as it would be with this compaction."""
    after = scale.with_state(compacted(scale.state, from_seq, upto_seq, summary))
    return after.total(view_of(after.state))


def compacted(state: SessionState, from_seq: int, upto_seq: int, summary: Text) -> SessionState:
    """Return the state as it would be with this compaction; it shares all else with `state`."""
    seq = state.last_seq + 1
    return replace(state, compaction=Compacted(seq, from_seq, upto_seq, summary))


def _tail_start(state: SessionState, blocks: Sequence[Block], tokens: Sequence[int], tail_tokens: int) -> int | None:
    """Return the seq at which the part begins that stays as it is; None where there is nothing before it.

    It is the oldest turn or reply that leaves that part small enough, and a turn where it is not much smaller so;
    else the newest of either.
    """
    openers = {item.seq for item in state.talk if isinstance(item, UserItem) and item.opens_turn}
    turn = reply = newest = None
    rest = turn_rest = reply_rest = 0
    shown = [(b, t) for b, t in zip(blocks, tokens, strict=True) if b.kind in ("user", "reply")]
    for block, count in reversed(shown[1:]):
        rest += count
        opens = block.seq in openers
        if not opens and block.kind != "reply":
            continue
        newest = newest or block.seq
        if rest > tail_tokens:
            break
        if opens:
            turn, turn_rest = block.seq, rest
        else:
            reply, reply_rest = block.seq, rest
    return (turn if turn_rest * 2 >= reply_rest else reply) or newest
