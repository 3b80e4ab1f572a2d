"""A turn: from a user message to the end of the agent's work on it."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from agentsh.base.clock import Clock
from agentsh.base.errors import AgentshError, LogError, SessionHeld
from agentsh.base.text import one_line
from agentsh.base.typed import some
from agentsh.base.waiting import to_the_end
from agentsh.context.repairs import close_calls, close_reply
from agentsh.context.state import SessionState
from agentsh.engine.compactor import Compactor
from agentsh.engine.journal import Journal
from agentsh.engine.step import ModelStep
from agentsh.engine.tool_runner import ToolRunner
from agentsh.events.event import NewFact
from agentsh.events.session import Renamed
from agentsh.events.turn import Attachment, TurnEnd, TurnFinished, UserMessage

TITLE_CHARS = 60


class Limits(NamedTuple):
    """When a turn stops by itself. max_steps: model calls. max_cost_usd: None for no limit."""

    max_steps: int = 200
    max_cost_usd: float | None = None


class TurnOutcome(NamedTuple):
    """How a turn ended. error: where reason is `error`."""

    reason: TurnEnd
    steps: int
    error: AgentshError | None = None


class Turn:
    """Runs turns, one at a time."""

    def __init__(
        self,
        journal: Journal,
        step: ModelStep,
        compactor: Compactor,
        tools: ToolRunner,
        limits: Limits,
        clock: Clock,
        quiet: asyncio.Lock | None = None,
    ) -> None:
        """Take the parts. quiet: held while a reply comes; what it keeps waiting must not be recorded in between."""
        self._journal = journal
        self._step = step
        self._compactor = compactor
        self._tools = tools
        self._limits = limits
        self._clock = clock
        self._quiet = quiet or asyncio.Lock()
        self._work: asyncio.Task[TurnEnd] | None = None
        self._begun = self._stop = False

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Let interruptions count for the turn that is to run within; one that comes at another time is no turn's."""
        self._begun, self._stop = True, False
        try:
            yield
        finally:
            self._begun = False

    def interrupt(self) -> bool:
        """End the turn that has begun, if one has, and return whether; `run` returns once that is recorded."""
        if self._begun:
            self._stop = True
            if self._work is not None:
                self._work.cancel()
        return self._begun

    async def run(self, text: str, attachments: tuple[Attachment, ...] = (), cause: int | None = None) -> TurnOutcome:
        """Work on one user message until the model is done, a limit is met, or it is interrupted.

        Cancelling the caller counts as an interruption: it is recorded, and the outcome says so.

        Raises:
            LogError, SessionHeld: the log cannot be written; the turn stays open until it can.
            Exception: a bug of ours or of an adapter; the turn is closed and recorded first.
        """
        began_s = self._clock.monotonic_s()
        error: Exception | None = None
        reason: TurnEnd
        try:
            await self._journal.record(UserMessage(text=text, attachments=attachments), cause=cause)
            await self._title(text)
            # A task of its own, so that an interruption ends the work and not this recording of it.
            self._work = asyncio.create_task(self._steps())
            if self._stop:
                self._work.cancel()
            reason = await self._work
        except asyncio.CancelledError:
            reason = "interrupted"
        except (LogError, SessionHeld):
            raise
        except Exception as failed:  # noqa: BLE001 - recorded as the turn's end, then raised where it is no answer
            reason, error = "error", failed
        finally:
            self._work = None
        # Nothing may cut this short: the lease is given back after it.
        return await self._closed(reason, error, began_s)

    async def _closed(self, reason: TurnEnd, error: Exception | None, began_s: float) -> TurnOutcome:
        finish = asyncio.create_task(self._finish(reason, error, began_s))
        with contextlib.suppress(asyncio.CancelledError):
            await to_the_end(finish)
        if error is not None and not isinstance(error, AgentshError):
            raise error
        return finish.result()

    async def _title(self, text: str) -> None:
        if self._journal.state.title is None and text.strip():
            title = one_line(self._journal.secrets.clean(text), TITLE_CHARS)  # first cleaned, then cut
            await self._journal.record(Renamed(title=title, by="prompt"))

    async def _steps(self) -> TurnEnd:
        """Return why the model's work ended."""
        turn = self._journal.state.turn
        assert turn is not None
        while True:
            if self._stop:  # something below may have swallowed the cancellation
                return "interrupted"
            if turn.steps >= self._limits.max_steps:
                return "max_steps"
            limit = self._limits.max_cost_usd
            if limit is not None and (turn.cost_usd or 0) >= limit:
                return "max_cost"
            await self._compactor.make_room()
            async with self._quiet:
                calls = await self._step.run()
            await self._tools.run(calls)
            steered = await self._journal.record_from(_steering)
            if not calls and not steered:
                return "done"

    async def _finish(self, reason: TurnEnd, error: Exception | None, began_s: float) -> TurnOutcome:
        await self._journal.settled()
        state = self._journal.state
        turn = state.turn
        if turn is None:  # cancelled before the message could be written
            return TurnOutcome(reason, 0, error if isinstance(error, AgentshError) else None)
        interrupted = reason == "interrupted"
        closing = close_reply(state, finish="interrupted" if interrupted else "cut")
        closing += close_calls(state, interrupted=interrupted)
        finished = TurnFinished(
            reason=reason,
            steps=turn.steps,
            usage=turn.usage,
            cost_usd=turn.cost_usd,
            duration_ms=int((self._clock.monotonic_s() - began_s) * 1000),
            **some(error=one_line(str(error), 500) if error else None),
        )
        await self._journal.record_all([*closing, NewFact(finished, turn.user_seq)], durable=True, happened=True)
        return TurnOutcome(reason, turn.steps, error if isinstance(error, AgentshError) else None)


def _steering(state: SessionState) -> list[NewFact]:
    """What the user typed meanwhile, to steer, as messages of this turn."""
    waiting = [(seq, fact) for seq, fact in state.queue.items() if fact.steer]
    return [NewFact(UserMessage(text=fact.text, attachments=fact.attachments), seq) for seq, fact in waiting]
