"""What models write as arguments, or for a text, and how it goes back to them: never so that a request is refused."""

import json
from typing import Any

import pytest

from agentsh.context.items import MAX_DEPTH
from agentsh.context.marks import MAX_ITEM_BYTES
from agentsh.context.messages import build, messages_of
from agentsh.context.validate import problems
from agentsh.context.view import View, view_of
from agentsh.events.session import ModelChanged
from agentsh.events.tool import ToolCall, ToolResult
from agentsh.events.turn import AgentMessage, UserMessage
from agentsh.models.chat_body import encode
from agentsh.ports.model import Message, Prompt
from agentsh.testing import server_rules
from tests.context.driver import Driver

LONG = '"b":"' + "x" * 40_000 + '"'


def called(arguments: str, *, text: str = "", result: str = "done") -> Driver:
    driver = Driver(1)
    driver.add(UserMessage(text="go", attachments=()))
    said = AgentMessage(text=text, reasoning=None, model="m", finish="tool_calls", usage=None, cost_usd=None)
    reply = driver.add(said)
    call = driver.add(ToolCall(call="c1", name="look", arguments=arguments), reply.seq)
    driver.add(ToolResult(call="c1", status="ok", for_model=result, for_user="", duration_ms=0), call.seq)
    return driver


def sent(driver: Driver, view: View | None = None) -> tuple[Message, ...]:
    messages = messages_of(build(driver.state, driver.texts, view or view_of(driver.state)))
    assert problems(messages) == []
    assert server_rules.problems(json.loads(encode(Prompt("m", messages, (), {})))) == []
    return messages


def arguments_of(driver: Driver, view: View | None = None) -> str:
    return sent(driver, view)[-2].calls[0].arguments


def nested(depth: int) -> str:
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"n":1e400,' + LONG + "}",
        '{"n":-1e999,"m":[1e400],' + LONG + "}",
        nested(900)[:-1] + "," + LONG + "}",
        nested(5_000),
        '{"a":"\\ud800",' + LONG + "}",
        '{"' + "k" * 40_000 + '":1}',
    ],
    ids=["infinite", "infinite inside", "deep and long", "deeper", "half a pair", "long name"],
)
def test_arguments_that_no_request_may_hold_as_they_are_do_not_end_a_session(arguments: str) -> None:
    """Long ones are cut, and what JSON has no word for, or Python no stack, must not come of it."""
    found = arguments_of(called(arguments))
    assert isinstance(json.loads(found), dict)
    assert len(found.encode()) <= MAX_ITEM_BYTES


def test_a_number_that_is_too_large_is_kept_as_its_digits() -> None:
    assert json.loads(arguments_of(called('{"n":1e400,"m":2.5,' + LONG + "}")))["n"] == "1e400"


def test_how_deep_arguments_may_be_does_not_depend_on_who_asks() -> None:
    """Python reads some 1,000 levels less its own stack, so the same log gave other bytes to another caller."""
    assert arguments_of(called(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    assert arguments_of(called(nested(MAX_DEPTH + 1))) == "{}"
    plain = '{"a":"' + "[" * 500 + '\\"{"}'
    assert arguments_of(called(plain)) == plain, "brackets in a string are none"


def test_the_cap_of_arguments_is_one_of_bytes() -> None:
    wide = json.dumps({"content": "漢" * 20_000}, ensure_ascii=False)
    assert len(arguments_of(called(wide)).encode()) <= MAX_ITEM_BYTES
    assert arguments_of(called(wide), View(rules=2)) == wide, "old requests are built as they were"


def test_blank_texts_count_as_empty() -> None:
    """Some providers refuse a text of white space alone."""
    driver = called("{}", text="\n", result=" \n ")
    assert [m.text for m in sent(driver)[-2:]] == ["", "(no output)"]
    driver.add(AgentMessage(text="  ", reasoning=None, model="m", finish="stop", usage=None, cost_usd=None))
    assert len(sent(driver)) == 4, "a reply that says nothing is none"
    assert sent(driver, View(rules=2))[-1].text == "  ", "old requests are built as they were"


def test_the_cap_of_an_item_is_what_the_log_says() -> None:
    driver = called("{}", result="r" * 20_000)
    assert len(sent(driver)[-1].text) == 20_000
    driver.add(ModelChanged(model="m", request={"wire": "chat", "options": {}, "item_bytes": 6_000}))
    assert len(sent(driver)[-1].text.encode()) <= 6_000
    odd: Any
    for odd in (-1, 3, True, "6000", None):
        driver.add(ModelChanged(model="m", request={"wire": "chat", "options": {}, "item_bytes": odd}))
        assert len(sent(driver)[-1].text) == 20_000, "of a damaged log"
