"""The status line below the prompt. The first thing that does not fit is left out; the id stays whole."""

from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import one_line
from agentsh.context.state import SessionState


def status_line(state: SessionState, sandbox: str, columns: int) -> str:
    """Return model, mode, sandbox, tokens, cost and session id, as much as fits."""
    usage = state.totals.usage
    tokens = usage.prompt + usage.completion
    held = "unsandboxed" if sandbox == "none" else sandbox
    # In the order in which they are left out where it gets narrow: the last first.
    wanted = [state.id, one_line(state.model, 40), state.mode, held]
    if tokens:
        wanted.append(f"{tokens / 1000:.1f}k tokens" if tokens >= 1000 else f"{tokens} tokens")
    if state.totals.cost_usd is not None:
        wanted.append(f"${state.totals.cost_usd:.4f}")
    while len(wanted) > 1 and get_cwidth(" · ".join(wanted)) >= columns:
        wanted.pop()
    return " · ".join([*wanted[1:], wanted[0]])
