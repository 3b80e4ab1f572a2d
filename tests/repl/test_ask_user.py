"""A question of the model's on the prompt: choices by number, a typed answer, none; and the tool around it."""

import asyncio
import json
from itertools import count
from typing import cast

import pytest
from prompt_toolkit.utils import get_cwidth

from agentsh.ports.asker import UserQuestion
from agentsh.ports.services import Services
from agentsh.ports.tool import ToolContext
from agentsh.ports.workspace import Workspace
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.ask_user import AskedUser, ModelQuestion
from agentsh.repl.asked import ARM_S
from agentsh.tools.ask_user import NO_ANSWER, NOBODY, TOOL
from tests.engine.rig import NoWorkspace
from tests.repl.test_asked import asked
from tests.repl.test_loop import until

CHOICES = UserQuestion("Which port?", ("8000", "8080"))


@pytest.mark.parametrize(
    ("question", "keys", "answer"),
    [
        (CHOICES, "1", "8000"),
        (CHOICES, "2", "8080"),
        (CHOICES, "9x02", "8080"),
        (CHOICES, "eneither: 9000\r", "neither: 9000"),
        (CHOICES, "n", None),
        (CHOICES, "e\r", None),
        (UserQuestion("Why?"), "ebecause it is\r", "because it is"),
        (UserQuestion("Why?"), "1\rso\r", "so"),
    ],
)
async def test_answers(question: UserQuestion, keys: str, answer: str | None) -> None:
    now_s = 1.0
    with asked(lambda: now_s) as (source, io, prompt):
        running = asyncio.create_task(prompt.run("a draft"))
        await prompt.ready()
        asking = asyncio.create_task(TerminalApprover(io).ask_user(question))
        await asyncio.sleep(0)
        source.send_text(" 2 more")  # typed before the question was seen: it is no answer
        await until(lambda: prompt.asked and "".join(prompt.asked.typed) == " 2 more")
        now_s += ARM_S + 0.1
        source.send_text(keys)
        assert await asyncio.wait_for(asking, 30) == answer
        await until(lambda: prompt.buffer.text == "a draft 2 more")
        prompt.leave()
        await asyncio.wait_for(running, 30)


@pytest.mark.parametrize("columns", [40, 80, 200])
async def test_every_row_fits_and_nothing_steers_the_terminal(columns: int) -> None:
    choices = ("short", "修" * 60, "with \x1b[2J controls", "x" * 300)
    question = ModelQuestion.of(UserQuestion("Is it \x1b]0;evil\x07 so?\n" + "a long story " * 60, choices))
    rows = AskedUser(question, lambda: 0.0).rows(columns, 14)
    lines = ["".join(part[1] for part in row) for row in rows]
    assert all(get_cwidth(line) <= columns for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[0].startswith("? Is it  so?")
    assert any(line.startswith(" 4 xxx") for line in lines)
    assert " ".join(" ".join(lines[-2:]).split()).endswith("1-4 choose e type an answer n no answer")


async def said(asker: TerminalApprover | None, **arguments: object) -> str:
    context = ToolContext(cast(Workspace, NoWorkspace()), "call_1", services=Services(asker=asker))
    return (await TOOL.run(context, TOOL.parse(json.dumps(arguments)))).for_model


async def test_the_tool() -> None:
    assert await said(None, question="Which?") == NOBODY
    clock = count()
    with asked(lambda: next(clock)) as (source, io, prompt):
        running = asyncio.create_task(prompt.run())
        await prompt.ready()
        asking = asyncio.create_task(said(TerminalApprover(io), question="Which?", choices=["this", "that"]))
        await until(lambda: prompt.asked)
        await asyncio.sleep(0.1)
        source.send_text("2")
        assert await asyncio.wait_for(asking, 30) == "The user answers: that"
        prompt.leave()
        await asyncio.wait_for(running, 30)


async def test_nobody_sits_there_any_more() -> None:
    with asked() as (_, io, _prompt):
        io.ask = None
        assert await said(TerminalApprover(io), question="Which?") == NO_ANSWER
