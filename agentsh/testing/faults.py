"""A log that fails when a test says so."""

from collections.abc import Awaitable, Callable, Sequence

from agentsh.base.errors import LogWriteFailed
from agentsh.log.record import Draft, Record
from agentsh.log.store import Damage, OpenLog


class FailingLog:
    """Passes everything on to another log.

    full: which appends find no room. free_bytes: what `nearly_full` says. before_sync: called at each wait.
    """

    def __init__(self, log: OpenLog) -> None:
        self._log = log
        self.full: Callable[[Sequence[Draft]], bool] = lambda drafts: False
        self.free_bytes: int | None = None
        self.before_sync: Callable[[], None] = lambda: None

    @property
    def session(self) -> str:
        """The session's id."""
        return self._log.session

    @property
    def last_seq(self) -> int:
        """Seq of the last record."""
        return self._log.last_seq

    @property
    def durable_seq(self) -> int:
        """Highest durable seq."""
        return self._log.durable_seq

    async def append(self, drafts: Sequence[Draft], *, awaited: bool = False) -> list[Record]:
        """Append, or fail as a full disk would."""
        if self.full(drafts):
            raise LogWriteFailed("no space left on the device")
        return await self._log.append(drafts, awaited=awaited)

    async def wait_durable(self, seq: int) -> None:
        """Wait."""
        self.before_sync()
        await self._log.wait_durable(seq)

    def checkpoint(self, state: bytes, *, reducer: str, keep: int) -> Awaitable[str | None]:
        """Pass it on."""
        return self._log.checkpoint(state, reducer=reducer, keep=keep)

    async def verify_skipped(self) -> Sequence[Damage]:
        """Pass it on."""
        return await self._log.verify_skipped()

    async def turn_ended(self) -> None:
        """Pass it on."""
        await self._log.turn_ended()

    async def nearly_full(self) -> int | None:
        """Return what the test says."""
        return self.free_bytes

    async def close(self) -> None:
        """Close."""
        await self._log.close()
