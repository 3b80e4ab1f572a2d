"""A real pseudo terminal with a program in it, and an emulator that shows what a person would see.

The program is the script `talk` unless told otherwise.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pyte

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Screen(pyte.HistoryScreen):
    """Deletes lines as terminals do: pyte leaves one as it was where that which takes its place was never written."""

    def delete_lines(self, count: int | None = None) -> None:
        """Delete lines from the cursor on."""
        for y in range(self.lines):
            self.buffer[y]
        super().delete_lines(count)


class Terminal:
    """Types and looks. raw: all bytes that the script wrote."""

    def __init__(
        self,
        columns: int = 80,
        rows: int = 24,
        *,
        argv: Sequence[str] | None = None,
        cwd: Path | None = None,
        **environment: str,
    ) -> None:
        self.raw = ""
        self.columns = columns
        self._page, self._page_at = "", (-1, 0)
        env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.getcwd(), **environment}
        program, *rest = argv or [sys.executable, "-m", "tests.repl.talk"]
        self._child = pexpect.spawn(
            program, rest, dimensions=(rows, columns), env=env, encoding="utf-8",
            codec_errors="replace", timeout=30, cwd=cwd,
        )  # fmt: skip
        self._child.delaybeforesend = None
        self._screen = Screen(columns, rows, history=20_000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)

    def __enter__(self) -> "Terminal":
        self.wait(lambda: "›" in self.page)
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._child.close(force=True)
        except (
            pexpect.ExceptionPexpect
        ):  # it is killed, and a busy machine takes longer over it than a tenth of a second
            self._child.wait()

    def type(self, text: str) -> None:
        """Press keys."""
        self._child.send(text)

    def type_bytes(self, raw: bytes) -> None:
        """Press keys that are no text."""
        os.write(self._child.child_fd, raw)

    def paste(self, text: str) -> None:
        """Paste as a terminal does, reading meanwhile."""
        raw = f"\x1b[200~{text}\x1b[201~".encode().replace(b"\n", b"\r")
        for start in range(0, len(raw), 1024):
            os.write(self._child.child_fd, raw[start : start + 1024])
            self.look(0.001)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the script."""
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        """End the script as a crash would."""
        self._child.kill(signal.SIGKILL)
        self._child.wait()

    def resize(self, columns: int, rows: int) -> None:
        """Change the window."""
        self._child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)
        self.columns = columns

    def look(self, seconds: float) -> None:
        """Read for a while."""
        end = time.monotonic() + seconds
        while True:
            try:
                text = self._child.read_nonblocking(65536, max(end - time.monotonic(), 0))
            except pexpect.TIMEOUT:
                return
            except pexpect.EOF:
                return
            self.raw += text
            self._stream.feed(text)

    def wait(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Read until something is to be seen."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "\n".join(self.lines)
            self.look(0.02)

    def ended(self) -> int:
        """Return the exit code, once all is read."""
        end = time.monotonic() + 8
        while self._child.isalive():
            assert time.monotonic() < end, "\n".join(self.lines)
            self.look(0.02)
        self.look(0.05)
        status: Any = self._child.exitstatus
        return int(status) if status is not None else -int(self._child.signalstatus)

    @property
    def lines(self) -> list[str]:
        """All lines, scrollback included."""
        past = ["".join(row[x].data for x in range(self.columns)).rstrip() for row in self._screen.history.top]
        return [*past, *(line.rstrip() for line in self._screen.display)]

    @property
    def page(self) -> str:
        """All lines as one text, without the empty ones at the end."""
        if self._page_at != (len(self.raw), self.columns):
            self._page_at = (len(self.raw), self.columns)
            self._page = "\n".join(self.lines).rstrip()
        return self._page

    def count(self, text: str) -> int:
        """How often a text is to be seen."""
        return self.page.count(text)

    @property
    def restored(self) -> bool:
        """Whether the terminal is as a shell wants it: pastes unmarked, the cursor there."""
        pastes = self.raw.rfind(PASTE_OFF) > self.raw.rfind(PASTE_ON)
        cursor = self.raw.rfind("\x1b[?25h") > self.raw.rfind("\x1b[?25l")
        return pastes and cursor and not self._screen.cursor.hidden
