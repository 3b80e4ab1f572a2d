"""The port to a model, beside the provider-neutral values that go in and come out."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from agentsh.base.light import dataclass, field
from agentsh.events.base import Usage
from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta

Role = Literal["system", "user", "assistant", "tool"]


class Call(NamedTuple):
    """A tool call. id: the model's own. arguments: its text; in a request always a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a message. data: base64. Not sent: name; seq: the event it comes from; tokens: as estimated."""

    media_type: str
    data: str
    name: str = ""
    seq: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request.

    calls: only on assistant messages. call_id: only on tool messages: the call that it answers.
    seq: the event it comes from, for the manifest; it is not sent. images: only on user messages; behind the text.
    """

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    seq: int = 0
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything that a request says, before a provider's wire puts it into bytes.

    tools: neutral schemas: name, description, parameters (a JSON schema object).
    options: settings of the wire that were recorded in the log, e.g. temperature.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)


class Reply(NamedTuple):
    """A whole answer. finish: `stop`, `tool_calls`, `length` or `content_filter`. model: as the server names it."""

    text: str
    reasoning: str | None
    calls: tuple[Call, ...]
    finish: Literal["stop", "tool_calls", "length", "content_filter"]
    usage: Usage | None
    model: str


class Endpoint(NamedTuple):
    """Where and how to reach a provider. api_key: None where none is needed (a local server) or none is set.

    timeout_s: seconds without a single byte after which a request counts as lost.
    """

    base_url: str
    api_key: str | None
    timeout_s: float = 120.0


Streamed = TextDelta | ReasoningDelta | Retrying | Reply


class Model(Protocol):
    """One way to reach models."""

    def encode(self, prompt: Prompt) -> bytes:
        """Return the exact body of the request. Pure: the same prompt gives the same bytes, for ever.

        The bytes of earlier messages do not depend on later ones, so that a provider's prompt cache holds.
        """
        ...

    def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        """Send exactly `body`; yield previews as they come and, last and once, the Reply.

        Closing the generator or cancelling its task ends the request at once.

        Raises:
            ModelError: one of its kinds. After a StreamCut the previews that were yielded are all there is.
        """
        ...

    async def close(self) -> None:
        """Give back connections. Idempotent."""
        ...
