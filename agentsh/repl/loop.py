"""The loop: a prompt that is always there, and turns one after the other; every exit leaves a whole terminal."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from agentsh.base.errors import AgentshError, LogError, UsageProblem
from agentsh.base.text import one_line
from agentsh.base.waiting import came_to_its_end
from agentsh.engine.session import Session
from agentsh.events.turn import Attachment, TextQueued, TurnEnd
from agentsh.repl import commands
from agentsh.repl.actions import Actions
from agentsh.repl.attach import attachments
from agentsh.repl.commands import OwnCommand, SlashContext
from agentsh.repl.images import Along, read
from agentsh.repl.prompt import TWICE_S, Prompt
from agentsh.repl.status import crowded, queue_rows, status_line
from agentsh.repl.terminal import ReplIO, restore

if TYPE_CHECKING:
    from agentsh.repl.plain import PlainPrompt

INTERRUPTED = 130
TICK_S = 0.1


async def run_repl(session: Session, io: ReplIO) -> int:
    """Talk until the user leaves; close the session; return the exit code."""
    repl = Repl(session, io)
    try:
        with repl.signals():
            await repl.run()
    finally:
        io.ask = io.pick = None
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            io.screen.close()
        restore(io)
        await session.close()
    return repl.code


class Said(NamedTuple):
    """What is worked on next. own: the command of the user's that was typed. cause: the text_queued event.

    images: that were put into the input. along: what is read already. reads: whether the files that it mentions are
    still to be read.
    """

    text: str
    own: OwnCommand | None = None
    cause: int | None = None
    images: Along = ()
    along: tuple[Attachment, ...] = ()
    reads: bool = True

    @property
    def typed(self) -> str:
        """As it can be typed again, to mean the same."""
        return self.text if self.own is not None else commands.as_message(self.text)


class Repl:
    """One run of the loop. code: what the process exits with."""

    def __init__(self, session: Session, io: ReplIO) -> None:
        self.code = 0
        self._session = session
        self._io = io
        actions = Actions(self._enter, self._steer, self._interrupt, self._recall, lambda: self._work is not None)
        self._prompt = self._made(actions)
        io.looks.changed = self._restyle
        self._work: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._interrupted_s = float("-inf")
        self._stopped_at: int | None = None
        self._overtaken: set[int] = set()  # what was sent before an interruption, and recorded behind it
        self._interrupted = 0
        self._readings: set[asyncio.Task[tuple[Attachment, ...]]] = set()
        self._in_order = asyncio.Lock()
        self._unqueued = 0
        self._unsent: list[str] = []
        self._began_s = 0.0

    def _made(self, actions: Actions) -> "Prompt | PlainPrompt":
        if self._io.plain is None:
            return Prompt(self._io, self._status, self._waiting, actions)
        from agentsh.repl.plain import PlainPrompt

        return PlainPrompt(self._io, self._io.plain, actions)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Take the signals of a terminal while the loop runs."""
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGINT: self._prompt.press_ctrl_c, signal.SIGTERM: self.leave, signal.SIGHUP: self.leave}
        if isinstance(
            self._prompt, Prompt
        ):  # the line mode leaves the terminal as it is: there is nothing to put right
            handlers |= {signal.SIGTSTP: self._prompt.stop, signal.SIGCONT: self._prompt.went_on}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    async def run(self) -> None:
        """Take messages until somebody leaves; what runs then is interrupted and recorded."""
        self._io.ask = self._prompt.ask
        self._io.pick = self._prompt.pick if self._io.menus else None
        draft = "".join(self._io.typed).rstrip("\n")
        self._io.typed.clear()
        ticking = asyncio.create_task(self._tick())
        first = asyncio.create_task(self._first(self._io.first_text))
        try:
            await self._prompt.run(draft)
        finally:
            first.cancel()
            self._prompt.cancel_pick()
            if self._work is not None:
                self._session.interrupt()
            while left := [t for t in (self._work, *self._tasks) if t is not None and not t.done()]:
                await asyncio.wait(left)
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
        if self._prompt.left_by_ctrl_c and time.monotonic() - self._interrupted_s < TWICE_S:
            self.code = INTERRUPTED

    def leave(self) -> None:
        """The process is asked to end, or its terminal is gone: stop what runs, and leave."""
        self.code = INTERRUPTED
        self._prompt.leave()

    async def _first(self, text: str | None) -> None:
        await self._prompt.ready()
        self._name()
        self._prompt.ask_background()
        self._io.behind()
        for n, remark in enumerate(self._io.remarks):
            self._prompt.say("alarm" if self._io.trouble and n == 0 else "notice", [remark])
        self._prompt.say("notice", crowded(self._session.state, self._session.budget_tokens))
        if text is not None:
            self._enter(text, typed=self._io.first_typed)

    def _enter(self, text: str, images: Along = (), *, typed: bool = True) -> None:
        if text:
            command = commands.find(text)
            if command is not None and commands.works(command[0]) and self._work is None:
                self._begin(None, self._slash(*command))
            elif command is not None:
                self._spawn(self._beside(*command))
            elif typed and text.strip() in ("!", "!!"):  # a slip of the keys is not worth a request
                self._prompt.say("notice", [f"  {text.strip()}COMMAND runs it in the workspace: there is no command"])
            else:
                self._send(Said(text, commands.own_command(text) if typed else None, images=images))
        elif self._work is None and self._session.state.queue:  # what waits since before is sent by Enter
            self._begin(None)

    def _send(self, said: Said) -> None:
        """Begin a turn with a message, or let it wait for the end of the one that runs."""
        if self._work is None and not self._unqueued:
            self._begin(said)
        else:
            self._spawn(self._wait(said, steer=False))

    def _steer(self, text: str, images: Along) -> None:
        own = commands.own_command(text)
        self._spawn(self._wait(Said(text, own, images=images), steer=own is None))

    def _interrupt(self) -> None:
        self._interrupted_s = time.monotonic()
        self._stopped_at = self._session.state.last_seq
        self._interrupted += 1
        for reading in self._readings:
            reading.cancel()
        self._session.interrupt()

    def _recall(self) -> bool:
        waiting = [*self._session.state.queue]
        if not waiting:
            return False
        self._spawn(self._take_back(waiting[-1:]))
        return True

    def _begin(self, said: Said | None, command: Coroutine[Any, Any, bool] | None = None) -> None:
        self._stopped_at = None
        self._overtaken.clear()
        self._began_s = time.monotonic()
        self._prompt.attention.watch()
        self._work = asyncio.create_task(self._turns(said, command))

    async def _turns(self, said: Said | None, command: Coroutine[Any, Any, bool] | None = None) -> None:
        """Run a command or work on a message, then on what was queued meanwhile, until nothing waits."""
        try:
            if command is not None and (not await command or self._stopped_at is not None):
                await self._take_back([*self._session.state.queue])
                return
            while (said := said or self._next()) is not None:
                began_s = time.monotonic()
                ended = await self._turn(said)
                self._name()
                self._prompt.attention.call("done", after_s=time.monotonic() - began_s)
                if ended in (None, "error"):
                    return
                if ended == "interrupted" or self._stopped_at is not None:  # also while it was tidying up
                    stopped_at, self._stopped_at = self._stopped_at, None
                    queue = [*self._session.state.queue]
                    if stopped_at is not None:
                        queue = [seq for seq in queue if seq <= stopped_at or seq in self._overtaken]
                    await self._take_back(queue)
                    if stopped_at is None:
                        return
                said = None  # what was sent after the interruption is meant to begin
        finally:
            self._work = None
            self._prompt.refresh()

    def _next(self) -> Said | None:
        waiting = self._session.state.queue.items()
        return next((self._queued(seq, fact) for seq, fact in waiting if seq not in self._overtaken), None)

    def _queued(self, seq: int, fact: TextQueued) -> Said:
        text = self._io.text(fact.text)
        own = commands.own_command(text) if fact.command else None
        return Said(text, own, seq, along=fact.attachments, reads=not fact.steer)

    async def _turn(self, said: Said) -> TurnEnd | None:
        """Work on a message, or run a command of the user's; return how it ended, None where it could not begin."""
        text, own, cause = said.text, said.own, said.cause
        try:
            if own is not None:
                whole = await self._session.run_command(own.command, joins=own.joins, cause=cause)
                return "done" if whole else "interrupted"
            along = await self._read(said)
            if along is None:
                await self._take_back([*self._session.state.queue])  # first, so that it stands behind this one
                if cause is None:
                    self._prompt.give_back(said.typed)
                return "interrupted"
            outcome = await self._session.submit(text, (*self._io.along, *along), cause=cause)
            self._io.along = ()
            return outcome.reason
        except AgentshError as error:
            if cause is None:  # what was queued is still there
                self._prompt.give_back(said.typed)
            elif isinstance(error, UsageProblem):  # it would fail again, in front of all that waits behind it
                await self._take_back([cause])
            self._fail(error)
            return None

    async def _read(self, said: Said) -> tuple[Attachment, ...] | None:
        """Return what goes along with a message; None where it was interrupted before all of it was read."""
        wanted = said.reads and said.own is None and "@" in said.text
        if not wanted and not said.images:
            return said.along

        async def reading() -> tuple[Attachment, ...]:
            files = await asyncio.to_thread(attachments, said.text, self._io.workspace) if wanted else ()
            return (*said.along, *await read(said.images), *files)

        work = asyncio.create_task(reading())
        self._readings.add(work)
        try:
            return work.result() if await came_to_its_end(work) else None
        finally:
            self._readings.discard(work)

    async def _wait(self, said: Said, *, steer: bool) -> None:
        before = self._interrupted
        self._unqueued += 1
        try:
            async with self._in_order:  # files of what waits are read when its turn comes
                along = await self._read(said._replace(reads=steer))
                if along is None or self._interrupted != before:
                    self._unsent.append(said.typed)
                else:
                    own = said.own is not None
                    seq = await self._session.queue(said.text, steer=steer, command=own, along=along)
                    if self._interrupted != before:
                        self._overtaken.add(seq)
                        if self._work is None or self._stopped_at is None:  # who gives back has done so already
                            await self._take_back([seq])
        except AgentshError as error:
            self._unsent.append(said.typed)
            self._fail(error)
        finally:
            self._unqueued -= 1
        if self._unsent and not self._unqueued:
            self._prompt.give_back("\n\n".join(self._unsent))
            self._unsent.clear()
        if self._work is None and self._session.state.queue:  # the turn ended in the meantime
            self._begin(None)
        self._prompt.refresh()

    async def _take_back(self, queued: list[int]) -> None:
        """Give queued texts back to the input, the newest last."""
        texts: list[str] = []
        along: list[Attachment] = []
        try:
            for seq in queued:
                fact = self._session.state.queue.get(seq)
                if fact is not None and await self._session.withdraw(seq):
                    texts.append(self._queued(seq, fact).typed)
                    along += fact.attachments
        except AgentshError as error:
            self._fail(error)
        if texts:  # one command alone is one again; what is behind it would be run with it
            text = texts[0] if len(texts) == 1 else commands.as_message("\n\n".join(texts))
            self._prompt.give_back(text, along)

    async def _beside(self, name: str, argument: str) -> None:
        """Run a command while a turn runs. What needs the session alone waits for what only tidies up behind one."""
        if commands.alone(name) and not commands.turn_runs(self._session) and self._work is not None:
            await asyncio.wait([self._work], timeout=commands.TIDYING_S)
        if commands.works(name) and self._work is None:
            self._begin(None, self._slash(name, argument))
        else:
            await self._slash(name, argument)

    async def _slash(self, name: str, argument: str) -> bool:
        """Return whether it came to its end: it did not fail, and was not interrupted."""
        try:
            outcome = await commands.run(name, argument, SlashContext(self._session, self._io))
        except AgentshError as error:
            self._fail(error)
            return False
        self._prompt.say("notice", outcome.rows)
        if outcome.page:
            self._prompt.show(outcome.page)
        if outcome.draft:
            self._prompt.give_back(outcome.draft)
        if outcome.send:
            self._send(Said(outcome.send))
        if outcome.onward is not None:
            self._io.onward = outcome.onward
        if outcome.leave or outcome.onward is not None:
            self._prompt.leave()
        return not outcome.interrupted

    def _fail(self, error: AgentshError) -> None:
        loud = "NOTHING IS BEING SAVED: " if isinstance(error, LogError) else ""
        self._prompt.say("alarm", [f"✗ {loud}{one_line(str(error), 500)}"])

    def _status(self) -> str:
        columns, private = self._io.display().get_size().columns, "private · " if self._io.private else ""
        elapsed_s = None if self._work is None else time.monotonic() - self._began_s
        budget = self._session.budget_tokens
        return private + status_line(self._session.state, self._io.sandbox, columns - len(private), budget, elapsed_s)

    def _waiting(self) -> list[str]:
        texts = [(self._io.text(fact.text), fact.steer) for fact in self._session.state.queue.values()]
        return queue_rows(texts, self._io.display().get_size().columns, working=self._work is not None)

    def _name(self) -> None:
        """Name the window after the session."""
        state = self._session.state
        self._prompt.attention.title(f"agentsh · {state.title or state.id}")

    def _restyle(self) -> None:
        looks = self._io.looks
        self._io.screen.use(colour=looks.colour, palette=looks.palette)
        self._prompt.restyle()

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tick(self) -> None:
        second = 0
        while True:
            await asyncio.sleep(TICK_S)
            if self._work is None:
                continue
            self._io.screen.tick()
            if second != (second := int(time.monotonic() - self._began_s)):
                self._prompt.refresh()  # the time in the status line
