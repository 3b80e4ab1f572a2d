"""The user's own editor, for a message that is longer than the input is good for: what it saves is not sent yet."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from prompt_toolkit.application import run_in_terminal

USUAL = ("editor", "nano", "vi", "emacs")
"""Tried in this order where neither VISUAL nor EDITOR names one."""
MAX_BYTES = 10 << 20


class Edited(NamedTuple):
    """What came of it. text: None where it stays as it was; wrong says why, or is empty."""

    text: str | None
    wrong: str = ""


async def edit(text: str) -> Edited:
    """Open an editor on `text`, with the terminal its own; return what it left. One that fails changes nothing."""
    try:
        fd, name = tempfile.mkstemp(prefix="agentsh-", suffix=".md")  # readable by the user only
    except OSError as error:
        return Edited(None, f"no file for the editor: {error.strerror or error}")
    try:
        await asyncio.to_thread(_write, fd, text)
        wrong = await run_in_terminal(lambda: _call(name, os.environ), in_executor=True)
        return Edited(None, wrong) if wrong else await asyncio.to_thread(_left, name)
    except OSError as error:
        return Edited(None, f"what the editor left cannot be read: {error.strerror or error}")
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _call(name: str, env: Mapping[str, str]) -> str:
    """Run the editor to its end; return what went wrong, or nothing."""
    named = [env[variable] for variable in ("VISUAL", "EDITOR") if env.get(variable)]
    for command in named or USUAL:
        try:
            words = shlex.split(command)
            code = subprocess.call([*words, name])
        except (ValueError, OSError):
            continue
        return f"the editor ended with {code}: what was typed is as it was" if code else ""
    said = ", ".join(named)
    return f"there is no {said}: set EDITOR" if said else "there is no editor: set EDITOR"


def _write(fd: int, text: str) -> None:
    with open(fd, "wb") as file:
        file.write(text.encode("utf-8", "replace"))


def _left(name: str) -> Edited:
    with open(name, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return Edited(None, f"the editor left more than {MAX_BYTES:,} bytes: what was typed is as it was")
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return Edited(text.removesuffix("\n"))
