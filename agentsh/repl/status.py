"""The status line below the prompt. The first thing that does not fit is left out; the id stays whole."""

from collections.abc import Sequence

from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import one_line
from agentsh.context.size import size_of
from agentsh.context.state import SessionState


def status_line(state: SessionState, sandbox: str, columns: int, budget_tokens: int) -> str:
    """Return sandbox, mode, model, context, cached share, cost and session id, as much as fits.

    `unsandboxed` is the last to go. The context is what the next request would hold so far, of what it may: `~` where
    it is estimated. Cached is the share of the newest prompt that the provider took from its cache.
    """
    size = size_of(state)
    held = "unsandboxed" if sandbox == "none" else sandbox
    # In the order in which they are left out where it gets narrow: the last first.
    wanted = [state.id, held, state.mode, one_line(state.model, 40)]
    if size.tokens:
        wanted.append(f"{'' if size.exact else '~'}{_thousands(size.tokens)} of {_thousands(budget_tokens)} tokens")
    if size.cached is not None:
        wanted.append(f"{size.cached * 100:.0f} % cached")
    if state.totals.cost_usd is not None:
        wanted.append(f"${state.totals.cost_usd:.4f}")
    while len(wanted) > 1 and get_cwidth(" · ".join(wanted)) >= columns:
        wanted.pop()
    return " · ".join([*wanted[1:], wanted[0]])


def crowded(state: SessionState, budget_tokens: int) -> list[str]:
    """Return what is to be said where the conversation is larger than a request may be, as with a smaller model."""
    size = size_of(state)
    if size.tokens <= budget_tokens:
        return []
    return [
        f"  the conversation has {size} tokens, and a request to {one_line(state.model, 60)} may have "
        f"{budget_tokens:,}: it is made shorter before the next one (/compact does it now; the log keeps all)"
    ]


def _thousands(tokens: int) -> str:
    return str(tokens) if tokens < 1_000 else f"{tokens / 1_000:.1f}k" if tokens < 100_000 else f"{tokens // 1_000}k"


QUEUE_ROWS = 4


def queue_rows(texts: Sequence[tuple[str, bool]], columns: int, *, working: bool) -> list[str]:
    """Return what waits, a row each, the oldest first. texts: each with whether it steers."""
    rows = [_cut(("↳ steers: " if steer else "⏎ queued: ") + one_line(text, 300), columns) for text, steer in texts]
    if len(rows) > QUEUE_ROWS:
        rows[QUEUE_ROWS - 1 :] = [f"  … and {len(rows) - QUEUE_ROWS + 1} more"]
    if rows:
        rows.append(_cut("  Up edits the newest" + ("" if working else " · Enter sends"), columns))
    return rows


def _cut(row: str, columns: int) -> str:
    while get_cwidth(row) >= columns:
        row = row[: -max((get_cwidth(row) - columns) // 2, 1) - 1].rstrip("…") + "…"
    return row
