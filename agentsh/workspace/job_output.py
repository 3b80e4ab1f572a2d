"""What background jobs print, in a file for each: its first 10 MiB, and its end once the job has ended."""

import os
from contextlib import suppress
from pathlib import Path

from agentsh.workspace.capture import binary_note, is_binary

MAX_KEPT_BYTES = 10 * 1024 * 1024
MAX_TAIL_BYTES = 65_536
"""Of what came after that, so much of the newest is kept in memory."""
SAMPLE_BYTES = 8_192
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class JobOutput:
    """Takes what a job prints, and gives it back. total_bytes: how much that was. A full disk costs output only."""

    def __init__(self, path: Path) -> None:
        self.total_bytes = 0
        self._path = path
        self._kept = 0
        self._tail = bytearray()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(path, _FLAGS, 0o600)

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self.total_bytes += len(data)
        room = MAX_KEPT_BYTES - self._kept
        if room > 0 and self._fd >= 0:
            with suppress(OSError):
                self._kept += os.write(self._fd, data[:room])
            data = data[room:]
        self._tail += data
        del self._tail[: max(len(self._tail) - MAX_TAIL_BYTES, 0)]

    def close(self) -> None:
        """The job has ended: put the end of its output into the file. Idempotent."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        with suppress(OSError):
            if self._tail:
                os.write(fd, self._mark() + self._tail)
        os.close(fd)

    def read(self, begin: int, max_bytes: int) -> str:
        """Return what came from byte `begin` on, the last `max_bytes` of it; of what is no text only the size."""
        return _text(self._bytes(begin, max_bytes), self.total_bytes)

    def _bytes(self, begin: int, max_bytes: int) -> bytes:
        begin = max(begin, self.total_bytes - max_bytes)
        tail_from = self.total_bytes - len(self._tail)
        kept = b""
        if begin < self._kept:
            kept = read_file(self._path, begin, self._kept - begin)
        gap = self._mark() if kept and tail_from > self._kept else b""
        return kept + gap + bytes(self._tail[max(begin - tail_from, 0) :])

    def _mark(self) -> bytes:
        left_out = self.total_bytes - self._kept - len(self._tail)
        return b"\n[\xe2\x80\xa6 %d bytes left out \xe2\x80\xa6]\n" % left_out if left_out else b""


class JobOutputs:
    """The outputs of the jobs of one session, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(self, job: str) -> JobOutput:
        """Return a place for the output of a new job.

        Raises:
            OSError: the disk refused.
        """
        return JobOutput(self._path(job))

    def read(self, job: str, max_bytes: int) -> str:
        """Return the last of what a job of an earlier process printed.

        Raises:
            OSError: it is not there.
        """
        path = self._path(job)
        size = path.stat().st_size
        return _text(read_file(path, max(size - max_bytes, 0), max_bytes), size)

    def _path(self, job: str) -> Path:
        return self._directory / f"{job}.out"


def _text(data: bytes, total_bytes: int) -> str:
    if is_binary(data[:SAMPLE_BYTES]) or is_binary(data[-SAMPLE_BYTES:]):
        return binary_note(data[:SAMPLE_BYTES], total_bytes)
    return data.decode("utf-8", "replace")


def read_file(path: Path, begin: int, size: int) -> bytes:
    """Return `size` bytes of a file from `begin` on.

    Raises:
        OSError: it is not there.
    """
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(size)
