"""The prompt that comes through stdin: a pipe, a file or a socket, read to its end."""

import os
import select
import stat
import sys
import time

from agentsh.base.errors import UsageProblem

MAX_BYTES = 20_000_000
"""A prompt beyond this is a mistake: no model takes a tenth of it."""
NOTICE_S = 0.2
"""With a prompt on the command line: a stdin that somebody left open by mistake must be told from a hang."""
NOTICE_ALONE_S = 3.0
"""Without one it is plain that stdin is read."""
PIECE_BYTES = 1 << 20


def piped_prompt(prompt: str | None) -> str | None:
    """Return the prompt with what stdin brings: alone for None or `-`, else below the words of the command.

    A terminal is read only for `-`. Waits for the end of stdin, however long; says so on stderr after a moment.

    Raises:
        UsageProblem: stdin brings more than MAX_BYTES, or cannot be read.
    """
    wanted = prompt is None or prompt == "-"
    if not _brings(0, terminal=prompt == "-"):
        return None if wanted else prompt
    text = _read_all(0, NOTICE_ALONE_S if wanted else NOTICE_S).decode("utf-8", "replace").strip("\n")
    if wanted:
        return text or None
    return f"{prompt}\n\n{text}" if text else prompt


def _brings(fd: int, *, terminal: bool) -> bool:
    """Tell whether a descriptor may have something to say: open, no /dev/null, no terminal unless wanted."""
    try:
        if os.isatty(fd):
            return terminal
        found = os.fstat(fd)
        return not (stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev)
    except OSError:
        return False


def _read_all(fd: int, notice_s: float) -> bytes:
    pieces: list[bytes] = []
    size, notice_at, said = 0, time.monotonic() + notice_s, os.isatty(fd)
    try:
        while size <= MAX_BYTES:
            if not said and not select.select([fd], [], [], max(notice_at - time.monotonic(), 0))[0]:
                print("agentsh: reading stdin…", file=sys.stderr, flush=True)
                said = True
            piece = os.read(fd, PIECE_BYTES)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
    except OSError as error:
        raise UsageProblem(f"stdin cannot be read: {error.strerror}") from None
    raise UsageProblem(
        f"stdin brings more than {MAX_BYTES // 1_000_000} MB, which is too much for a prompt",
        hint="leave it in a file of the workspace, and name that",
    )


def need_prompt(prompt: str | None) -> str:
    """Return the prompt.

    Raises:
        UsageProblem: there is none.
    """
    if prompt is None or not prompt.strip():
        raise UsageProblem("there is no prompt", hint="give it as an argument or through a pipe")
    return prompt
