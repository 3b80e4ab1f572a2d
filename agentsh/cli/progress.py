"""A bar on stderr for work that takes longer than a second, where stderr is a terminal."""

import os
import sys
import time

from agentsh.app.width import draws

AFTER_S = 1.0
EVERY_S = 0.1


class Bar:
    """What is done of `total` bytes; without a total, only how many. Call it with what is done; then `wipe`."""

    def __init__(self, what: str, total: int = 0) -> None:
        self._what = what
        self.total = total
        self._done = 0
        self._next_s = time.monotonic() + AFTER_S
        self._shown = False
        self._on = draws(sys.stderr, os.environ)

    def __call__(self, size: int) -> None:
        """Add what was done."""
        self._done += size
        now = time.monotonic()
        if self._on and now >= self._next_s:
            self._next_s, self._shown = now + EVERY_S, True
            share = min(self._done / self.total, 1.0) if self.total else 0.0
            bar = f"{'█' * int(share * 30):<30} {share:4.0%} of {self.total / 1e6:,.0f} MB" if self.total else ""
            sys.stderr.write(f"\r\x1b[2K{self._what} {bar or f'{self._done / 1e6:,.1f} MB'}")
            sys.stderr.flush()

    def wipe(self) -> None:
        """Take the bar away."""
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False
