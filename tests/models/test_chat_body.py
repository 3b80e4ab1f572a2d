"""The exact bytes of a request: they are hashed into logs, so a change here is a change of format."""

import json
from typing import Any

import pytest

from agentsh.models.chat_body import encode, sent_name
from agentsh.ports.model import Call, Message, Prompt
from agentsh.testing.server_rules import problems

TOOL: dict[str, Any] = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}


def test_a_whole_body_byte_for_byte() -> None:
    prompt = Prompt(
        "gpt-5",
        (
            Message("system", "Sei kurz."),
            Message("user", "世界"),
            Message("assistant", "", (Call("c1", "read", '{"path": "a"}'),)),
            Message("tool", "x\n", call_id="c1"),
        ),
        (TOOL,),
        {"parallel_tool_calls": True, "temperature": 0, "extra": {"seed": 7}},
    )
    assert encode(prompt).decode() == (
        '{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},'
        '"temperature":0,"parallel_tool_calls":true,"seed":7,'
        '"tools":[{"type":"function","function":{"name":"read","description":"Reads.",'
        '"parameters":{"type":"object","properties":{}}}}],'
        '"messages":[{"role":"system","content":"Sei kurz."},{"role":"user","content":"世界"},'
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        '"function":{"name":"read","arguments":"{\\"path\\": \\"a\\"}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"x\\n"}]}'
    )


def test_what_needs_tools_is_left_out_without_them() -> None:
    prompt = Prompt("m", (Message("user", "x"),), (), {"parallel_tool_calls": False, "tool_choice": "auto"})
    assert json.loads(encode(prompt)).keys() == {"model", "stream", "stream_options", "messages"}
    assert not problems(json.loads(encode(prompt)))


def test_options_keep_their_order_and_cannot_replace_what_the_adapter_needs() -> None:
    options = {
        "zeta": 1,
        "extra": {"stream": False, "messages": [], "model": "other", "tools": [], "alpha": 2, "top_p": 0.1},
        "max_tokens": 5,
        "reasoning_effort": "low",
        "top_p": 0.9,
        "stream_options": {},
        "max_completion_tokens": 6,
        "temperature": None,
    }
    body = json.loads(encode(Prompt("m", (Message("user", "x"),), (), options)))
    assert list(body) == [
        "model", "stream", "stream_options", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort",
        "alpha", "zeta", "messages",
    ]  # fmt: skip
    assert (body["model"], body["stream"]) == ("m", True)


def test_halves_of_characters_and_controls_are_valid_json_for_everyone() -> None:
    text = "a\ud83db\x00\u2028\udc00"
    body = encode(Prompt("m", (Message("user", text),), ()))
    assert json.loads(body)["messages"][0]["content"] == "a\ufffdb\x00\u2028\ufffd"
    assert b"\n" not in body


def test_an_option_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Prompt("m", (Message("user", "x"),), (), {"temperature": float("nan")}))


NAMES = [("read", "read"), ("functions.read", "functions_read"), ("", "unknown"), ("ü" * 80, "_" * 64)]


@pytest.mark.parametrize(("name", "sent"), NAMES)
def test_names_that_no_provider_takes(name: str, sent: str) -> None:
    assert sent_name(name) == sent
    calls = (Call("c1", name, "{}"),)
    messages = (Message("user", "x"), Message("assistant", "", calls), Message("tool", "no such tool", call_id="c1"))
    assert not problems(json.loads(encode(Prompt("m", messages, (TOOL,)))))
