"""Seals in the background: one thread for one open log, at most, that never makes anybody wait but who closes it."""

import threading

from agentsh.log.files import FileSystem
from agentsh.log.seal import MIN_BYTES, pending, seal_closed


class Sealer:
    """Runs `seal_closed` on a thread of its own whenever it is woken and there is something to do.

    A disk that refuses, or memory, is no matter: the closed segments are whole, and the next `wake` tries again.
    """

    def __init__(self, files: FileSystem, directory: str, session: str, *, min_bytes: int = MIN_BYTES) -> None:
        self._files = files
        self._directory = directory
        self._session = session
        self._min_bytes = min_bytes
        self._state = threading.Lock()
        self._thread: threading.Thread | None = None
        self._below: int | None = None
        self._stopping = False
        self._refused: frozenset[str] = frozenset()

    def wake(self, below: int) -> None:
        """Have the segments with ordinals under `below` sealed; returns at once."""
        try:
            if not pending(self._files, self._directory, below=below, min_bytes=self._min_bytes, known=self._refused):
                return
        except OSError:
            return
        with self._state:
            if self._stopping:
                return
            self._below = below
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"seal {self._session}", daemon=True)
                self._thread.start()

    def join(self) -> None:
        """Return once nothing is being sealed; for tests."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def stop(self) -> None:
        """End what runs, at the next frame, and wait for that: the lease is to be held until then. Idempotent."""
        with self._state:
            self._stopping = True
        self.join()

    def _run(self) -> None:
        while (below := self._next()) is not None:
            try:
                done = seal_closed(
                    self._files, self._directory, self._session, below=below, min_bytes=self._min_bytes,
                    known=self._refused, stopped=lambda: self._stopping,
                )  # fmt: skip
            except Exception:  # noqa: BLE001 - the disk, the memory, the end of the process: the next `wake` tries again
                continue
            self._refused |= frozenset(done.refused)

    def _next(self) -> int | None:
        """Return the bound of the next pass, or None at the end of the thread."""
        with self._state:
            below, self._below = self._below, None
            if below is None or self._stopping:
                self._thread = None
                return None
            return below
