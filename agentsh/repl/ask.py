"""Asking the user for a yes, through the prompt that is there."""

import asyncio

from agentsh.ports.approver import Answer, Question
from agentsh.repl.terminal import ReplIO


class TerminalApprover:
    """Asks where the input is; the question goes when it is answered, and the fact tells what was said."""

    def __init__(self, io: ReplIO) -> None:
        self._io = io
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Answer:
        """Return the answer of one key. An interruption of the turn withdraws the question."""
        async with self._turn:
            if self._io.ask is None:  # nobody sits there any more
                return Answer("no")
            return await self._io.ask(question)
