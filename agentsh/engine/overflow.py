"""A request that was refused for its length: what that teaches, and what is said when one cut was not enough."""

from agentsh.base.errors import ContextOverflow
from agentsh.base.text import one_line
from agentsh.events.model import REFUSAL, WindowLearned
from agentsh.events.turn import ContextBuilt

WAYS_ON = "`/model NAME` goes on with a larger model, `/compact` with a summary; nothing of the session is lost"
MAX_WORDS_CHARS = 200


def learned(model: str, built: ContextBuilt, refused: ContextOverflow) -> WindowLearned:
    """Return what the refusal of `built` tells of a model: as many tokens as it says, else fewer than were sent."""
    window = refused.limit_tokens or built.tokens
    # It had more than the limit, whatever we thought; what else it says may be of the prompt alone.
    request = max(refused.request_tokens or built.tokens, window + 1)
    return WindowLearned(model=model, window=window, source=REFUSAL, request_tokens=request)


def reason(window: WindowLearned, refused: ContextOverflow) -> str:
    """Return why the context was taken back, for the line that tells it."""
    if refused.limit_tokens is None:
        return f"the model refused a request of about {window.window:,} tokens as too long"
    return f"the model takes {window.window:,} tokens, and the request had more"


def hopeless(built: ContextBuilt, refused: ContextOverflow) -> ContextOverflow:
    """Return the error that ends the turn where the request was refused after it was shortened, or cannot be."""
    words = one_line(refused.message, MAX_WORDS_CHARS)
    return ContextOverflow(
        f"the model does not take the request, even shortened to about {built.tokens:,} tokens: {words}",
        hint=WAYS_ON,
        limit_tokens=refused.limit_tokens,
        request_tokens=refused.request_tokens,
    )
