"""The loop: prompt, turn, prompt; what a signal means when; and a terminal that is whole again at every exit."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator

from agentsh.base.errors import AgentshError, LogError
from agentsh.base.text import one_line
from agentsh.engine.session import Session
from agentsh.repl import commands
from agentsh.repl.commands import SlashContext
from agentsh.repl.prompt import TWICE_S, Prompt
from agentsh.repl.status import status_line
from agentsh.repl.terminal import ReplIO, quiet, restore

INTERRUPTED = 130
TICK_S = 0.1

Notice = list[tuple[str, str]]


async def run_repl(session: Session, io: ReplIO) -> int:
    """Talk until the user leaves; close the session; return the exit code."""
    repl = Repl(session, io)
    try:
        with repl.signals():
            await repl.run()
    finally:
        io.interrupt = None
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            io.screen.close()
        restore(io)
        await session.close()
    return repl.code


class Repl:
    """One run of the loop. code: what the process exits with."""

    def __init__(self, session: Session, io: ReplIO) -> None:
        self.code = 0
        self._session = session
        self._io = io
        self._prompt = Prompt(io, lambda: status_line(session.state, io.sandbox, io.display().get_size().columns))
        self._notice: Notice = []
        self._draft = ""
        self._leaving = False
        self._interrupted_s = float("-inf")

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Take the signals of a terminal while the loop runs."""
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGINT: self.interrupt, signal.SIGTERM: self.leave, signal.SIGHUP: self.leave}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    async def run(self) -> None:
        """Take messages until somebody leaves."""
        self._io.interrupt = self.interrupt
        text = self._io.first_text
        while not self._leaving:
            if text is None:
                text = await self._ask()
                if text is None:
                    self.code = self.code or (INTERRUPTED if self._just_interrupted() else 0)
                    return
            command = commands.find(text)
            if command is None:
                await self._turn(text)
            else:
                await self._slash(*command)
            text = None

    def interrupt(self) -> None:
        """Ctrl-C: clear the line, or stop the turn; a second one soon after leaves."""
        if self._prompt.ctrl_c():
            return
        if self._just_interrupted():
            self._leaving, self.code = True, INTERRUPTED
        self._interrupted_s = time.monotonic()
        self._prompt.after_ctrl_c(self._interrupted_s)
        self._session.interrupt()

    def leave(self) -> None:
        """The process is asked to end, or its terminal is gone: stop what runs, and leave."""
        self._leaving, self.code = True, INTERRUPTED
        self._session.interrupt()
        self._prompt.leave()

    async def _ask(self) -> str | None:
        notice, self._notice = self._notice, []
        draft = self._draft + "".join(self._io.typed).rstrip("\n")
        self._draft = ""
        self._io.typed.clear()
        self._io.screen.suspend()
        try:
            return await self._prompt.ask(notice, draft)
        finally:
            if not self._leaving:
                self._io.screen.resume()

    async def _turn(self, text: str) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            with quiet(self._io):
                await self._session.submit(text)
        except LogError as error:
            self._draft = text
            self._alarm("NOTHING IS BEING SAVED: " + _line(error))
        except AgentshError as error:
            self._draft = text
            self._alarm(_line(error))
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking

    async def _slash(self, name: str, argument: str) -> None:
        try:
            outcome = await commands.run(name, argument, SlashContext(self._session, self._io))
        except LogError as error:
            self._alarm("NOTHING IS BEING SAVED: " + _line(error))
        except AgentshError as error:
            self._alarm(_line(error))
        else:
            self._notice.extend(("notice", row) for row in outcome.rows)
            self._leaving = self._leaving or outcome.leave

    def _just_interrupted(self) -> bool:
        return time.monotonic() - self._interrupted_s < TWICE_S

    def _alarm(self, text: str) -> None:
        self._notice.append(("alarm", f"✗ {text}"))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._io.screen.tick()


def _line(error: AgentshError) -> str:
    return one_line(str(error), 500)
