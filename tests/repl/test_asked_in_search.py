"""A question that comes while the history is searched."""

import asyncio

from agentsh.ports.approver import Answer
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.asked import ARM_S
from tests.repl.test_loop import QUESTION, asked, until


async def test_a_question_ends_a_search_of_the_history() -> None:
    now_s = 1.0
    with asked(lambda: now_s) as (source, io, prompt):
        running = asyncio.create_task(prompt.run("a draft"))
        await prompt.ready()
        source.send_text("\x12so\x1a")
        await until(lambda: prompt._session.app.layout.current_buffer is not prompt.buffer)
        await until(lambda: (now := prompt._session.app.layout.current_buffer) and now.text == "so")
        asking = asyncio.create_task(TerminalApprover(io).ask(QUESTION))
        await until(lambda: prompt.asked)
        now_s += ARM_S + 0.1
        source.send_text("enot now\r")
        assert await asyncio.wait_for(asking, 30) == Answer("no", "not now")
        await until(lambda: prompt.buffer.text == "a draft")
        assert prompt._session.app.layout.current_buffer is prompt.buffer
        prompt.leave()
        await asyncio.wait_for(running, 30)
