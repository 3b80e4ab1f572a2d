"""What background jobs print, in a file for each: its first 1 MiB, and its end once the job has ended.

The files lie beside the log, so secrets are replaced in them as they are in the log.
"""

import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from agentsh.workspace.capture import binary_note, is_binary

MAX_KEPT_BYTES = 1024 * 1024
"""Looking for secrets goes at 1 to 10 MB/s, on the event loop."""
MAX_TAIL_BYTES = 65_536
"""Of what came after that, so much of the newest is kept in memory."""
MAX_LINE_BYTES = 4_096
"""Output is cut at the end of a line where there is one within so many bytes: half a secret is not known for one."""
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

    Positions count what is in the file before the tail, as it is there, and then what was printed, so that they never
    go back. total_bytes: how much it printed.
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
        self._taken = 0  # of what was printed, by the filter
        self._full = False  # what comes now is the tail's
        self._kept = 0
        self._left_out = 0
        self._tail = bytearray()  # stays when the job has ended: positions are those of what was printed
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(path, _FLAGS, 0o600)

    @property
    def end(self) -> int:
        """A position behind all that can be read now: of the tail of a job that runs, the lines that are whole."""
        return self._kept + self._left_out + self._whole_bytes()

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self.total_bytes += len(data)
        if self._binary_head is None and is_binary(data[:SAMPLE_BYTES]):
            self._binary_head = data[:SAMPLE_BYTES]
        if self._binary_head is not None:
            return
        if not self._full:
            data = self._into_file(data)
        self._tail += data
        over = len(self._tail) - MAX_TAIL_BYTES
        if over > 0:
            over = _line_from(self._tail, over, len(self._tail))
            self._left_out += over
            del self._tail[:over]

    def close(self) -> None:
        """The job has ended: put the end of its output into the file. Idempotent."""
        if self._fd < 0:
            return
        if not self._full:
            self._flush()
        if self._binary_head is not None:
            self._kept += self._write(self._note())
        else:
            self._write(self._tail_text(0, len(self._tail), self._left_out))
        os.close(self._fd)
        self._fd = -1

    def read(self, begin: int, max_bytes: int) -> str:
        """Return what came from position `begin` on, the last `max_bytes` of it; of what is no text only the size."""
        if self._binary_head is not None:
            return self._note()
        tail_from, whole = self._kept + self._left_out, self._whole_bytes()
        most = tail_from + whole - max_bytes
        if begin < most:
            begin = most if most < tail_from else tail_from + _line_from(self._tail, most - tail_from, whole)
        kept = read_file(self._path, begin, self._kept - begin) if begin < self._kept else b""
        left_out = max(tail_from - max(begin, self._kept), 0)
        return kept.decode("utf-8", "replace") + self._tail_text(max(begin - tail_from, 0), whole, left_out)

    def _into_file(self, data: bytes) -> bytes:
        """Put into the file what it has room for, whole lines of it; return the rest."""
        room = max(MAX_KEPT_BYTES - self._taken, 0)
        cut = len(data)
        if cut > room:
            cut = data.rfind(b"\n", 0, room) + 1 or data.find(b"\n", room) + 1 or cut
            self._full = data[cut - 1] == 0x0A or self._taken + cut > MAX_KEPT_BYTES + MAX_LINE_BYTES
        self._taken += cut
        self._kept += self._write(self._filter.feed(self._decoder.decode(data[:cut])))
        if self._full:
            self._flush()
        return data[cut:]

    def _flush(self) -> None:
        """Put into the file what is held back."""
        last = self._filter.feed(self._decoder.decode(b"", final=True))
        self._kept += self._write(last + self._filter.rest())

    def _whole_bytes(self) -> int:
        """Return how much of the tail can be shown: its last line may still grow into a secret."""
        if self._fd < 0:
            return len(self._tail)
        whole = max(self._tail.rfind(b"\n"), self._tail.rfind(b"\r")) + 1
        return whole if len(self._tail) - whole <= MAX_LINE_BYTES else len(self._tail)

    def _tail_text(self, begin: int, end: int, left_out: int) -> str:
        mark = f"\n[… {left_out:,} bytes left out …]\n" if left_out else ""
        return mark + self._clean(self._tail[begin:end].decode("utf-8", "replace"))

    def _note(self) -> str:
        return binary_note(self._binary_head or b"", self.total_bytes)

    def _write(self, text: str) -> int:
        """Return how many bytes the disk took."""
        try:
            return os.write(self._fd, text.encode("utf-8", "replace"))
        except OSError:
            return 0


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


def _line_from(data: bytearray, at: int, end: int) -> int:
    """Return where a line begins from `at` on, before `end`; `at` where none does soon."""
    begin = data.find(b"\n", at - 1, at + MAX_LINE_BYTES) + 1 if at else 0
    return begin if 0 < begin < end else at


def read_file(path: Path, begin: int, size: int) -> bytes:
    """Return `size` bytes of a file from `begin` on.

    Raises:
        OSError: it is not there.
    """
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(size)
