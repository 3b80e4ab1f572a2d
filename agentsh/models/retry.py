"""Sends a request again when that can help: few times, not too soon, and never once text was shown."""

import contextlib
from collections.abc import AsyncGenerator, Callable

from agentsh.base.clock import Clock, SystemClock
from agentsh.base.errors import ModelError, ModelUnavailable, StreamGarbled
from agentsh.base.text import one_line
from agentsh.events.signals import Retrying, TextDelta
from agentsh.ports.model import Model, Prompt, Streamed
from agentsh.ports.window import TellsWindows, Window

MAX_RETRIES = 4
MAX_RETRIES_GARBLED = 1
"""What is not the protocol is mostly a wrong URL: one more try for a proxy's hiccup, then say so."""
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 8.0
MAX_RETRY_AFTER_S = 60.0
"""A server that asks for more is not waited for: the user decides."""
MAX_REASON_CHARS = 120
MAX_MESSAGE_CHARS = 300


class RetryingModel:
    """A model that retries. random: returns numbers from 0 to 1 for the jitter.

    Reasoning alone does not forbid a retry. A `Retrying` takes back the previews before it: the answer begins anew.
    """

    def __init__(self, model: Model, clock: Clock | None = None, random: Callable[[], float] | None = None) -> None:
        self._model = model
        self._clock = clock or SystemClock()
        self._given = random

    def _random(self) -> float:
        import random  # 1 ms: not before a first retry

        return (self._given or random.random)()

    def encode(self, prompt: Prompt) -> bytes:
        """Return the body of the model inside."""
        return self._model.encode(prompt)

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        """Send `body`, again where it failed for a passing reason, announcing each wait by a Retrying.

        Raises:
            ModelError: the last one; at most 1 + MAX_RETRIES requests were made.
        """
        attempt, shown = 0, False
        while True:
            try:
                async with contextlib.aclosing(self._model.stream(body)) as stream:
                    async for item in stream:
                        shown = shown or isinstance(item, TextDelta)
                        yield item
                return
            except ModelError as error:
                if shown or not error.retryable:
                    raise
                attempt += 1
                waiting = self._retrying(error, attempt)
            yield waiting
            await self._clock.sleep(waiting.delay_s)

    async def window(self, model: str) -> Window | None:
        """Ask the model inside, once, where it can."""
        return await self._model.window(model) if isinstance(self._model, TellsWindows) else None

    async def close(self) -> None:
        """Close the model inside."""
        await self._model.close()

    def _retrying(self, error: ModelError, attempt: int) -> Retrying:
        """Return the wait before retry number `attempt`, or raise what ends the trying."""
        most = MAX_RETRIES_GARBLED if isinstance(error, StreamGarbled) else MAX_RETRIES
        if attempt > most:
            raise _final(error, f"gave up after {attempt} tries: {error.message}") from error
        asked_s = error.retry_after_s if isinstance(error, ModelUnavailable) else None
        if asked_s is not None and asked_s > MAX_RETRY_AFTER_S:
            raise _final(error, f"asked to wait {_duration(asked_s)}: {error.message}") from error
        # Between 1 and 2 times the step: 0.5 to 1 s, 1 to 2 s, 2 to 4 s, 4 to 8 s.
        backoff_s = min(FIRST_DELAY_S * 2 ** (attempt - 1) * (1 + self._random()), MAX_DELAY_S)
        delay_s = backoff_s if asked_s is None else max(asked_s, FIRST_DELAY_S)
        return Retrying(attempt, most, delay_s, one_line(error.message, MAX_REASON_CHARS))


def _final(error: ModelError, message: str) -> ModelError:
    """Return the same error, with how the trying ended in its message."""
    message = one_line(message, MAX_MESSAGE_CHARS)
    if isinstance(error, ModelUnavailable):
        return ModelUnavailable(message, retry_after_s=error.retry_after_s, hint=error.hint)
    return type(error)(message, hint=error.hint)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
