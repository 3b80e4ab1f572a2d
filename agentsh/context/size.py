"""How large the context of a session is, from its state alone: for the eye, without a text being read. Pure."""

from agentsh.base.light import dataclass
from agentsh.context.images import is_image, tokens_of
from agentsh.context.marks import BYTES_PER_TOKEN
from agentsh.context.state import AgentItem, CommandItem, SessionState
from agentsh.context.view import item_bytes
from agentsh.events.base import Text


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens of the context. exact: the provider counted all of them. cached: share of the newest prompt, or None."""

    tokens: int
    exact: bool
    cached: float | None

    def __str__(self) -> str:
        return f"{'' if self.exact else '~'}{self.tokens:,}"


def size_of(state: SessionState) -> Size:
    """Return the size of what the next request would hold so far."""
    meter, cap = state.meter, item_bytes(state)
    mark = meter.marks[-1] if meter.marks else None
    tokens, exact = (mark.tokens, mark.reported) if mark else (_compacted(state), False)
    for item in reversed(state.talk):
        if item.seq < (mark.seq if mark else max(state.context_from, _upto(state) + 1)):
            break
        if isinstance(item, AgentItem):
            usage = item.fact.usage
            if usage is not None:
                tokens += max(usage.completion - usage.reasoning, 0)
            else:
                tokens, exact = tokens + _about(item.fact.text, cap), False
            done = [call.result for call in item.calls if call.result is not None]
            results = [result.for_model for result in done]
            along = [image for result in done for image in result.images]
        elif isinstance(item, CommandItem):
            results, along = [item.command, item.fact.text], []
        else:
            results = [item.fact.text, *(a.content for a in item.fact.attachments if not is_image(a))]
            along = [a for a in item.fact.attachments if is_image(a)]
        if results:
            tokens, exact = tokens + sum(_about(r, cap) for r in results), False
        if (state.request or {}).get("images"):
            tokens += sum(tokens_of(image, state.model) for image in along)
    return Size(tokens, exact, cached_share(state))


def cached_share(state: SessionState) -> float | None:
    """Return the share of the newest prompt that the provider had in its cache; None where nothing was reported."""
    newest = state.meter.newest
    return None if newest is None or newest.prompt <= 0 else min(newest.cached / newest.prompt, 1.0)


def _compacted(state: SessionState) -> int:
    return 0 if state.compaction is None else state.compaction.tokens_after


def _upto(state: SessionState) -> int:
    return 0 if state.compaction is None else state.compaction.upto_seq


def _about(text: Text, cap_bytes: int) -> int:
    size = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else text.bytes
    return -(-min(size, cap_bytes) // BYTES_PER_TOKEN)
