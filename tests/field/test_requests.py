"""What people reported of wrong contexts (D), of things that were dropped (G) and of lost caches (H)."""

import json
from hashlib import sha256

from agentsh.context.items import NO_RESULT
from agentsh.context.messages import build, messages_of
from agentsh.context.request import prompt_of
from agentsh.context.view import View
from agentsh.events.base import NO_USAGE
from agentsh.events.session import ModelChanged
from agentsh.events.tool import ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, TurnFinished, UserMessage
from agentsh.models.chat_body import encode
from agentsh.ports.model import Message, Prompt
from agentsh.testing import server_rules as rules
from tests.context.driver import TOOLS, Driver


def agent(driver: Driver, text: str = "", reasoning: str | None = None) -> int:
    said = AgentMessage(text=text, reasoning=reasoning, model="m", finish="stop", usage=None, cost_usd=None)
    return driver.add(said).seq


def user(driver: Driver, text: str) -> int:
    return driver.add(UserMessage(text=text, attachments=())).seq


def ask(driver: Driver, said: int, call: str = "call_1") -> int:
    return driver.add(ToolCall(call=call, name="look", arguments="{}"), said).seq


def started(driver: Driver, call: int) -> int:
    fact = ToolStarted(call="c", effects=("exec",), sandbox="none", pid=None, decision="yolo")
    return driver.add(fact, call).seq


def result(driver: Driver, cause: int | None, text: str) -> None:
    driver.add(ToolResult(call="c", status="ok", for_model=text, for_user="", duration_ms=0), cause)


def sent(driver: Driver) -> list[Message]:
    """The messages of the next request, which a strict server takes."""
    messages = messages_of(build(driver.state, driver.texts, View()))
    body = json.loads(encode(Prompt("m", messages, ())))
    assert rules.problems(body) == []
    return list(messages[1:])


def test_d72_d75_killed_inside_a_tool_and_two_turns_on() -> None:
    driver = Driver(1)
    user(driver, "go")
    started(driver, ask(driver, agent(driver)))
    driver.resume()
    for text in ("on", "and on"):
        user(driver, text)
        messages = sent(driver)
        assert messages[2].role == "tool"
        assert "may have run" in messages[2].text
        agent(driver, "fine")
        driver.add(TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0))


def test_d80_d91_interrupted_between_parallel_calls() -> None:
    driver = Driver(1)
    user(driver, "go")
    said = agent(driver)
    calls = [ask(driver, said, f"c{n}") for n in range(3)]
    result(driver, started(driver, calls[1]), "the second is done")
    driver.resume()
    user(driver, "on")
    roles = [m.role for m in sent(driver)]
    assert roles == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert [m.text for m in sent(driver)][3] == "the second is done"


def test_d81_two_messages_of_the_users_in_a_row_are_one_where_the_profile_says_so() -> None:
    driver = Driver(1)
    user(driver, "first, interrupted")
    user(driver, "second")
    agent(driver, "hm")
    user(driver, "third")
    messages = sent(driver)
    assert [m.role for m in prompt_of(driver.state, messages, "[]").messages] == ["user", "user", "assistant", "user"]
    driver.add(ModelChanged(model="m", request={"wire": "chat", "options": {}, "merge_user_messages": True}))
    merged = prompt_of(driver.state, messages, "[]").messages
    assert [m.role for m in merged] == ["user", "assistant", "user"]
    assert merged[0].text == "first, interrupted\n\nsecond"


def test_d87_d88_reasoning_is_kept_in_the_log_and_never_sent_back_changed() -> None:
    driver = Driver(1)
    user(driver, "go")
    agent(driver, "done", "signed thoughts")
    user(driver, "on")
    assert b"signed thoughts" not in encode(Prompt("other", tuple(sent(driver)), ()))
    assert "signed thoughts" in str(driver.events[-2].raw)


def test_d95_a_result_without_a_call_is_never_sent_as_one() -> None:
    driver = Driver(1)
    user(driver, "go")
    result(driver, None, "of nobody")
    result(driver, 1, "of nobody else")
    agent(driver, "hm")
    user(driver, "on")
    assert [m.role for m in sent(driver)] == ["user", "user", "user", "assistant", "user"]
    assert sent(driver)[1].text.endswith("This was its result:]\nof nobody"), "told as a note"


def test_d95_a_result_that_stands_there_twice_is_told_once() -> None:
    driver = Driver(1)
    user(driver, "go")
    cause = started(driver, ask(driver, agent(driver)))
    result(driver, cause, "done")
    result(driver, cause, "done")
    assert [m.role for m in sent(driver)] == ["user", "assistant", "tool"]


def test_d98_d99_a_call_that_is_still_open_has_a_result_all_the_same() -> None:
    driver = Driver(1)
    user(driver, "go")
    ask(driver, agent(driver))
    assert sent(driver)[-1].text == NO_RESULT


def test_a32_one_id_twice() -> None:
    driver = Driver(1)
    user(driver, "go")
    for _ in range(2):
        result(driver, started(driver, ask(driver, agent(driver), "same")), "x")
    ids = [m.call_id for m in sent(driver) if m.role == "tool"]
    assert len(set(ids)) == 2


def test_h140_the_bytes_of_a_request_are_stable() -> None:
    """Order of tools, of keys, and white space: pinned, since another order loses every cache there is."""
    driver = Driver(1)
    user(driver, "go")
    messages = (Message("system", "s"), *sent(driver))
    one = encode(Prompt("m", messages, tuple(json.loads(TOOLS)), {"top_p": 1, "temperature": 0}))
    two = encode(Prompt("m", messages, tuple(json.loads(TOOLS)), {"temperature": 0, "top_p": 1}))
    assert one == two
    assert one.index(b'"tools"') < one.index(b'"messages"'), "what never changes comes first"
    assert sha256(one).hexdigest() == PINNED


PINNED = "221a8f53c24b9b5f7fadedfe31b2412295e28e15f68cf34e3eddc6c62381629b"
