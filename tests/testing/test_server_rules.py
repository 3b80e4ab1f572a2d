"""The rules that a strict server holds requests to."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh.testing import server_rules_responses
from agentsh.testing.server import ScriptedServer, ScriptError, reply
from agentsh.testing.server_problems import context_problem, key_problem, model_problem
from agentsh.testing.server_rules import problems
from tests.testing.server_client import client, complete

USER = {"role": "user", "content": "hi"}


def asked(*ids: str, content: Any = None, arguments: Any = "{}", name: Any = "ls") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def answered(call_id: Any, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(name: Any = "ls", **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "parameters": schema, **members}}


def told(*messages: Any, **body: Any) -> list[str]:
    """What is wrong with a chat request of these messages."""
    return [problem.message for problem in problems({"model": "m", "messages": list(messages), **body})]


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, USER],
        [USER, asked("a"), answered("a"), {"role": "assistant", "content": "done"}],
        [USER, asked("a", "b", content="Two:"), answered("b"), answered("a"), USER],
        [USER, asked("a"), answered("a"), asked("b"), answered("b", [{"type": "text", "text": "ok"}])],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image_url", "image_url": {"url": "https://a.org/x.png"}},
                ],
            }
        ],
        [USER, {"role": "assistant", "content": ""}, answered("x") | {"role": "user"}],
    ],
)
def test_valid_conversations(messages: list[Any]) -> None:
    assert told(*messages) == []


def test_valid_parameters() -> None:
    tools = [tool(), tool("a-B_9", parameters=None), tool("d", description="text")]
    body = {"stream": True, "stream_options": {"include_usage": True}, "tools": tools, "tool_choice": "auto"}
    assert told(USER, **body) == []


FOLLOWED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
PRECEDED = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)
NOT_FOUND = "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message."
DUPLICATE = "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[{}] and messages[{}]."


@pytest.mark.parametrize(
    ("messages", "complaints"),
    [
        ([USER, asked("a")], [FOLLOWED + "a"]),
        ([USER, asked("a", "b", "c"), answered("b"), USER], [FOLLOWED + "a, c"]),
        ([USER, asked("a"), USER, answered("a")], [FOLLOWED + "a", PRECEDED]),
        ([USER, answered("a")], [PRECEDED]),
        ([answered("a")], [PRECEDED]),
        ([USER, asked("a"), answered("a"), USER, answered("a")], [PRECEDED]),
        ([USER, asked("a"), answered("a"), answered("b")], [NOT_FOUND]),
        ([USER, asked("a"), answered("a"), answered("a")], [DUPLICATE.format(2, 3)]),
        ([USER, asked("a", "a"), answered("a")], [DUPLICATE.format(1, 1)]),
        ([USER, asked("a"), answered("a"), asked("a"), answered("a")], [DUPLICATE.format(1, 3)]),
        (
            [USER, asked("a"), answered(None)],
            [
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
                FOLLOWED + "a",
            ],
        ),
    ],
)
def test_calls_and_results_pair_up(messages: list[Any], complaints: list[str]) -> None:
    assert told(*messages) == complaints


@pytest.mark.parametrize(
    ("message", "param", "code", "words"),
    [
        (
            {"role": "bot", "content": "x"},
            "messages[0].role",
            "invalid_value",
            "Invalid value: 'bot'. Supported values",
        ),
        ({"content": "x"}, "messages[0].role", "missing_required_parameter", "Missing required parameter"),
        ({"role": "user", "content": None}, "messages[0].content", None, "expected a string, got null"),
        ({"role": "assistant"}, "messages[0].content", None, "expected a string, got null"),
        ({"role": "user", "content": 7}, "messages[0].content", "invalid_type", "but got an integer instead"),
        ({"role": "user", "content": []}, "messages[0].content", "empty_array", "empty array"),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "messages[0].content[0].text",
            "missing_required_parameter",
            "",
        ),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]", "invalid_type", "but got a string instead"),
        ({"role": "assistant", "content": "x", "tool_calls": []}, "messages[0].tool_calls", "empty_array", ""),
        ({"role": "user", "content": "x", "tool_calls": []}, "messages[0].tool_calls", "unknown_parameter", ""),
        ("hi", "messages[0]", "invalid_type", "expected an object, but got a string instead"),
    ],
)
def test_shape_of_a_message(message: Any, param: str, code: str | None, words: str) -> None:
    found = problems({"model": "m", "messages": [message]})[0]
    assert (found.param, found.code, found.type, found.status) == (param, code, "invalid_request_error", 400)
    assert words in found.message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": 1}, "expected a string, but got an object instead"),
        (None, "expected a string, but got null instead"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ("[1]", "does not hold a JSON object"),
    ],
)
def test_arguments_are_strings_of_json_objects(arguments: Any, words: str) -> None:
    (message,) = told(USER, asked("a", arguments=arguments), answered("a"))
    assert "messages[1].tool_calls[0].function.arguments" in message
    assert words in message


@pytest.mark.parametrize("call", ["x", {}, {"id": "", "type": "function"}, {"id": "a", "type": "x", "function": {}}])
def test_shape_of_a_call(call: Any) -> None:
    assert told(USER, {"role": "assistant", "content": None, "tool_calls": [call]})
    assert told(USER, {"role": "assistant", "content": "x", "tool_calls": "none"})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a b", "does not match pattern"),
        ("", "does not match pattern"),
        ("ls\n", "does not match pattern"),
        ("é", "does not match pattern"),
        ("x" * 65, "maximum length 64, but got a string with length 65"),
        (None, "expected a string, but got null"),
    ],
)
def test_names_of_tools(name: Any, words: str) -> None:
    (in_schema,) = told(USER, tools=[tool(name)])
    (in_call,) = told(USER, asked("a", name=name), answered("a"))
    assert words in in_schema
    assert "'tools[0].function.name'" in in_schema
    assert words in in_call


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": []}, "Invalid 'tools': empty array"),
        ({"tools": {}}, "Invalid type for 'tools'"),
        ({"tools": ["x"]}, "Invalid type for 'tools[0]'"),
        ({"tools": [{"type": "x"}]}, "Invalid value: 'x'"),
        ({"tools": [{"type": "function"}]}, "Missing required parameter: 'tools[0].function'"),
        ({"tools": [tool(parameters=[])]}, "Invalid type for 'tools[0].function.parameters'"),
        (
            {"tools": [tool(parameters={})]},
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'",
        ),
        ({"tools": [tool(parameters={"type": "string"})]}, "got 'type: \"string\"'"),
        ({"tools": [tool(parameters={"type": "object", "properties": []})]}, "'properties' is not of type 'object'"),
        ({"tools": [tool(description=1)]}, "expected a string, but got an integer"),
        ({"tool_choice": "auto"}, "'tool_choice' is only allowed when 'tools' are specified"),
        ({"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
        ({"stream": "yes"}, "Invalid type for 'stream': expected a boolean"),
        ({"model": None}, "you must provide a model parameter"),
        ({"model": 4.5}, "Invalid type for 'model': expected a string, but got a decimal"),
    ],
)
def test_parameters(body: Any, words: str) -> None:
    assert words in told(USER, **body)[0]


@pytest.mark.parametrize("body", [None, [], "x", {"a": "\ud83d"}, {"a": float("nan")}])
def test_what_is_no_json_object_for_everybody(body: Any) -> None:
    (found,) = problems(body)
    assert found.message.startswith("We could not parse the JSON body of your request.")


@pytest.mark.parametrize(("messages", "code"), [(None, "invalid_type"), ({}, "invalid_type"), ([], "empty_array")])
def test_messages_are_a_list_that_is_not_empty(messages: Any, code: str) -> None:
    assert [found.code for found in problems({"model": "m", "messages": messages})] == [code]
    assert [found.code for found in problems({"model": "m"})] == ["missing_required_parameter"]


def test_key_model_and_size() -> None:
    assert key_problem("Bearer right", "right") is None
    assert key_problem("bearer right", "right") is None
    for absent in (None, "", "Bearer ", "Basic x"):
        found = key_problem(absent, "right")
        assert found is not None
        assert (found.status, found.code) == (401, None)
    wrong = key_problem("Bearer sk-proj-1234567890", "right")
    assert wrong is not None
    assert wrong.message.startswith("Incorrect API key provided: sk-proj-******7890. You can find")
    assert (wrong.status, wrong.code) == (401, "invalid_api_key")
    short = key_problem("Bearer secret", "right")
    assert short is not None
    assert "secret" not in short.message
    assert model_problem("a", ["a"]) is None
    unknown = model_problem("x", ["a"])
    assert unknown is not None
    assert unknown.message == "The model `x` does not exist or you do not have access to it."
    assert (unknown.status, unknown.code) == (404, "model_not_found")
    assert context_problem(b"x" * 43, 10) is None
    large = context_problem(b"x" * 44, 10)
    assert large is not None
    assert large.code == "context_length_exceeded"
    assert "maximum context length is 10 tokens. However, your messages resulted in 11 tokens." in large.message


CALL = {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "ok"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": [USER, CALL]}, "No tool output found for function call a."),
        ({"input": [USER, OUTPUT]}, "No tool call found for function call output with call_id a."),
        ({"input": [CALL, CALL, OUTPUT]}, "Duplicate call_ids submitted: ['a']"),
        ({"input": [CALL | {"arguments": "{"}, OUTPUT]}, "not valid JSON"),
        ({"input": [CALL, OUTPUT | {"output": None}]}, "Invalid type for 'input[1].output'"),
        ({"input": [CALL | {"call_id": 1}]}, "Missing required parameter: 'input[0].call_id'"),
        ({"input": [USER | {"role": "bot"}]}, "Invalid value: 'bot'"),
        ({"input": [USER | {"content": None}]}, "Invalid type for 'input[0].content'"),
        ({"input": []}, "empty array"),
        ({"input": ["x"]}, "expected an object"),
        ({"input": 1}, "Invalid type for 'input'"),
        ({}, "Missing required parameter: 'input'"),
        ({"input": "x", "model": None}, "Missing required parameter: 'model'"),
        ({"input": "x", "tools": {}}, "Invalid type for 'tools'"),
        ({"input": "x", "tools": [1]}, "expected an object"),
        ({"input": "x", "tools": [{"type": "function", "name": "a b", "parameters": {}}]}, "does not match pattern"),
    ],
)
def test_responses(body: Any, words: str) -> None:
    assert words in server_rules_responses.problems({"model": "m", **body})[0].message


def test_valid_responses_requests() -> None:
    for body in ({"input": "x"}, {"input": [USER, CALL, OUTPUT]}, {"input": [OUTPUT], "previous_response_id": "r"}):
        assert server_rules_responses.problems({"model": "m", **body}) == []
    assert server_rules_responses.problems(None)


async def test_a_strict_server_refuses_takes_no_reply_and_tells_at_exit() -> None:
    import openai

    server = ScriptedServer([reply("x")])
    server.start()
    with pytest.raises(openai.BadRequestError, match="did not have response messages: call_x") as raised:
        await complete(server.base_url, messages=[USER, asked("call_x")])
    assert raised.value.param == "messages.[2].role"
    assert [problem.message for problem in server.problems] == [FOLLOWED + "call_x"]
    assert server.remaining == 1
    with pytest.raises(ScriptError, match="request 1: An assistant message"):
        server.__exit__(None, None, None)


async def test_a_lenient_server_answers_anything() -> None:
    with ScriptedServer([reply("x")], strict=False) as server:
        completion = await complete(server.base_url, messages=[USER, asked("call_x")])
    assert completion.choices[0].message.content == "x"


async def test_keys_models_and_overflow_are_refused_without_being_failures() -> None:
    import openai

    with ScriptedServer([reply("x")], api_key="right", models=["m"], max_context_tokens=50) as server:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
            await complete(server.base_url)
        async with client(server.base_url, api_key="right") as right:
            with pytest.raises(openai.NotFoundError, match="The model `x` does not exist") as missing:
                await right.chat.completions.create(model="x", messages=[USER])
            with pytest.raises(openai.BadRequestError, match="maximum context length is 50 tokens") as large:
                await right.chat.completions.create(model="m", messages=[USER | {"content": "x" * 300}])
            done = await right.chat.completions.create(model="m", messages=[USER])
    assert missing.value.code == "model_not_found"
    assert large.value.code == "context_length_exceeded"
    assert done.choices[0].message.content == "x"
    assert server.failures == []


@pytest.mark.parametrize(
    ("role", "url", "message"),
    [
        ("system", "https://a.org/x.png", "Image URLs are only allowed for messages with role 'user'"),
        ("user", "x.png", "Expected a base64-encoded data URL"),
        ("user", "data:image/png;base64,%%%", "Invalid base64 image_url"),
        ("user", "data:image/png;base64,aGVsbG8=", "You uploaded an unsupported image."),
    ],
)
def test_images_that_nobody_can_look_at(role: str, url: str, message: str) -> None:
    parts = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": url}}]
    (problem,) = told({"role": role, "content": parts}, USER)
    assert message in str(problem)
