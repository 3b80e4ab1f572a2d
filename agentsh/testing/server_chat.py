"""Chat Completions on the wire: a scripted reply as chunks of a stream, or as one completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentsh.testing import server_sse as sse
from agentsh.testing.server_script import (
    CallDelta,
    Comment,
    Cut,
    EmptyChoices,
    Event,
    Finish,
    Gate,
    Hang,
    ModelReply,
    Part,
    Pause,
    Raw,
    Reasoning,
    Step,
    StreamError,
    Text,
    Together,
    Usage,
)
from agentsh.testing.server_sse import Frame
from agentsh.testing.server_whole import finish_reason, parts, usage_of, whole, with_ids
from agentsh.testing.server_wire import Request

CREATED = 1_700_000_000
"""`created` of every answer, seconds since the epoch: constant, so that equal runs give equal bytes."""


def stream(reply: ModelReply, request: Request, reply_id: str) -> Iterator[Frame]:
    """The frames of a streamed chat completion."""
    chunks = _Chunks(reply, request, reply_id)
    steps = with_ids(reply.steps, reply_id)
    yield chunks.opening(steps)
    for step in steps:
        yield chunks.frame(step)
        if isinstance(step, Cut | Hang):
            return
    if not any(isinstance(part, Finish) for part in parts(steps)) and reply.finish is not None:
        yield chunks.of_parts([Finish(finish_reason(reply))])
    usage = usage_of(reply, request)
    if usage and request.wants_usage:
        yield chunks.usage(usage)
    if reply.done:
        yield sse.text_event("[DONE]", reply.layout)


def completion(reply: ModelReply, request: Request, reply_id: str) -> dict[str, Any]:
    """The JSON of a chat completion that is not streamed."""
    message = whole(with_ids(reply.steps, reply_id))
    answer: dict[str, Any] = {"role": "assistant", "content": message.text, "refusal": None}
    if message.reasoning:
        answer[message.reasoning_member] = message.reasoning
    if message.calls:
        answer["content"] = message.text or None
        answer["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    body = _base(reply, request, reply_id, "chat.completion")
    choice = {"index": 0, "message": answer, "logprobs": None, "finish_reason": finish_reason(reply)}
    body["choices"] = [choice]
    usage = usage_of(reply, request)
    if usage:
        body["usage"] = usage_json(usage)
    return body


def usage_json(usage: Usage) -> dict[str, Any]:
    """`usage` as Chat Completions reports it."""
    counts: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }
    if usage.details:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached, "audio_tokens": 0}
        counts["completion_tokens_details"] = {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        }
    return counts


def error_json(step: StreamError) -> dict[str, Any]:
    """The error object that a stream may hold."""
    error = {"message": step.message, "type": step.type, "param": step.param, "code": step.code}
    return {"error": error}


def _base(reply: ModelReply, request: Request, reply_id: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply_id}",
        "object": kind,
        "created": CREATED,
        "model": reply.model or request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Makes the chunks of one stream."""

    reply: ModelReply
    request: Request
    reply_id: str

    def opening(self, steps: Sequence[Step]) -> Frame:
        """The first chunk: the role, and null for the content where a call comes first."""
        first = next(parts(steps), None)
        content = None if isinstance(first, CallDelta) else ""
        return self._chunk({"role": "assistant", "content": content, "refusal": None}, None)

    def frame(self, step: Step) -> Frame:
        """The frame of one step."""
        layout = self.reply.layout
        match step:
            case Pause() | Hang() | Cut() | Gate():
                return step
            case Raw():
                return sse.raw(step)
            case Comment():
                return sse.comment(step, layout)
            case Event(data, name):
                return sse.event(data, layout, name)
            case StreamError():
                return sse.event(error_json(step), layout)
            case EmptyChoices():
                return sse.event(self._body([]), layout)
            case Together(members):
                return self.of_parts(members)
            case Text() | Reasoning() | CallDelta() | Finish():
                return self.of_parts([step])

    def of_parts(self, members: Sequence[Part]) -> Frame:
        """One chunk with all the parts in it."""
        delta: dict[str, Any] = {}
        reason: str | None = None
        for part in members:
            match part:
                case Text(text):
                    delta["content"] = delta.get("content", "") + text
                case Reasoning(text, member):
                    delta[member] = delta.get(member, "") + text
                case CallDelta():
                    delta.setdefault("tool_calls", []).append(_call_delta(part))
                case Finish(reason):
                    pass
        return self._chunk(delta, reason)

    def usage(self, usage: Usage) -> Frame:
        """The last chunk: no choices, only the usage."""
        return sse.event({**self._body([]), "usage": usage_json(usage)}, self.reply.layout)

    def _chunk(self, delta: dict[str, Any], reason: str | None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return sse.event(self._body([choice]), self.reply.layout)

    def _body(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        body = _base(self.reply, self.request, self.reply_id, "chat.completion.chunk")
        body["choices"] = choices
        if self.request.wants_usage:
            body["usage"] = None
        return body


def _call_delta(part: CallDelta) -> dict[str, Any]:
    fragment: dict[str, Any] = {"index": part.index}
    if part.id is not None:
        fragment["id"] = part.id
    if part.starts:
        fragment["type"] = "function"
    function = {
        name: value for name, value in (("name", part.name), ("arguments", part.arguments)) if value is not None
    }
    if function:
        fragment["function"] = function
    return fragment
