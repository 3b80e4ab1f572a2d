"""What a session does beside its turns, and no turn waits for: checkpoints, and a look at what one has spared."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from agentsh.base.clock import Clock
from agentsh.base.errors import AgentshError
from agentsh.base.light import dataclass
from agentsh.context.state import SessionState
from agentsh.context.state_codec import encode_state, reducer
from agentsh.engine.journal import Journal
from agentsh.engine.open import Refolded, tell
from agentsh.events.session import Checkpoint
from agentsh.log.store import OpenLog

LOOK_AFTER_S = 1.0
"""Nothing else is to be slower for it: not the start, not a command that is over soon."""


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """When the folded state is saved: whichever comes first since the last time. keep: how many stay.

    Source: DESIGN section 4, "Checkpoints".
    """

    every_events: int = 1_000
    every_bytes: int = 8 << 20
    every_s: float = 300.0
    keep: int = 3

    def due(self, *, events: int, size: int, seconds: float) -> bool:
        """Tell whether so many events and bytes, and so much time, since the last checkpoint call for another."""
        if events <= 0:
            return False
        return events >= self.every_events or size >= self.every_bytes or seconds >= self.every_s


class Upkeep:
    """Of one open session. To be told when it was opened and when a turn has ended, and to be closed before the log.

    A checkpoint is looked for at the end of a turn, and once after an opening: the log of an older version, or one
    whose tail had to be read with all the rest, does not cost that again.
    """

    def __init__(self, journal: Journal, log: OpenLog, policy: CheckpointPolicy, clock: Clock) -> None:
        self._journal = journal
        self._log = log
        self._policy = policy
        self._clock = clock
        self._saved_seq = journal.state.last_seq
        self._saved_bytes = journal.written_bytes
        self._saved_s = clock.monotonic_s()
        self._saving: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def opened(self, folded: Refolded) -> None:
        """Begin with a session that was opened again; `turn_ended` is enough for a new one."""
        self._saved_seq -= folded.events
        self._saved_bytes -= folded.size
        self._looking = asyncio.create_task(self._look())
        await self.turn_ended()

    async def turn_ended(self) -> None:
        """Save the state, if it is time: how it is now is noted before this returns, the rest is done beside."""
        state = self._journal.state
        due = self._policy.due(
            events=state.last_seq - self._saved_seq,
            size=self._journal.written_bytes - self._saved_bytes,
            seconds=self._clock.monotonic_s() - self._saved_s,
        )
        if due and self._saving is None and state.turn is None:
            noted = asyncio.Event()
            self._saving = asyncio.create_task(self._save(noted))
            await noted.wait()

    async def close(self) -> None:
        """Wait for a checkpoint that is being written, and end what only reads."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])  # unlike awaiting the task, this cannot swallow our own cancellation
        if self._saving is not None:
            await self._saving

    async def _save(self, noted: asyncio.Event) -> None:
        upto = before = 0

        def begin(state: SessionState) -> Awaitable[str | None]:
            nonlocal upto, before
            upto, before = state.last_seq, self._journal.written_bytes
            try:
                return self._log.checkpoint(encode_state(state), reducer=reducer(), keep=self._policy.keep)
            finally:
                noted.set()

        try:
            name = await self._journal.between(begin)
            if name is not None:
                self._saved_seq, self._saved_bytes, self._saved_s = upto, before, self._clock.monotonic_s()
                with suppress(AgentshError):  # the journal has told that nothing is being saved
                    await self._journal.record(Checkpoint(file=name, upto_seq=upto))
        finally:
            noted.set()
            self._saving = None

    async def _look(self) -> None:
        await self._clock.sleep(LOOK_AFTER_S)
        with suppress(AgentshError):
            await tell(self._journal, await self._log.verify_skipped())
