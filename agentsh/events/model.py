"""Facts about models: how much one takes."""

from typing import Literal

from agentsh.events.base import Fact

REFUSAL = "refusal"


class WindowLearned(Fact):
    """How many tokens `model` takes. source: `model list`, or `refusal` where a request was too long for it.

    window: of request and reply together; after a refusal that gave no number, what was refused. max_reply,
    max_request: where the provider says them. request_tokens: of the refused request (cause: its `context_built`), as
    the provider said, or at least.
    """

    type: Literal["window_learned"] = "window_learned"
    model: str
    window: int
    source: str
    max_reply: int | None = None
    max_request: int | None = None
    request_tokens: int | None = None
