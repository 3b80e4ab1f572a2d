"""Takes what a process writes: a pipe that is read on the event loop."""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress

from agentsh.workspace.capture import Capture, Preview

_CHUNK_BYTES = 262_144
_PIPE_BYTES = 1_048_576


class Sink:
    """One pipe that a process writes into, read on the event loop into a capture and a preview."""

    def __init__(
        self,
        max_bytes: int,
        show: Callable[[str], None] | None = None,
        take: Callable[[bytes], None] | None = None,
    ) -> None:
        # Who takes all of it needs no second copy.
        self.capture = Capture(max_bytes) if take is None else Capture(max_bytes, whole_bytes=0)
        self.ended = asyncio.Event()
        self.heard_s = 0.0
        self._preview = Preview(show) if show else None
        self._take = take
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._fd = -1

    def open(self) -> int:
        """Make the pipe, listen to it, and return the end for the process; the caller closes that one."""
        self._fd, other = os.pipe()
        os.set_blocking(self._fd, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):  # above the user's quota of pipe memory: the default does too
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._loop.add_reader(self._fd, self._read)
        return other

    def close(self) -> None:
        """Stop listening, show the rest, give the pipe back. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
            if self._preview is not None:
                self._preview.flush(last=True)
        self.ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.heard_s = time.monotonic()
        self.capture.add(data)
        if self._take is not None:
            self._take(data)
        if self._preview is not None:
            self._preview.add(data)
            due_s = self._preview.due_s
            if due_s is not None and self._timer is None:
                self._timer = self._loop.call_later(max(due_s - time.monotonic(), 0), self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._preview is not None and self._preview.due_s is not None:
            self._preview.flush()
