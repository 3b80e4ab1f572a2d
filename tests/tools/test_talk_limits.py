"""How long a list of things to do, a question and an answer may be."""

import json
from typing import Any

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.events.turn import TodoChanged
from agentsh.ports.asker import UserQuestion
from agentsh.ports.services import Services
from agentsh.ports.tool import ToolContext
from agentsh.tools import ask_user, todo
from agentsh.workspace.local import LocalWorkspace
from tests.tools.conftest import Call

DONE = {"text": "x" * 300, "status": "done"}


class Talkative:
    """Somebody who answers at length."""

    asked: UserQuestion | None = None

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.asked = question
        return "y" * 20_000


async def test_todo(call: Call) -> None:
    outcome = await call("todo", items=[DONE] * todo.MAX_ITEMS)
    (fact,) = outcome.facts
    assert isinstance(fact, TodoChanged)
    assert {len(item["text"]) for item in fact.items} == {todo.MAX_ITEM_CHARS}
    with pytest.raises(ToolFailed, match="at most 50 items, not 51"):
        await call("todo", items=[DONE] * 51)
    with pytest.raises(ToolFailed, match="without text"):
        await call("todo", items=[{"text": " ", "status": "done"}])


async def test_ask_user(workspace: LocalWorkspace) -> None:
    somebody = Talkative()
    context = ToolContext(workspace, "call_1", services=Services(asker=somebody))

    async def ask(**arguments: Any) -> str:
        return (await ask_user.TOOL.run(context, ask_user.TOOL.parse(json.dumps(arguments)))).for_model

    assert len(await ask(question="q" * 5_000, choices=["c" * 500] * 9)) < ask_user.MAX_ANSWER_CHARS + 100
    assert somebody.asked is not None
    assert len(somebody.asked.text) == ask_user.MAX_QUESTION_CHARS
    assert {len(choice) for choice in somebody.asked.choices} == {ask_user.MAX_CHOICE_CHARS}
    with pytest.raises(ToolFailed, match="at most 9 choices, not 10"):
        await ask(question="q", choices=[str(n) for n in range(10)])
    with pytest.raises(ToolFailed, match="no question"):
        await ask(question=" \n")
