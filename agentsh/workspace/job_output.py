"""What background jobs print, in a file for each: its first 1 MiB, and its end once the job has ended.

The files lie beside the log, so secrets are replaced in them as they are in the log.
"""

import codecs
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agentsh.workspace.capture import binary_note, is_binary

MAX_KEPT_BYTES = 1024 * 1024
"""Looking for secrets goes at 1 to 10 MB/s, on the event loop."""
MAX_TAIL_BYTES = 65_536
"""Of what came after that, so much of the newest is kept in memory."""
SAMPLE_BYTES = 8_192
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class Filter(Protocol):
    """Replaces secrets in a text that grows; holds back what may become one."""

    def feed(self, text: str) -> str:
        """Take new text; return what can be kept."""
        ...

    def rest(self) -> str:
        """Return what was held back."""
        ...


class JobOutput:
    """Takes what a job prints, and gives it back. A full disk costs output only.

    total_bytes: how much it printed. end: a position behind all that can be read now.
    """

    def __init__(self, path: Path, filter: Filter, clean: Callable[[str], str]) -> None:
        """Write to `path`. clean: replaces secrets in a text that is whole.

        Raises:
            OSError: the disk refused.
        """
        self.total_bytes = 0
        self._path = path
        self._filter = filter
        self._clean = clean
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._binary_head: bytes | None = None
        self._kept = 0
        self._left_out = 0
        self._tail = bytearray()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(path, _FLAGS, 0o600)

    @property
    def end(self) -> int:
        """A position behind all that can be read now."""
        return self._kept + self._left_out + len(self._tail)

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self.total_bytes += len(data)
        if self._binary_head is None and is_binary(data[:SAMPLE_BYTES]):
            self._binary_head = data[:SAMPLE_BYTES]
        if self._binary_head is not None:
            return
        room = max(MAX_KEPT_BYTES - self._kept, 0) if self._fd >= 0 else 0
        if room:
            self._write(self._filter.feed(self._decoder.decode(data[:room])))
        self._tail += data[room:]
        over = max(len(self._tail) - MAX_TAIL_BYTES, 0)
        self._left_out += over
        del self._tail[:over]

    def close(self) -> None:
        """The job has ended: put the end of its output into the file. Idempotent."""
        if self._fd < 0:
            return
        self._write(self._filter.rest())
        if self._binary_head is not None:
            self._write(self._note())
        elif self._tail:
            text, self._tail = self._tail_text(), bytearray()
            self._left_out = 0
            self._write(text)
        os.close(self._fd)
        self._fd = -1

    def read(self, begin: int, max_bytes: int) -> str:
        """Return what came from position `begin` on, the last `max_bytes` of it; of what is no text only the size."""
        if self._binary_head is not None:
            return self._note()
        begin = max(begin, self.end - max_bytes)
        kept = b""
        if begin < self._kept:
            kept = read_file(self._path, begin, self._kept - begin)
        tail_from = self._kept + self._left_out
        tail = self._tail_text(max(begin - tail_from, 0)) if self._tail else ""
        return kept.decode("utf-8", "replace") + tail

    def _tail_text(self, begin: int = 0) -> str:
        mark = f"\n[… {self._left_out:,} bytes left out …]\n" if self._left_out and not begin else ""
        return mark + self._clean(self._tail[begin:].decode("utf-8", "replace"))

    def _note(self) -> str:
        return binary_note(self._binary_head or b"", self.total_bytes)

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._kept += os.write(self._fd, text.encode("utf-8", "replace"))


class JobOutputs:
    """The outputs of the jobs of one session, in a directory of its own. filter, clean: see `JobOutput`."""

    def __init__(self, directory: Path, filter: Callable[[], Filter], clean: Callable[[str], str]) -> None:
        self._directory = directory
        self._filter = filter
        self._clean = clean

    def make(self, job: str) -> JobOutput:
        """Return a place for the output of a new job.

        Raises:
            OSError: the disk refused.
        """
        return JobOutput(self._path(job), self._filter(), self._clean)

    def read(self, job: str, max_bytes: int) -> str:
        """Return the last of what a job of an earlier process printed.

        Raises:
            OSError: it is not there.
        """
        path = self._path(job)
        size = path.stat().st_size
        return read_file(path, max(size - max_bytes, 0), max_bytes).decode("utf-8", "replace")

    def _path(self, job: str) -> Path:
        return self._directory / f"{job}.out"


def read_file(path: Path, begin: int, size: int) -> bytes:
    """Return `size` bytes of a file from `begin` on.

    Raises:
        OSError: it is not there.
    """
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(size)
