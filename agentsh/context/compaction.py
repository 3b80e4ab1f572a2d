"""Compactions in the state: what is in force, what an undo goes back to, and whether another may come. Pure.

The handlers of the fold are total: a compaction of a damaged log that names no range that makes sense is still
applied in some way that gives a valid request.
"""

from dataclasses import replace

from agentsh.context.marks import Marks
from agentsh.context.state import Compacted, Replaced, SessionState, add_spent
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryTried
from agentsh.events.event import Event

MAX_FAILED = 3
"""Requests for a summary in a row that came to nothing; then the model is not asked again by itself."""
NEW_SHARE = 0.1
"""Of the budget: so many new tokens must come between a compaction, or its undo, and the next automatic one."""


def asked(state: SessionState, event: Event) -> None:
    """Fold a request for a summary."""
    state.compacting.asked = event.seq


def died(state: SessionState) -> None:
    """Fold that a later process opened the session: a request without an answer took the one before with it."""
    if state.compacting.asked is not None:
        state.compacting.asked = None
        state.compacting.failed += 1


def tried(state: SessionState, event: Event, fact: SummaryTried) -> None:
    """Fold a summary that was not taken."""
    state.compacting.asked = None
    state.compacting.failed += 1
    add_spent(state, fact.usage, fact.cost_usd)


def made(state: SessionState, event: Event, fact: Compaction) -> None:
    """Fold a compaction: from here on its summary stands for its range."""
    compacting = state.compacting
    compacting.asked = None
    if fact.made == "model":
        compacting.failed = 0
    compacting.reference_tokens, compacting.budget = fact.tokens_after or 0, fact.budget or 0
    compacting.undone = False
    state.meter.compacted(event.seq, fact.tokens_after)
    add_spent(state, fact.usage, fact.cost_usd)
    state.replaced = Replaced(state.context_from, state.pruned_before, state.compaction, state.images_from)
    state.compaction = Compacted(
        seq=event.seq,
        from_seq=fact.from_seq,
        upto_seq=fact.upto_seq,
        summary=fact.summary,
        by=fact.by,
        made=fact.made or "",
        tokens_before=fact.tokens_before or 0,
        tokens_after=fact.tokens_after or 0,
    )


def undone(state: SessionState, event: Event, fact: CompactionUndone) -> None:
    """Fold an undo of the newest compaction; any other is not in force, or too old to be taken back."""
    current, before = state.compaction, state.replaced
    if current is None or before is None or current.seq != fact.compaction:
        return
    state.compacting.reference_tokens, state.compacting.undone = current.tokens_before, True
    state.meter.restored()
    state.context_from, state.pruned_before = before.context_from, before.pruned_before
    state.compaction, state.replaced, state.images_from = before.compaction, None, before.images_from


def moved_on(state: SessionState) -> None:
    """Fold that the context was cut: behind a compaction that ends its undo, since both together did not fit.

    So the state holds at most what two contexts hold, however long the log is.
    """
    if state.compaction is not None and state.context_from > state.compaction.upto_seq + 1:
        state.replaced = None


def first_needed(state: SessionState) -> int:
    """Return the first event of the conversation that a request, or the undo of the newest compaction, may show."""
    now = _first_shown(state.context_from, state.compaction)
    before = state.replaced
    return now if before is None else min(now, _first_shown(before.context_from, before.compaction))


def first_shown(state: SessionState) -> int:
    """Return the first event of the conversation that a request shows."""
    return _first_shown(state.context_from, state.compaction)


def _first_shown(context_from: int, compaction: Compacted | None) -> int:
    return context_from if compaction is None else max(context_from, compaction.upto_seq + 1)


def may_compact(state: SessionState, tokens: int, budget_tokens: int) -> bool:
    """Tell whether an automatic compaction may come at `tokens`: not before enough is new since the last one.

    Under another budget than the last one was made for, it may come at once.
    """
    compacting = state.compacting
    if compacting.budget != budget_tokens:
        return True
    return tokens >= compacting.reference_tokens + budget_tokens * NEW_SHARE


def patient(state: SessionState, marks: Marks) -> Marks:
    """Return the marks that hold after an undo: what the user took back is not cut away again at once."""
    compacting, budget = state.compacting, marks.budget_tokens
    if not compacting.undone or compacting.budget != budget:
        return marks
    share = compacting.reference_tokens / budget + NEW_SHARE
    return replace(marks, high=min(max(marks.high, share), 1.0))


def may_ask(state: SessionState) -> bool:
    """Tell whether the model may be asked for a summary without the user's asking for it."""
    return state.compacting.failed < MAX_FAILED
