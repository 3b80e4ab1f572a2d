"""A turn: from a user message to the end of the agent's work on it."""

import asyncio
from dataclasses import dataclass

from agentsh.base.clock import Clock
from agentsh.base.errors import AgentshError, LogError
from agentsh.base.text import one_line
from agentsh.context.repairs import close_calls, close_reply
from agentsh.engine.journal import Journal
from agentsh.engine.step import ModelStep
from agentsh.engine.tool_runner import ToolRunner
from agentsh.events.event import NewFact
from agentsh.events.session import Renamed
from agentsh.events.turn import Attachment, TurnEnd, TurnFinished, UserMessage

TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Limits:
    """When a turn stops by itself. max_steps: model calls. max_cost_usd: None for no limit."""

    max_steps: int = 200
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended. error: where reason is `error`."""

    reason: TurnEnd
    steps: int
    error: AgentshError | None = None


class Turn:
    """Runs turns, one at a time."""

    def __init__(self, journal: Journal, step: ModelStep, tools: ToolRunner, limits: Limits, clock: Clock) -> None:
        self._journal = journal
        self._step = step
        self._tools = tools
        self._limits = limits
        self._clock = clock
        self._work: asyncio.Task[TurnEnd] | None = None
        self._stop = False

    def interrupt(self) -> None:
        """End the running turn; `run` returns once that is recorded."""
        self._stop = True
        if self._work is not None:
            self._work.cancel()

    async def run(self, text: str, attachments: tuple[Attachment, ...] = (), cause: int | None = None) -> TurnOutcome:
        """Work on one user message until the model is done, a limit is met, or it is interrupted.

        Cancelling the caller counts as an interruption: it is recorded, and the outcome says so.

        Raises:
            LogError: the log cannot be written; the turn stays open and is closed by the next opening.
        """
        began_s = self._clock.monotonic_s()
        self._stop = False
        error: AgentshError | None = None
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
        except LogError:
            raise
        except AgentshError as failed:
            reason, error = "error", failed
        finally:
            self._work = None
        return await asyncio.shield(asyncio.ensure_future(self._finish(reason, error, began_s)))

    async def _title(self, text: str) -> None:
        if self._journal.state.title is None and text.strip():
            await self._journal.record(Renamed(title=one_line(text, TITLE_CHARS), by="prompt"))

    async def _steps(self) -> TurnEnd:
        """Return why the model's work ended."""
        turn = self._journal.state.turn
        assert turn is not None
        while True:
            if turn.steps >= self._limits.max_steps:
                return "max_steps"
            limit = self._limits.max_cost_usd
            if limit is not None and (turn.cost_usd or 0) >= limit:
                return "max_cost"
            calls = await self._step.run()
            await self._tools.run(calls)
            steered = await self._join_steering()
            if not calls and not steered:
                return "done"

    async def _join_steering(self) -> bool:
        """Turn what the user typed meanwhile, to steer, into messages of this turn."""
        waiting = [(seq, fact) for seq, fact in self._journal.state.queue.items() if fact.steer]
        for seq, fact in waiting:
            await self._journal.record(UserMessage(text=fact.text, attachments=()), cause=seq)
        return bool(waiting)

    async def _finish(self, reason: TurnEnd, error: AgentshError | None, began_s: float) -> TurnOutcome:
        await self._journal.settled()
        state = self._journal.state
        turn = state.turn
        if turn is None:  # the message itself could not be written
            return TurnOutcome(reason, 0, error)
        await self._journal.record_all(close_reply(state, finish="interrupted"))
        await self._journal.record_all(close_calls(state, interrupted=True))
        finished = TurnFinished(
            reason=reason,
            steps=turn.steps,
            usage=turn.usage,
            cost_usd=turn.cost_usd,
            duration_ms=int((self._clock.monotonic_s() - began_s) * 1000),
            **({"error": one_line(str(error), 500)} if error else {}),
        )
        await self._journal.record_all([NewFact(finished, turn.user_seq)], durable=True)
        return TurnOutcome(reason, turn.steps, error)
