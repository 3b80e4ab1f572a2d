"""How much of the conversation a request holds. Pure and deterministic.

The context only grows at its end until it passes the high-water mark; then one recorded cut takes it to the
low-water mark, so that a provider's prompt cache is lost once and not at every step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agentsh.base.errors import ContextOverflow
from agentsh.context.messages import build
from agentsh.context.state import SessionState, UserItem
from agentsh.events.turn import Cut
from agentsh.ports.model import Message
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import TokenCounter

HIGH_WATER = 0.8
LOW_WATER = 0.4
MESSAGE_TOKENS = 4
"""Estimate of what the frame of one message costs (roles and separators), as OpenAI's cookbook gives it: 3 to 4."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A conversation that fits. cut: set where its start was moved, to be recorded by context_built."""

    messages: tuple[Message, ...]
    tokens: int
    cut: Cut | None


def count_message(message: Message, counter: TokenCounter) -> int:
    """Return the estimate for one message, its calls included."""
    calls = sum(counter.count(c.name) + counter.count(c.arguments) for c in message.calls)
    return MESSAGE_TOKENS + counter.count(message.text) + calls


def fit(
    state: SessionState, texts: Texts, counter: TokenCounter, *, budget_tokens: int, fixed_tokens: int = 0
) -> Fitted:
    """Return the messages of the next request. fixed_tokens: what tool schemas take beside them.

    Raises:
        ContextOverflow: not even the newest step fits the budget.
    """
    messages = build(state, texts, from_seq=state.context_from)
    counts = [count_message(m, counter) for m in messages]
    total = sum(counts) + fixed_tokens
    if total <= budget_tokens * HIGH_WATER:
        return Fitted(messages, total, None)
    for start in _starts(state, messages, counts, total - budget_tokens * LOW_WATER):
        shorter = build(state, texts, from_seq=start)
        rest = sum(count_message(m, counter) for m in shorter) + fixed_tokens
        if rest < total and rest <= budget_tokens:
            return Fitted(shorter, rest, Cut(from_seq=start, reason="high-water mark"))
    return _whole_or_error(messages, total, budget_tokens)


def _whole_or_error(messages: tuple[Message, ...], total: int, budget_tokens: int) -> Fitted:
    if total <= budget_tokens:
        return Fitted(messages, total, None)
    raise ContextOverflow(
        f"the newest step alone needs about {total:,} tokens; the budget is {budget_tokens:,}",
        hint="start a new session, shorten the message, or raise budget_tokens",
    )


def _starts(state: SessionState, messages: tuple[Message, ...], counts: list[int], surplus: float) -> Iterator[int]:
    """Yield where the context could start instead, best first: a turn or else a reply that frees enough, the last."""
    openers = {item.seq for item in state.talk if isinstance(item, UserItem) and item.opens_turn}
    newest = max(openers, default=0)
    gone, turns, replies = 0, [], []
    for message, tokens in zip(messages, counts, strict=True):
        if message.role == "system":
            continue
        if message.seq > state.context_from and message.seq in openers:
            turns.append((message.seq, gone))
        elif message.seq > state.context_from and message.role == "assistant":
            replies.append((message.seq, gone))
        gone += 0 if message.role == "user" and message.seq == newest else tokens
    for starts in (turns, replies):
        yield from (seq for seq, freed in starts if freed >= surplus)
    yield from (seq for seq, _ in [*turns[-1:], *replies[-1:]])
