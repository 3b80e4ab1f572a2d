"""Facts of a turn: what the user said, what was sent, what the model answered, how it ended."""

from typing import Literal

from agentsh.base.typed import Value
from agentsh.events.base import Cost, Fact, JsonValue, Text, Usage
from agentsh.events.compaction import SummaryAsk

Finish = Literal["stop", "tool_calls", "length", "content_filter", "interrupted", "cut"]
TurnEnd = Literal["done", "interrupted", "max_steps", "max_cost", "error", "crashed"]


class Attachment(Value):
    """A file or an image that goes along with a message or a result. content: its text; of an image its base64.

    width, height: of an image, in pixels; None where it is none, and for images of logs that did not say.
    """

    name: str
    media_type: str
    content: Text
    width: int | None = None
    height: int | None = None


class UserMessage(Fact):
    """What the user said. cause: the text_queued event, where it waited in the queue first."""

    type: Literal["user_message"] = "user_message"
    text: Text
    attachments: tuple[Attachment, ...]


class TextQueued(Fact):
    """Typed while a turn ran. steer: joins at the next step; else it waits for the turn's end.

    command: it was typed as a command of the user's own, `!…`, to be run when nothing else does. attachments: what
    goes along with it, as it was when it was typed.
    """

    type: Literal["text_queued"] = "text_queued"
    text: Text
    steer: bool
    command: bool = False
    attachments: tuple[Attachment, ...] = ()


class TextWithdrawn(Fact):
    """The queued text with seq `queued` was taken back."""

    type: Literal["text_withdrawn"] = "text_withdrawn"
    queued: int


class Cut(Value):
    """The context starts at this event from here on; what is older is left out of requests, never of the log.

    pruned_before: results of calls with a seq below it are shown to the model as stubs from here on.
    images_from: images of events with a seq below it are named to the model and not shown from here on.
    """

    from_seq: int
    reason: str
    pruned_before: int | None = None
    images_from: int | None = None


class ContextBuilt(Fact):
    """A request is about to be sent: one event for each logical request, retries included.

    request_sha256, bytes: of the exact body. tokens, budget: as estimated by `estimator` before sending.
    cut: set where this request moved the start of the context, or pruned old outputs. rules: version of the way in
    which the log became messages (context/view.py). missing: blobs that could not be read then.
    summary: set where the request asks for a summary of the conversation; what answers it is a `compaction` or a
    `summary_tried`.
    aside: the side_question that it asks, by seq; a `side_answer` answers it.
    counted: how many of the tokens the provider had reported before. raw: what `estimator` said of the rest, where
    tokens holds it corrected by earlier reports.
    """

    type: Literal["context_built"] = "context_built"
    request_sha256: str
    bytes: int
    estimator: str
    tokens: int
    budget: int
    cut: Cut | None
    rules: int = 0
    missing: tuple[str, ...] = ()
    summary: SummaryAsk | None = None
    aside: int | None = None
    counted: int = 0
    raw: int | None = None


class Thought(Value):
    """How long the model reasoned before its answer began, and how many words of it were shown by then."""

    ms: int
    words: int


class AgentMessage(Fact):
    """A whole reply of the model; tool_call events follow where it asked for tools.

    finish: as the provider said, or `interrupted` (the user) or `cut` (the stream or the process died).
    thought: where reasoning was streamed.
    """

    type: Literal["agent_message"] = "agent_message"
    text: Text
    reasoning: Text | None
    model: str
    finish: Finish
    usage: Usage | None
    cost_usd: Cost
    thought: Thought | None = None


class PartialMessage(Fact):
    """New text of a reply that is still streaming, about once a second; superseded by its agent_message."""

    type: Literal["partial_message"] = "partial_message"
    text: Text
    reasoning: Text | None = None


class TurnFinished(Fact):
    """The end of the work on one user message; cause: that message. steps: model calls made.

    error: one line, where reason is `error`.
    """

    type: Literal["turn_finished"] = "turn_finished"
    reason: TurnEnd
    steps: int
    usage: Usage
    cost_usd: Cost
    duration_ms: int
    error: str | None = None


class ImageDropped(Fact):
    """Images are left out of requests from here on, since the provider refused one that held them.

    image: their names. from_seq: those of events from it on up to this one; None leaves it at the record.
    """

    type: Literal["image_dropped"] = "image_dropped"
    image: str
    reason: str
    from_seq: int | None = None


class TodoChanged(Fact):
    """The whole todo list from here on."""

    type: Literal["todo_changed"] = "todo_changed"
    items: tuple[JsonValue, ...]
