"""The script of the server: every answer that it can be told to give, as small immutable values."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agentsh.testing.server_wire import Ending, Request

FRESH: Final = "<fresh>"
"""As the id of a call: an id that no other call of any server has."""

AUTO: Final = "<auto>"
"""As a finish reason: `tool_calls` when the reply has calls, else `stop`."""


@dataclass(frozen=True, slots=True)
class Text:
    """One chunk with a piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """One chunk with a piece of reasoning text.

    `member` names where Chat Completions servers put it: `reasoning_content` (DeepSeek, vLLM) or `reasoning`
    (OpenRouter). Responses has one place for it, a reasoning summary.
    """

    text: str
    member: Literal["reasoning_content", "reasoning"] = "reasoning_content"


@dataclass(frozen=True, slots=True)
class CallDelta:
    """One fragment of one tool call; a member that is None is left out of the chunk.

    `starts` marks the first fragment of a call (it carries `"type": "function"`); two calls with the same
    index are told apart by it.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    starts: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The chunk with the finish reason; a reply that holds one gets no other."""

    reason: str | None


Part: TypeAlias = Text | Reasoning | CallDelta | Finish


@dataclass(frozen=True, slots=True)
class Together:
    """Several parts in one chunk, as local servers send whole calls, or text and calls at once."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Any JSON value as one event of the stream; `name` becomes its `event:` line."""

    data: Any
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EmptyChoices:
    """A chunk whose `choices` is empty, as Azure sends first."""


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error object inside a stream that began with status 200."""

    message: str
    type: str = "server_error"
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment line of the event stream, such as a keep-alive."""

    text: str = "keep-alive"


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of the body as they are; not `framed`: of the connection, past the chunked framing."""

    data: bytes
    framed: bool = True


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing ever again: until the client leaves, the server closes, or the idle limit passes."""


CutHow = Literal["end", "fin", "mid_chunk", "rst"]


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of the stream, in the middle of it.

    `how` is the transport's part: `end` terminates the body properly, `fin` closes the connection with the
    chunked body unterminated, `mid_chunk` also breaks off inside an announced chunk, `rst` resets.
    """

    how: CutHow = "fin"


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """A step that waits until the test opens it: deterministic where a Pause would be a guess.

    A gate lets everything pass once it is open. It gives up when the client leaves.
    """

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        """Let the stream go on."""
        self.opened.set()

    def wait_reached(self, timeout_s: float = 10.0) -> None:
        """Block until a stream stands at the gate. Raises: TimeoutError."""
        if not self.reached.wait(timeout_s):
            raise TimeoutError(f"no stream reached the gate within {timeout_s} s")


Control: TypeAlias = Pause | Hang | Cut | Gate
Step: TypeAlias = Part | Together | Event | EmptyChoices | StreamError | Comment | Raw | Control


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server reports them; not `details`: without the two objects of details."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0
    details: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the events lie in the body and the body in TCP segments.

    `split_data` spreads each event over several `data:` lines. `segment_bytes` cuts the body into segments of
    at most so many bytes, `split_utf8` inside the first multi-byte character of each event; each segment is
    its own chunk and costs about a millisecond. `joined` sends all events up to the next pause as one
    segment. Not `chunked`: the body ends with the connection, as servers behind HTTP/1.0 proxies do.
    """

    line_end: Literal["\n", "\r\n", "\r"] = "\n"
    data_prefix: Literal["data: ", "data:"] = "data: "
    split_data: bool = False
    segment_bytes: int | None = None
    split_utf8: bool = False
    joined: bool = False
    chunked: bool = True
    escape: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answers, encoded for the endpoint that was asked, as a stream if a stream was asked for.

    `finish` None: no chunk ever has a finish reason. `usage` None: the server never reports usage; AUTO: it
    reports an estimate at four bytes a token. `done`: whether a chat stream ends with `[DONE]`. `model` None:
    the model that was asked for. `as_json` overrides what the request asks: True answers a stream request
    with plain JSON. Times in seconds: `delay_s` before the headers, `gap_s` between chunks.
    """

    steps: tuple[Step, ...]
    finish: str | None = AUTO
    usage: Usage | Literal["<auto>"] | None = AUTO
    done: bool = True
    model: str | None = None
    as_json: bool | None = None
    delay_s: float = 0.0
    gap_s: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    layout: Layout = Layout()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReply:
    """Any status, headers and body; `delay_s` (seconds) before the headers."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """Not one byte: the connection closes after `delay_s` seconds (None: it hangs)."""

    ending: Ending = "fin"
    delay_s: float | None = 0.0


Reply: TypeAlias = ModelReply | PlainReply | NoReply
Dynamic: TypeAlias = Callable[[Request], Reply]


@dataclass(frozen=True, slots=True)
class Forever:
    """A reply that answers all later requests too."""

    reply: Reply | Dynamic


ScriptItem: TypeAlias = Reply | Dynamic | Forever


class Script:
    """The replies that are still to be given. Items may be added from another thread."""

    def __init__(self, items: Iterable[ScriptItem]) -> None:
        self._items: deque[ScriptItem] = deque(items)

    def extend(self, items: Iterable[ScriptItem]) -> None:
        """Add items at the end."""
        self._items.extend(items)

    @property
    def remaining(self) -> int:
        """How many items no request has reached yet; a Forever always counts as one."""
        return len(self._items)

    def next(self, request: Request) -> Reply | None:
        """The reply to `request`; None when the script is exhausted. A dynamic item may raise anything."""
        if not self._items:
            return None
        item = self._items[0]
        if isinstance(item, Forever):
            item = item.reply
        else:
            self._items.popleft()
        return item if isinstance(item, ModelReply | PlainReply | NoReply) else item(request)


def header_pairs(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Headers in the form that the frozen values keep."""
    return tuple((headers or {}).items())
