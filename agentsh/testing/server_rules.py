"""The rules of Chat Completions: what is wrong with a request, in the words of OpenAI's own answers.

Independent of agentsh's context code on purpose: a rule that both sides share is a rule that nothing tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentsh.testing.server_images import image_problems
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

__all__ = ["ROLES", "Problem", "problems"]

ROLES = ("system", "assistant", "user", "function", "tool", "developer")


def problems(body: object) -> list[Problem]:
    """All that OpenAI would refuse in the parsed body of a `POST /v1/chat/completions`, worst first.

    Pure. An empty list means that the request is valid. Two rules are stricter than OpenAI, because other
    servers of this kind (vLLM, DashScope, DeepSeek) enforce them: arguments of calls must hold a JSON object,
    and a call id must be unique in the whole request.
    """
    if not isinstance(body, dict) or not encodes(body):
        return [UNPARSABLE]
    found = [*_parameters(body), *_tools(body)]
    messages = body.get("messages")
    if "messages" not in body:
        found.append(missing("messages"))
    elif not isinstance(messages, list):
        found.append(wrong_type("messages", "an array of objects", messages))
    elif not messages:
        found.append(empty_array("messages"))
    else:
        for position, message in enumerate(messages):
            found.extend(_message(f"messages[{position}]", message))
        found.extend(_pairing(messages))
        found.extend(_unique_ids(messages))
    return found


def _parameters(body: Mapping[str, Any]) -> Iterator[Problem]:
    model = body.get("model")
    if model is None:
        yield Problem("you must provide a model parameter")
    elif not isinstance(model, str):
        yield wrong_type("model", "a string", model)
    if not isinstance(body.get("stream", False), bool | None):
        yield wrong_type("stream", "a boolean", body["stream"])
    if body.get("stream_options") is not None and body.get("stream") is not True:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield Problem(message, "stream_options")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not body.get("tools"):
            message = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            yield Problem(message, name)


def _tools(body: Mapping[str, Any]) -> Iterator[Problem]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield wrong_type("tools", "an array of objects", tools)
        return
    if not tools:
        yield empty_array("tools")
    for position, tool in enumerate(tools):
        where = f"tools[{position}]"
        if not isinstance(tool, dict):
            yield wrong_type(where, "an object", tool)
        elif tool.get("type") != "function":
            message = f"Invalid value: '{tool.get('type')}'. Supported values are: 'function' and 'custom'."
            yield Problem(message, f"{where}.type", "invalid_value")
        elif not isinstance(tool.get("function"), dict):
            yield missing(f"{where}.function")
        else:
            yield from _function(f"{where}.function", tool["function"])


def _function(where: str, function: Mapping[str, Any]) -> Iterator[Problem]:
    if "name" not in function:
        yield missing(f"{where}.name")
    else:
        yield from name_problems(f"{where}.name", function["name"])
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        yield wrong_type(f"{where}.description", "a string", description)
    if function.get("parameters") is not None:
        yield from schema_problems(f"{where}.parameters", function.get("name"), function["parameters"])


def _message(where: str, message: object) -> Iterator[Problem]:
    if not isinstance(message, dict):
        yield wrong_type(where, "an object", message)
        return
    role = message.get("role")
    if role is None:
        yield missing(f"{where}.role")
    elif role not in ROLES:
        supported = ", ".join(f"'{known}'" for known in ROLES[:-1]) + f", and '{ROLES[-1]}'"
        yield Problem(
            f"Invalid value: '{role}'. Supported values are: {supported}.", f"{where}.role", "invalid_value"
        )
    calls = message.get("tool_calls")
    if calls is not None and role != "assistant":
        text = f"Unknown parameter: '{where}.tool_calls'."
        yield Problem(text, f"{where}.tool_calls", "unknown_parameter")
    elif calls is not None:
        yield from _calls(f"{where}.tool_calls", calls)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
        yield Problem(text, f"{where}.tool_call_id")
    yield from _content(where, role, message.get("content"), required=not (role == "assistant" and calls))


def _content(where: str, role: object, content: object, *, required: bool) -> Iterator[Problem]:
    param = f"{where}.content"
    if content is None:
        if required:
            yield Problem("Invalid value for 'content': expected a string, got null.", param)
    elif isinstance(content, list):
        if not content:
            yield empty_array(param)
        for position, part in enumerate(content):
            if not isinstance(part, dict):
                yield wrong_type(f"{param}[{position}]", "an object", part)
            elif not isinstance(part.get("type"), str):
                yield missing(f"{param}[{position}].type")
            elif part["type"] not in part:
                # Every kind of part keeps its value under the name of its kind: text, image_url, refusal ...
                yield missing(f"{param}[{position}].{part['type']}")
            elif part["type"] == "image_url":
                yield from image_problems(f"{param}[{position}]", role, part)
    elif not isinstance(content, str):
        yield wrong_type(param, "one of a string or array of objects", content)


def _calls(where: str, calls: object) -> Iterator[Problem]:
    if not isinstance(calls, list):
        yield wrong_type(where, "an array of objects", calls)
        return
    if not calls:
        yield empty_array(where)
    for position, call in enumerate(calls):
        here = f"{where}[{position}]"
        if not isinstance(call, dict):
            yield wrong_type(here, "an object", call)
            continue
        if not isinstance(call.get("id"), str) or not call["id"]:
            yield missing(f"{here}.id")
        if call.get("type") != "function":
            yield missing(f"{here}.type")
        function = call.get("function")
        if not isinstance(function, dict):
            yield missing(f"{here}.function")
            continue
        yield from name_problems(f"{here}.function.name", function.get("name"))
        yield from argument_problems(f"{here}.function.arguments", function.get("arguments"))


def _pairing(messages: Sequence[object]) -> Iterator[Problem]:
    """Calls and results: each call is answered at once and once, and nothing else is."""
    open_ids: dict[str, int] = {}  # call id -> where it was answered, or -1
    for position, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") == "tool":
            yield from _answer(position, message.get("tool_call_id"), open_ids)
            continue
        yield from _unanswered(position, open_ids)
        open_ids = dict.fromkeys(_call_ids(message), -1)
    yield from _unanswered(len(messages), open_ids)


def _answer(position: int, call_id: object, open_ids: dict[str, int]) -> Iterator[Problem]:
    if not open_ids:
        message = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'."
        )
        yield Problem(message, f"messages.[{position}].role")
    elif not isinstance(call_id, str):
        return  # reported as a missing parameter
    elif call_id not in open_ids:
        message = f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
        yield Problem(message, f"messages.[{position}].tool_call_id")
    elif open_ids[call_id] >= 0:
        message = (
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', "
            f"in messages[{open_ids[call_id]}] and messages[{position}]."
        )
        yield Problem(message, f"messages.[{position}].tool_call_id")
    else:
        open_ids[call_id] = position


def _unanswered(position: int, open_ids: Mapping[str, int]) -> Iterator[Problem]:
    waiting = [call_id for call_id, answered in open_ids.items() if answered < 0]
    if waiting:
        message = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
        )
        yield Problem(message + ", ".join(waiting), f"messages.[{position}].role")


def _unique_ids(messages: Sequence[object]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for position, message in enumerate(messages):
        for call_id in _call_ids(message):
            if call_id in seen:
                text = (
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', "
                    f"in messages[{seen[call_id]}] and messages[{position}]."
                )
                yield Problem(text, f"messages.[{position}].tool_calls")
            seen.setdefault(call_id, position)


def _call_ids(message: object) -> list[str]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list):
        return []
    return [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]
