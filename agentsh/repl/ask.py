"""Asking the user for a yes, or for an answer, through the prompt that is there."""

import asyncio

from agentsh.ports.approver import Answer, Question
from agentsh.ports.asker import UserQuestion
from agentsh.repl.ask_user import ModelQuestion
from agentsh.repl.terminal import ReplIO


class TerminalApprover:
    """Asks where the input is; the question goes when it is answered, and the fact tells what was said.

    Implements `ports.approver.Approver` and `ports.asker.Asker`: one question at a time.
    """

    def __init__(self, io: ReplIO) -> None:
        self._io = io
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Answer:
        """Return the answer of one key. An interruption of the turn withdraws the question."""
        async with self._turn:
            if self._io.ask is None:  # nobody sits there any more
                return Answer("no")
            return await self._io.ask(question)

    async def ask_user(self, question: UserQuestion) -> str | None:
        """Return what the user chose or typed; None where they did not want to answer."""
        answer = await self.ask(ModelQuestion.of(question))
        return answer.reason if answer.verdict == "yes" else None
