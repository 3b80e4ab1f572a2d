"""The Responses API on the wire: a scripted reply as typed events, or as one response object."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from agentsh.testing import server_sse as sse
from agentsh.testing.server_chat import CREATED
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
    Pause,
    Raw,
    Reasoning,
    StreamError,
    Text,
    Usage,
)
from agentsh.testing.server_sse import Frame
from agentsh.testing.server_whole import CallTable, WholeCall, finish_reason, parts, usage_of, whole, with_ids
from agentsh.testing.server_wire import Request

Happening = dict[str, Any]

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reasons of Chat Completions that Responses tells as an incomplete response, and the reason there."""


def stream(reply: ModelReply, request: Request, reply_id: str) -> Iterator[Frame]:
    """The frames of a streamed response; it ends with `response.completed` or `response.incomplete`."""
    steps = with_ids(reply.steps, reply_id)
    output = _Output(reply_id, whole(steps).calls)
    opening = _response(reply, request, reply_id, "in_progress", [])
    numbered = _Numbered(reply)
    yield from numbered({"type": name, "response": opening} for name in ("response.created", "response.in_progress"))
    for step in steps:
        match step:
            case Pause() | Gate() | Hang() | Cut():
                yield step
            case Raw():
                yield sse.raw(step)
            case Comment():
                yield sse.comment(step, reply.layout)
            case Event(data, name):
                yield sse.event(data, reply.layout, name)
            case EmptyChoices():
                pass
            case StreamError(message, _, code, param):
                yield from numbered([{"type": "error", "code": code, "message": message, "param": param}])
            case _:
                for part in parts([step]):
                    yield from numbered(output.of_part(part))
        if isinstance(step, Cut | Hang):
            return
    yield from numbered(output.finished())
    if finish_reason(reply) is not None:
        final = _final(reply, request, reply_id, output)
        yield from numbered([{"type": f"response.{final['status']}", "response": final}])


def completion(reply: ModelReply, request: Request, reply_id: str) -> dict[str, Any]:
    """The JSON of a response that is not streamed."""
    steps = with_ids(reply.steps, reply_id)
    output = _Output(reply_id, whole(steps).calls)
    for part in parts(steps):
        for _ in output.of_part(part):
            pass
    for _ in output.finished():
        pass
    return _final(reply, request, reply_id, output)


def usage_json(usage: Usage) -> dict[str, Any]:
    """`usage` as Responses reports it."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }


def _response(
    reply: ModelReply, request: Request, reply_id: str, status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    body = request.json if isinstance(request.json, dict) else {}
    return {
        "id": f"resp_{reply_id}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": reply.model or request.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": None,
    }


def _final(reply: ModelReply, request: Request, reply_id: str, output: _Output) -> dict[str, Any]:
    reason = INCOMPLETE.get(finish_reason(reply) or "")
    status = "incomplete" if reason else "completed"
    body = _response(reply, request, reply_id, status, [item.json("completed") for item in output.items])
    if reason:
        body["incomplete_details"] = {"reason": reason}
    usage = usage_of(reply, request)
    if usage:
        body["usage"] = usage_json(usage)
    return body


@dataclass(slots=True)
class _Numbered:
    """Turns what happens into events with ascending sequence numbers."""

    reply: ModelReply
    count: int = 0

    def __call__(self, happenings: Iterable[Happening]) -> Iterator[Frame]:
        for happening in happenings:
            numbered = {**happening, "sequence_number": self.count}
            self.count += 1
            yield sse.event(numbered, self.reply.layout, happening["type"])


@dataclass(slots=True)
class _Item:
    """One item of the output while it grows."""

    kind: Literal["message", "reasoning", "function_call"]
    id: str
    position: int
    text: str = ""
    call: WholeCall = field(default_factory=WholeCall)
    done: bool = False

    def json(self, status: str) -> dict[str, Any]:
        """The item as far as it is known."""
        if self.kind == "message":
            content = [_text_part(self.text)] if self.text or status == "completed" else []
            return {
                "id": self.id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": content,
            }
        if self.kind == "reasoning":
            summary = [_summary_part(self.text)] if self.text else []
            return {"id": self.id, "type": "reasoning", "summary": summary}
        return {
            "id": self.id,
            "type": "function_call",
            "status": status,
            "call_id": self.call.id,
            "name": self.call.name,
            "arguments": self.text,
        }

    def event(self, kind: str, **members: Any) -> Happening:
        """An event about this item."""
        return {"type": kind, "item_id": self.id, "output_index": self.position, **members}


class _Output:
    """The items of one response, and the events that tell how each opens, grows and is done."""

    def __init__(self, reply_id: str, calls: list[WholeCall]) -> None:
        self.items: list[_Item] = []
        self._reply_id = reply_id
        # Fragments of an id or a name do not exist here: an item has both whole from its first event.
        self._calls = calls
        self._table = CallTable()
        self._of_call: dict[int, _Item] = {}

    def of_part(self, part: Text | Reasoning | CallDelta | Finish) -> Iterator[Happening]:
        """What happens when this part arrives."""
        match part:
            case Text(text):
                item = yield from self._open("message", "msg")
                item.text += text
                yield item.event("response.output_text.delta", content_index=0, delta=text, logprobs=[])
            case Reasoning(text):
                item = yield from self._open("reasoning", "rs")
                item.text += text
                yield item.event("response.reasoning_summary_text.delta", summary_index=0, delta=text)
            case CallDelta():
                yield from self._of_delta(part)
            case Finish():
                pass

    def finished(self) -> Iterator[Happening]:
        """What happens at the end: every item that is still open is done."""
        for item in self.items:
            yield from self._done(item)

    def _of_delta(self, part: CallDelta) -> Iterator[Happening]:
        position = self._table.add(part)
        item = self._of_call.get(position)
        if item is None:
            item = yield from self._open("function_call", "fc", self._calls[position])
            self._of_call[position] = item
        if part.arguments:
            item.text += part.arguments
            yield item.event("response.function_call_arguments.delta", delta=part.arguments)

    def _open(
        self,
        kind: Literal["message", "reasoning", "function_call"],
        prefix: str,
        call: WholeCall | None = None,
    ) -> Generator[Happening, None, _Item]:
        """The item that grows now; text and reasoning go on in their newest item while it is the last."""
        last = self.items[-1] if self.items else None
        if call is None and last is not None and last.kind == kind and not last.done:
            return last
        if last is not None and last.kind != "function_call":
            yield from self._done(last)
        item = _Item(kind, f"{prefix}_{self._reply_id}_{len(self.items)}", len(self.items))
        item.call = call or item.call
        self.items.append(item)
        opened = item.json("in_progress")
        yield {"type": "response.output_item.added", "output_index": item.position, "item": opened}
        if kind == "message":
            yield item.event("response.content_part.added", content_index=0, part=_text_part(""))
        elif kind == "reasoning":
            yield item.event("response.reasoning_summary_part.added", summary_index=0, part=_summary_part(""))
        return item

    def _done(self, item: _Item) -> Iterator[Happening]:
        if item.done:
            return
        item.done = True
        text = item.text
        match item.kind:
            case "message":
                yield item.event("response.output_text.done", content_index=0, text=text, logprobs=[])
                yield item.event("response.content_part.done", content_index=0, part=_text_part(text))
            case "reasoning":
                yield item.event("response.reasoning_summary_text.done", summary_index=0, text=text)
                part = _summary_part(text)
                yield item.event("response.reasoning_summary_part.done", summary_index=0, part=part)
            case "function_call":
                name = item.call.name
                yield item.event("response.function_call_arguments.done", name=name, arguments=text)
        closed = item.json("completed")
        yield {"type": "response.output_item.done", "output_index": item.position, "item": closed}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary_part(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}
