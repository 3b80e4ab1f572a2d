"""What was typed before, across sessions: a file of JSON strings, one a line, newest last."""

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History

from agentsh.log.plain import open_plain

MAX_BYTES = 1_000_000
"""As much of the file's end is read."""


class TypedHistory(History):
    """Tolerates anything in the file and any trouble with it: history is a comfort, and never stops a session."""

    def __init__(
        self, file: Path, clean: Callable[[str], str] = str, private: Callable[[], bool] = lambda: False
    ) -> None:
        """Keep texts in a file. clean: replaces what must not get there. private: whether nothing is to be kept."""
        super().__init__()
        self._private = private
        self._file = file
        self._clean = clean

    def load_history_strings(self) -> Iterable[str]:
        """Return the texts that read, newest first, neighbours that are the same once."""
        texts: list[str] = []
        for line in self._tail().split(b"\n"):
            try:
                text = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(text, str) and text and texts[-1:] != [text]:
                texts.append(text.encode("utf-8", "replace").decode())
        return reversed(texts)

    def store_string(self, string: str) -> None:
        """Append one text. The file is readable by its owner only."""
        if self._private():
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fd = open_plain(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.fchmod(fd, 0o600)
                os.write(fd, json.dumps(self._clean(string)).encode() + b"\n")
            finally:
                os.close(fd)

    def _tail(self) -> bytes:
        with contextlib.suppress(OSError), open(self._file, "rb", opener=open_plain) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - MAX_BYTES, 0))
            return file.read()
        return b""
