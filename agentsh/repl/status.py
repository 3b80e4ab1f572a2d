"""The status line below the prompt. What matters least is left out where it does not fit; the id stays whole."""

from collections.abc import Sequence

from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import one_line
from agentsh.context.size import size_of
from agentsh.context.state import SessionState

BAR_CELLS = 8


def status_line(
    state: SessionState, sandbox: str, columns: int, budget_tokens: int, elapsed_s: float | None = None
) -> str:
    """Return sandbox, mode, model, context, cached share, cost, time, queue and session id, as much as fits.

    `unsandboxed` is the last to go. The context is what the next request would hold so far, of what it may: `~` where
    it is estimated. Cached is the share of the newest prompt that the provider took from its cache. elapsed_s: of the
    turn that runs.
    """
    size = size_of(state)
    share = f"{'' if size.exact else '~'}{size.tokens * 100 // max(budget_tokens, 1)} %"
    filled = min(-(-size.tokens * BAR_CELLS // max(budget_tokens, 1)), BAR_CELLS)
    bar = "▰" * filled + "▱" * (BAR_CELLS - filled)
    used = f"{_thousands(size.tokens)} of {_thousands(budget_tokens)} tokens"
    sandboxed = sandbox != "none"
    # In the order in which they are shown, each with its rank: the last goes first. Of a name the best is shown.
    parts = [
        (1 if not sandboxed else 5, "sandbox", sandbox if sandboxed else "unsandboxed"),
        (2, "mode", state.mode),
        (4, "model", one_line(state.model, 40)),
        (3, "context", share if size.tokens else ""),
        (7, "context", f"{share} · {used}" if size.tokens else ""),
        (10, "context", f"{bar} {share} · {used}" if size.tokens else ""),
        (8, "cached", "" if size.cached is None else f"{size.cached * 100:.0f} % cached"),
        (9, "cost", "" if state.totals.cost_usd is None else f"${state.totals.cost_usd:.4f}"),
        (6, "elapsed", "" if elapsed_s is None else _clock(elapsed_s)),
        (6, "queue", f"{len(state.queue)} queued" if state.queue else ""),
        (0, "id", state.id),
    ]
    kept = sorted(part for part in parts if part[2])
    while True:
        best = {name: text for _, name, text in kept}  # a later one is the longer form
        line = " · ".join(best[name] for name in dict.fromkeys(name for _, name, _ in parts) if name in best)
        if len(kept) <= 1 or get_cwidth(line) < columns:
            return line
        kept.pop()


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} m {whole % 60:02} s"


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
