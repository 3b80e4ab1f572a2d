"""A session that is open for writing: submit, queue, interrupt, change its settings, close."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agentsh.base.errors import LogError, UsageProblem
from agentsh.base.light import dataclass, field
from agentsh.base.waiting import came_to_its_end, to_the_end
from agentsh.context.repairs import unfinished
from agentsh.context.state import SessionState
from agentsh.engine.aside import Asides
from agentsh.engine.compactor import Compactor
from agentsh.engine.gate import Gate
from agentsh.engine.jobs import JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.open import Refolded
from agentsh.engine.rewinding import Moment, Outcome, Rewinder, What, WholeLog, moments
from agentsh.engine.step import ModelStep, StepSettings
from agentsh.engine.turn import Turn, TurnOutcome
from agentsh.engine.upkeep import Upkeep
from agentsh.engine.user_command import UserCommands
from agentsh.events.event import NewFact
from agentsh.events.session import Mode, ModeChanged, ModelChanged, Note, Renamed, Tagged
from agentsh.events.turn import Attachment, TextQueued, TextWithdrawn
from agentsh.events.user import SideAnswer
from agentsh.log.store import OpenLog
from agentsh.ports.hook import Hook, SessionMoment
from agentsh.ports.jobs import Job
from agentsh.ports.model import Model
from agentsh.ports.snapshots import NoSnapshots, Snapshots

Compacted = Literal["done", "unneeded", "interrupted"]
"""What a compaction came to. unneeded: the context would not become shorter by a tenth."""


class Chosen(NamedTuple):
    """A model to go on with: what the log records of it, and how to reach and price it."""

    name: str
    request: dict[str, Any]
    model: Model
    settings: StepSettings


async def _nothing(state: SessionState) -> Sequence[NewFact]:
    return ()


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of; put together by the composition root. choose: a model by name, for `set_model`.

    upkeep: None where nothing is kept beside the log. look: what has changed around the session, to be recorded
    before a message. leave: called last of all, when the session is closed: nothing of it may go on. hooks: are told
    what happens. snapshots: of the workspace. whole: the log; None for a session that cannot be rewound. stop: ends
    what goes on in the background; blocks. commands: of the user's own. asides: questions aside. jobs: in the
    background, killed first of all.
    """

    log: OpenLog
    journal: Journal
    turn: Turn
    step: ModelStep
    compactor: Compactor
    gate: Gate
    model: Model
    choose: Callable[[str], Chosen]
    upkeep: Upkeep | None = None
    look: Callable[[SessionState], Awaitable[Sequence[NewFact]]] = _nothing
    leave: Callable[[], Awaitable[None]] | None = None
    hooks: Sequence[Hook] = ()
    snapshots: Snapshots = field(default_factory=NoSnapshots)
    whole: WholeLog | None = None
    stop: Callable[[], None] = field(default=lambda: None)
    commands: UserCommands | None = None
    asides: Asides | None = None
    jobs: JobKeeper | None = None


class Session:
    """One session of this process. Use it as an async context manager, or close it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._journal = parts.journal
        self._model = parts.model
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._work: asyncio.Task[Any] | None = None
        self._questions: set[asyncio.Task[SideAnswer]] = set()

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def opened(self, folded: Refolded) -> None:
        """Begin what goes on beside the turns of a session that was opened again."""
        if self._parts.upkeep is not None:
            await self._parts.upkeep.opened(folded)

    @property
    def state(self) -> SessionState:
        """The folded state; read only."""
        return self._journal.state

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return not self._idle.is_set()

    async def idle(self) -> None:
        """Return once nothing runs."""
        await self._idle.wait()

    @property
    def budget_tokens(self) -> int:
        """How many tokens the next request may have."""
        return self._parts.step.settings.budget_tokens

    @property
    def unasked(self) -> int:
        """How many calls were denied because nobody could be asked."""
        return self._parts.gate.unasked

    async def submit(
        self, text: str, attachments: tuple[Attachment, ...] = (), *, cause: int | None = None
    ) -> TurnOutcome:
        """Run one turn to its end. Cancelling the caller interrupts the turn.

        Raises:
            UsageProblem: a turn is running; `queue` the text instead.
            LogError: the log cannot be written.
        """
        if self.busy:
            raise UsageProblem("a turn is running")
        self._idle.clear()
        try:
            with self._parts.turn.begun():
                await self._close_open()
                await self._journal.nearly_full()
                await self._look()
                outcome = await self._parts.turn.run(text, attachments, cause)
            await self.announce("turn_finished", {"reason": outcome.reason, "steps": outcome.steps})
            return outcome
        finally:
            self._idle.set()
            await self._parts.snapshots.turn_ended()
            if self._parts.upkeep is not None:
                await self._parts.upkeep.turn_ended()
            await self._parts.log.turn_ended()

    async def _close_open(self) -> None:
        """Write what was held while the disk was full; close what could not be closed then."""
        await self._journal.settled()
        if self.state.turn is not None or self.state.command is not None:
            await self._journal.record_from(unfinished)

    async def announce(self, moment: SessionMoment, facts: Mapping[str, Any]) -> None:
        """Tell the hooks what happened; what they have to say is noted in the log."""
        for hook in self._parts.hooks:
            try:
                said = await hook.on_session(moment, facts)
            except Exception as error:  # noqa: BLE001 - a broken hook only says so
                said = f"the hook failed: {error}"
            if said:
                await self._journal.record(Note(text=f"hook {hook.name}: {said}"))

    async def _look(self) -> None:
        """Record what changed around the session, for the message that comes next."""
        try:
            await self._journal.record_all(await self._parts.look(self.state))
        except asyncio.CancelledError:
            self._parts.turn.interrupt()  # the message is recorded all the same, and that it was interrupted

    async def queue(
        self, text: str, *, steer: bool, command: bool = False, along: tuple[Attachment, ...] = ()
    ) -> int:
        """Keep a text that was typed while a turn runs; return its seq. steer, command, along: see `TextQueued`."""
        more: dict[str, Any] = {name: v for name, v in (("command", command), ("attachments", along)) if v}
        return (await self._journal.record(TextQueued(text=text, steer=steer, **more), durable=True)).seq

    async def withdraw(self, queued_seq: int) -> bool:
        """Take a queued text back; return False where it has joined a turn already."""

        def take_back(state: SessionState) -> list[NewFact]:
            return [NewFact(TextWithdrawn(queued=queued_seq), queued_seq)] if queued_seq in state.queue else []

        return bool(await self._journal.record_from(take_back))

    async def compact(self, instructions: str = "") -> Compacted:
        """Replace older turns by a summary in the context. instructions: what the summary should take care of.

        Raises:
            UsageProblem: a turn is running.
            LogError: the log cannot be written.
        """
        if self.busy:
            raise UsageProblem("the context can be compacted when the turn has ended")
        before = self.state.compaction

        async def work() -> None:
            nonlocal before
            await self._close_open()
            before = self.state.compaction
            await self._parts.compactor.compact(instructions)

        self._idle.clear()
        try:
            whole = await self._stoppable(work())
            await self._journal.settled()  # an interruption does not take back what is on its way into the log
            if self.state.compaction is not before:
                return "done"
            return "unneeded" if whole else "interrupted"
        finally:
            self._idle.set()

    async def undo_compaction(self) -> bool:
        """Show the model again what the newest compaction replaced; return whether there was one to take back.

        Raises:
            UsageProblem: a turn is running.
        """
        if self.busy:
            raise UsageProblem("a compaction can be undone when the turn has ended")
        return await self._parts.compactor.undo() is not None

    async def run_command(self, command: str, *, joins: bool, cause: int | None = None) -> bool:
        """Run a command of the user's in the workspace; return whether it came to its end, uninterrupted.

        joins: the model is told of it. cause: the text_queued event, where it had waited.

        Raises:
            UsageProblem: a turn is running, or there is no workspace.
            LogError: the log cannot be written.
        """
        if self.busy:
            raise UsageProblem("a turn is running; the command can be run when it has ended")
        commands = self._parts.commands
        if commands is None:
            raise UsageProblem("there is no workspace to run it in")

        async def work() -> None:
            await self._close_open()
            await commands.run(command, joins=joins, cause=cause)

        self._idle.clear()
        try:
            return await self._stoppable(work())
        finally:
            self._idle.set()

    async def _stoppable(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the whole of something that is no turn; return whether it came to its end, uninterrupted."""
        self._work = asyncio.create_task(work)
        try:
            return await came_to_its_end(self._work)
        finally:
            self._work = None

    async def ask_aside(self, question: str) -> SideAnswer | None:
        """Ask something that stays out of the context, beside whatever runs; None where it was interrupted.

        Raises:
            UsageProblem: this session has no model for that.
            LogError: the log cannot be written.
        """
        if self._parts.asides is None:
            hint = "send it as a message, or ask in another session"
            raise UsageProblem("this session has no model for questions aside", hint=hint)
        asking = asyncio.create_task(self._parts.asides.ask(question))
        self._questions.add(asking)
        asking.add_done_callback(self._questions.discard)
        return asking.result() if await came_to_its_end(asking) else None

    def interrupt(self) -> bool:
        """Stop the running turn, command or compaction, or else the questions aside; return whether one of the first.

        They return once all is recorded. Anything else that runs, a rewind for one, comes to its end.
        """
        if not self.busy:
            self.interrupt_asides()
        return self._parts.turn.interrupt() if self._work is None else self._work.cancel()

    def interrupt_asides(self) -> None:
        """Stop the questions aside."""
        for asking in self._questions:
            asking.cancel()

    async def set_mode(self, mode: Mode) -> None:
        """Change the approval mode."""
        if mode != self.state.mode:
            await self._journal.record(ModeChanged(mode=mode), durable=True)

    async def set_model(self, name: str) -> None:
        """Send the next requests to another model: a profile of the configuration, or a model's name.

        Raises:
            UsageProblem: a turn is running, there is no such profile, or the model has no room for the session.
        """
        if self.busy:
            raise UsageProblem("the model can be changed when the turn has ended")
        chosen = self._parts.choose(name)
        await self.record_model(chosen.name, chosen.request)
        await self._parts.step.close()
        self._parts.step.use(chosen.model, chosen.settings)
        old, self._model = self._model, chosen.model
        await old.close()

    async def record_model(self, model: str, request: dict[str, Any]) -> None:
        """Record which model and request options hold from here on, where they are others than before."""
        if model != self.state.model or request != self.state.request:
            await self._journal.record(ModelChanged(model=model, request=request), durable=True, happened=True)

    def list_jobs(self) -> list[Job]:
        """Return the background jobs of the session: all that run, and the newest of those that ended."""
        return [] if self._parts.jobs is None else self._parts.jobs.list_jobs()

    async def kill_job(self, job: str) -> Job:
        """End a background job.

        Raises:
            ToolFailed: there is no such job.
        """
        if self._parts.jobs is None:
            raise UsageProblem("this session has no jobs")
        return await self._parts.jobs.kill(job)

    async def moments(self) -> list[Moment]:
        """Return the moments that a rewind may go back to: before each turn, with what it did to files."""
        whole = self._parts.whole
        return [] if whole is None else await moments(await asyncio.to_thread(whole.moments), self._parts.snapshots)

    async def rewind(self, to_seq: int, what: What) -> Outcome:
        """Go back to the moment after event `to_seq`; see `Rewinder.rewind`."""
        return await self._alone(lambda rewinder: rewinder.rewind(to_seq, what))

    async def undo_rewind(self, rewound: int | None = None) -> Outcome:
        """Take a rewind back; see `Rewinder.undo`."""
        return await self._alone(lambda rewinder: rewinder.undo(rewound))

    async def _alone(self, work: Callable[[Rewinder], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Do something that nothing may run beside.

        Raises:
            UsageProblem: a turn is running, or there is no log to go back in.
        """
        if self.busy:
            raise UsageProblem("a turn is running; stop it first")
        if self._parts.whole is None:
            raise UsageProblem("this session cannot be rewound")
        self._idle.clear()
        try:
            return await to_the_end(
                asyncio.create_task(work(Rewinder(self._journal, self._parts.snapshots, self._parts.whole)))
            )
        finally:
            self._idle.set()

    async def rename(self, title: str) -> None:
        """Give the session a title."""
        await self._journal.record(Renamed(title=title, by="user"), durable=True)

    async def tag(self, tags: tuple[str, ...]) -> None:
        """Set the whole set of tags."""
        if tags != self.state.tags:
            await self._journal.record(Tagged(tags=tags), durable=True)

    async def close(self) -> None:
        """Interrupt what runs, sync, and give the lease back. Idempotent."""
        self.interrupt()
        self.interrupt_asides()
        await self._idle.wait()
        if self._questions:
            await asyncio.wait(self._questions)
        if self._parts.jobs is not None:
            await self._parts.jobs.close()
        if not self._closed:
            self._closed = True
            with contextlib.suppress(LogError):  # what they say is lost with the log that cannot be written
                await self.announce("session_closed", {"turns": self.state.totals.turns})
        async with contextlib.AsyncExitStack() as stack:  # each is closed, whatever the others say
            stack.push_async_callback(self._parts.log.close)
            if self._parts.leave is not None:
                stack.push_async_callback(self._parts.leave)
            stack.push_async_callback(self._model.close)
            stack.push_async_callback(self._parts.snapshots.close)
            stack.push_async_callback(asyncio.to_thread, self._parts.stop)
            if self._parts.upkeep is not None:
                stack.push_async_callback(self._parts.upkeep.close)
            stack.push_async_callback(self._parts.step.close)
            await self._journal.settled()
