"""Short forms for a script: functions that build the replies which tests ask for most."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from agentsh.testing.server_script import (
    AUTO,
    FRESH,
    CallDelta,
    Cut,
    CutHow,
    Dynamic,
    Forever,
    Hang,
    Layout,
    ModelReply,
    NoReply,
    Pause,
    PlainReply,
    Raw,
    Reasoning,
    Reply,
    Step,
    StreamError,
    Text,
    Usage,
    header_pairs,
)
from agentsh.testing.server_wire import Ending

Fragments = str | Sequence[str]
"""A whole string, or the fragments in which it arrives."""

RATE_LIMIT = (
    "Rate limit reached in organization org-scripted on tokens per min (TPM): Limit 30000, Used 29500, "
    "Requested 1500. Please try again in 2s. Visit https://platform.openai.com/account/rate-limits to learn more."
)
QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this "
    "error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)

ERRORS: dict[int, tuple[str, str, str | None]] = {
    400: ("Invalid request.", "invalid_request_error", None),
    401: ("Incorrect API key provided: sk-scri****pted.", "invalid_request_error", "invalid_api_key"),
    403: (
        "Country, region, or territory not supported",
        "request_forbidden",
        "unsupported_country_region_territory",
    ),
    404: (
        "The model `scripted` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    ),
    408: ("Request timed out.", "timeout", None),
    409: ("The resource was updated by another request.", "conflict", None),
    413: ("Request entity too large.", "invalid_request_error", None),
    422: ("Unprocessable entity.", "invalid_request_error", None),
    429: (RATE_LIMIT, "tokens", "rate_limit_exceeded"),
    500: (
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    502: ("Bad gateway.", "server_error", "bad_gateway"),
    503: ("That model is currently overloaded with other requests.", "service_unavailable_error", None),
    504: ("Gateway timeout.", "server_error", "gateway_timeout"),
    529: ("Overloaded.", "overloaded_error", None),
}
"""Status -> message, type and code of the error that `error` sends when nothing else is said."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as its fragments; made by `call`. `index` None: its place in the reply."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    index: int | None = None
    whole: bool = False

    def deltas(self, place: int) -> list[CallDelta]:
        """The fragments in order: first those of id and name, then those of the arguments."""
        index = place if self.index is None else self.index
        if self.whole:
            arguments = "".join(self.arguments)
            return [CallDelta(index, "".join(self.ids), "".join(self.names), arguments, starts=True)]
        heads = [
            CallDelta(index, id_piece, name_piece, None if number else "", starts=not number)
            for number, (id_piece, name_piece) in enumerate(zip_longest(self.ids, self.names))
        ]
        return heads + [CallDelta(index, arguments=piece) for piece in self.arguments]


def call(
    name: Fragments,
    arguments: Mapping[str, Any] | Fragments = "{}",
    *,
    id: Fragments = FRESH,
    chunk: int | None = None,
    index: int | None = None,
    whole: bool = False,
) -> ToolCall:
    """One tool call of a reply.

    `arguments`: a mapping is encoded, a string is sent as it is, valid JSON or not, a list is sent fragment by
    fragment. `chunk` cuts the arguments into pieces of so many characters. `index` overrides its place, so
    that two calls may share one. `whole` sends all of it in one fragment, as local servers do.
    """
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(_fragments(id), _fragments(name), _fragments(arguments, chunk), index, whole)


def reply(
    text: Fragments = "",
    *,
    chunk: int | None = None,
    reasoning: Fragments = "",
    reasoning_member: Literal["reasoning_content", "reasoning"] = "reasoning_content",
    calls: Iterable[ToolCall] = (),
    interleaved: bool = False,
    then: Iterable[Step] = (),
    pause_at: Mapping[int, float] | None = None,
    finish: str | None = AUTO,
    usage: Usage | Literal["<auto>"] | None = AUTO,
    done: bool = True,
    model: str | None = None,
    as_json: bool | None = None,
    delay_s: float = 0.0,
    gap_s: float = 0.0,
    headers: Mapping[str, str] | None = None,
    layout: Layout | None = None,
) -> ModelReply:
    """What a model answers: reasoning, then text, then calls, then any steps of `then`.

    `chunk` cuts text and reasoning into pieces of so many characters; lists are sent fragment by fragment.
    `interleaved` deals out the fragments of parallel calls in turn. `pause_at` maps the number of a chunk,
    from 0, to the seconds to wait before it. The rest is as in ModelReply.
    """
    steps: list[Step] = [Reasoning(piece, reasoning_member) for piece in _fragments(reasoning, chunk)]
    steps += [Text(piece) for piece in _fragments(text, chunk)]
    steps += _dealt([one.deltas(place) for place, one in enumerate(calls)], interleaved)
    for place in sorted(pause_at or {}, reverse=True):
        steps.insert(place, Pause((pause_at or {})[place]))
    return ModelReply(
        steps=(*steps, *then),
        finish=finish,
        usage=usage,
        done=done,
        model=model,
        as_json=as_json,
        delay_s=delay_s,
        gap_s=gap_s,
        headers=header_pairs(headers),
        layout=layout or Layout(),
    )


def error(
    status: int,
    message: str | None = None,
    *,
    type: str | None = None,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
    delay_s: float = 0.0,
) -> PlainReply:
    """An HTTP error with OpenAI's JSON body; what is not given is what OpenAI says for that status.

    `headers` is the place for `{"Retry-After": "2"}`. With a `message`, `type` and `code` are not guessed.
    """
    known = ERRORS.get(status, ("The request failed.", "server_error", None))
    if message is None:
        message, type, code = known[0], type or known[1], code or known[2]
    body = {"message": message, "type": type or known[1], "param": param, "code": code}
    return json_reply({"error": body}, status=status, headers=headers, delay_s=delay_s)


def quota_exceeded() -> PlainReply:
    """The 429 that no retry heals: the account has no credit."""
    return error(429, QUOTA, type="insufficient_quota", code="insufficient_quota")


def html_error(status: int = 502, body: str | bytes = "") -> PlainReply:
    """An error from a proxy: an HTML page, or any garbage as `body`."""
    page = body or f"<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>"
    data = page.encode() if isinstance(page, str) else page
    return PlainReply(status=status, body=data, content_type="text/html")


def json_reply(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None, delay_s: float = 0.0
) -> PlainReply:
    """Any JSON value as the whole answer, whatever was asked for."""
    body = json.dumps(value).encode()
    return PlainReply(status=status, body=body, headers=header_pairs(headers), delay_s=delay_s)


def cut_stream(text: Fragments = "", how: CutHow = "fin", *, chunk: int | None = None) -> ModelReply:
    """A stream that ends in the middle, without a finish reason; `how` as in Cut."""
    return reply(text, chunk=chunk, then=[Cut(how)])


def stream_error(message: str, text: Fragments = "", *, code: str | None = None) -> ModelReply:
    """A stream that tells an error as its last event."""
    return reply(text, then=[StreamError(message, code=code)], finish=None, usage=None, done=False)


def malformed(data: bytes = b'data: {"id":"chatcmpl-1","choi\n\n', text: Fragments = "") -> ModelReply:
    """A stream with bytes in it that are no event, by default one with broken JSON."""
    return reply(text, then=[Raw(data)])


def closed(ending: Ending = "fin", *, delay_s: float = 0.0) -> NoReply:
    """The connection closes before any byte of an answer."""
    return NoReply(ending=ending, delay_s=delay_s)


def hang(text: Fragments = "") -> Reply:
    """No answer at all; with `text`, a stream that stops after it and stays open."""
    return reply(text, then=[Hang()]) if text else NoReply(delay_s=None)


def forever(item: Reply | Dynamic) -> Forever:
    """The same reply to all later requests."""
    return Forever(item)


def _fragments(value: Fragments, chunk: int | None = None) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value)
    if not chunk:
        return (value,) if value else ()
    return tuple(value[start : start + chunk] for start in range(0, len(value), chunk))


def _dealt(calls: Sequence[Sequence[CallDelta]], interleaved: bool) -> list[CallDelta]:
    if not interleaved:
        return [delta for deltas in calls for delta in deltas]
    return [delta for turn in zip_longest(*calls) for delta in turn if delta is not None]
