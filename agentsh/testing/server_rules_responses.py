"""The rules of the Responses API: what is wrong with a request, in the words of OpenAI's own answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentsh.testing.server_problems import (
    UNPARSABLE,
    Problem,
    argument_problems,
    empty_array,
    encodes,
    missing,
    name_problems,
    schema_problems,
    wrong_type,
)


def problems(body: object) -> list[Problem]:
    """All that OpenAI would refuse in the parsed body of a `POST /v1/responses`, as far as agents meet it.

    Pure. Calls and their outputs must pair up, unless `previous_response_id` or `conversation` says that the
    rest lies with the server.
    """
    if not isinstance(body, dict) or not encodes(body):
        return [UNPARSABLE]
    found = list(_tools(body))
    if not isinstance(body.get("model"), str):
        found.append(missing("model"))
    items = body.get("input")
    if items is None:
        found.append(missing("input"))
    elif isinstance(items, list):
        if not items:
            found.append(empty_array("input"))
        for position, item in enumerate(items):
            found.extend(_item(f"input[{position}]", item))
        if body.get("previous_response_id") is None and body.get("conversation") is None:
            found.extend(_pairing([item for item in items if isinstance(item, dict)]))
    elif not isinstance(items, str):
        found.append(wrong_type("input", "one of a string or array of objects", items))
    return found


def _tools(body: Mapping[str, Any]) -> Iterator[Problem]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield wrong_type("tools", "an array of objects", tools)
        return
    for position, tool in enumerate(tools):
        where = f"tools[{position}]"
        if not isinstance(tool, dict):
            yield wrong_type(where, "an object", tool)
        elif tool.get("type") == "function":
            yield from name_problems(f"{where}.name", tool.get("name"))
            yield from schema_problems(f"{where}.parameters", tool.get("name"), tool.get("parameters"))


def _item(where: str, item: object) -> Iterator[Problem]:
    if not isinstance(item, dict):
        yield wrong_type(where, "an object", item)
        return
    match item.get("type", "message"):
        case "function_call":
            if not isinstance(item.get("call_id"), str):
                yield missing(f"{where}.call_id")
            yield from name_problems(f"{where}.name", item.get("name"))
            yield from argument_problems(f"{where}.arguments", item.get("arguments"))
        case "function_call_output":
            if not isinstance(item.get("call_id"), str):
                yield missing(f"{where}.call_id")
            if not isinstance(item.get("output"), str | list):
                yield wrong_type(f"{where}.output", "one of a string or array of objects", item.get("output"))
        case "message":
            if item.get("role") not in ("user", "assistant", "system", "developer"):
                supported = "'assistant', 'system', 'developer', and 'user'"
                message = f"Invalid value: '{item.get('role')}'. Supported values are: {supported}."
                yield Problem(message, f"{where}.role", "invalid_value")
            if not isinstance(item.get("content"), str | list):
                yield wrong_type(f"{where}.content", "one of a string or array of objects", item.get("content"))


def _pairing(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    outputs = [item.get("call_id") for item in items if item.get("type") == "function_call_output"]
    for call_id in calls:
        if call_id not in outputs:
            yield Problem(f"No tool output found for function call {call_id}.", "input")
    for call_id in outputs:
        if call_id not in calls:
            yield Problem(f"No tool call found for function call output with call_id {call_id}.", "input")
    for ids in (calls, outputs):
        twice = sorted({str(call_id) for call_id in ids if ids.count(call_id) > 1})
        if twice:
            yield Problem(f"Duplicate call_ids submitted: {twice}", "input")
