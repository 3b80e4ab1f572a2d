"""The clock as a value, so that tests own time."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for people, monotonic time for durations, and waiting."""

    def now(self) -> datetime:
        """Return the wall clock in UTC. It may jump; nothing is ordered by it."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Cancellation ends the wait at once."""
        ...


def timestamp(now: datetime) -> str:
    """Return `now` as the log writes it: UTC, microseconds, `Z`."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """Return `time.monotonic()`."""
        import time

        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        import asyncio

        await asyncio.sleep(seconds)
