"""The progress of copying files, past one second."""

import os
import time
from typing import TextIO

from agentsh.app.width import draws


class CopyProgress:
    """One line on stderr while `what` takes longer than a second; on a terminal only, and wiped at the end."""

    AFTER_S = 1.0
    EVERY_S = 0.1

    def __init__(self, err: TextIO, what: str) -> None:
        self._err = err
        self._what = what
        self._next_s = time.monotonic() + self.AFTER_S if draws(err, os.environ) else float("inf")
        self._drawn = False

    def __enter__(self) -> "CopyProgress":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._wipe()

    def _wipe(self) -> None:
        if self._drawn:
            self._drawn = False
            self._err.write("\r\x1b[2K")
            self._err.flush()

    def show(self, done: int, total: int, size: int) -> None:
        """Draw the state; called for each file. With the last one the line goes."""
        now = time.monotonic()
        if done == total:
            self._wipe()
            return
        if now < self._next_s:
            return
        self._next_s, self._drawn = now + self.EVERY_S, True
        bar = "█" * (20 * done // max(total, 1))
        self._err.write(f"\r{self._what}  {bar:<20}  {done:,} of {total:,} files, {size / 1e6:.0f} MB")
        self._err.flush()
