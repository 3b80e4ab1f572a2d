"""The bytes of a Chat Completions request, as a pure function of the prompt: stdlib only, no client."""

import json
from collections.abc import Mapping
from typing import Any

from agentsh.base.pattern import later
from agentsh.ports.model import Call, Image, Message, Prompt

OPTIONS = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "parallel_tool_calls",
    "tool_choice",
)
"""Options that have a place of their own, in the order in which they are written."""
NEEDS_TOOLS = frozenset({"parallel_tool_calls", "tool_choice"})
"""OpenAI refuses these in a request that offers no tools."""
OURS = frozenset({"model", "stream", "stream_options", "tools", "messages", "extra"})
"""Members that options cannot set: the adapter depends on them."""
MAX_NAME_CHARS = 64
"""OpenAI's limit for the name of a tool; its pattern is the one below."""

_NOT_IN_A_NAME = later(r"[^a-zA-Z0-9_-]")
_SURROGATES = later("[\ud800-\udfff]")
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(prompt: Prompt) -> bytes:
    """Return the body. What stays the same in a session comes first and the messages last.

    So the bytes of a message never depend on what follows it, and a provider's prompt cache holds.

    Raises:
        ValueError: an option is no JSON, e.g. NaN.
    """
    body: dict[str, Any] = {"model": prompt.model, "stream": True, "stream_options": {"include_usage": True}}
    body.update(_options(prompt.options, with_tools=bool(prompt.tools)))
    if prompt.tools:
        body["tools"] = [_tool(tool) for tool in prompt.tools]
    body["messages"] = [_message(message) for message in prompt.messages]
    text = _dumps(body)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8. Replaced, not dropped, so that something stands where it stood.
        return _SURROGATES.sub("\ufffd", text).encode()


def _options(options: Mapping[str, Any], *, with_tools: bool) -> dict[str, Any]:
    known = {name: options[name] for name in OPTIONS if options.get(name) is not None}
    others = {name: value for name, value in options.items() if name not in known and name not in OPTIONS}
    extra = others.pop("extra", None)
    # By name, because the order of a mapping says how it was written down, not what it means.
    found = known | dict(sorted({**others, **(extra or {})}.items()))
    return {
        name: value
        for name, value in found.items()
        if name not in OURS and (with_tools or name not in NEEDS_TOOLS)
    }  # fmt: skip


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {name: tool[name] for name in ("name", "description", "parameters", "strict") if name in tool}
    return {"type": "function", "function": function}


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.text}
    if message.calls:
        calls = [_call(call) for call in message.calls]
        return {"role": message.role, "content": message.text or None, "tool_calls": calls}
    if message.images:
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
        return {"role": message.role, "content": parts + [_image(image) for image in message.images]}
    return {"role": message.role, "content": message.text}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": sent_name(call.name), "arguments": call.arguments},
    }


def sent_name(name: str) -> str:
    """Return the name of a call as providers take it.

    Models make up names such as `functions.read` or none at all. The log keeps what they said; sent back as it
    was, it would have every later request of the session refused.
    """
    return _NOT_IN_A_NAME.sub("_", name)[:MAX_NAME_CHARS] or "unknown"
