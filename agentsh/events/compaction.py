"""Facts of a compaction: what was asked of the model, what was not taken, what holds now, what was undone."""

from typing import Literal

from agentsh.base.typed import Value
from agentsh.events.base import Cost, Fact, Text, Usage

Made = Literal["model", "mechanical"]


class SummaryAsk(Value):
    """All that the body of a request for a summary depends on, besides the state before its `context_built`.

    attempt: 1 for the first. max_words: what the model is told. instructions: the user's own.
    tools_off: the request forbids calls. item_bytes: each text of the conversation has its middle cut to so many
    bytes of UTF-8. from_seq: the conversation before it is left out and a mechanical account stands for it.
    """

    attempt: int
    max_words: int
    instructions: Text | None = None
    tools_off: bool = False
    item_bytes: int | None = None
    from_seq: int | None = None


class SummaryTried(Fact):
    """A request for a summary that came to nothing; cause: its `context_built`. error: why, in one line.

    usage, cost_usd: of the reply where there was one.
    """

    type: Literal["summary_tried"] = "summary_tried"
    error: str
    model: str | None = None
    usage: Usage | None = None
    cost_usd: Cost = None


class Compaction(Fact):
    """A range of the conversation is replaced by a summary in requests, never in the log.

    cause: the context_built of the request that made it, where a model did. by: `auto` or `user`.
    made: who wrote the summary; always set by a version that can compact. instructions: the user's own.
    tokens_before, tokens_after: of the next request without and with it, by `estimator`, under a budget of `budget`
    tokens. model, usage, cost_usd: of the reply that is the summary. tries: how many requests for a summary were
    sent; error: why the last of them was not taken, one line.
    """

    type: Literal["compaction"] = "compaction"
    from_seq: int
    upto_seq: int
    summary: Text
    by: str
    made: Made | None = None
    instructions: Text | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    estimator: str | None = None
    budget: int | None = None
    model: str | None = None
    usage: Usage | None = None
    cost_usd: Cost = None
    tries: int | None = None
    error: str | None = None


class CompactionUndone(Fact):
    """The compaction with seq `compaction` does not hold any more."""

    type: Literal["compaction_undone"] = "compaction_undone"
    compaction: int
