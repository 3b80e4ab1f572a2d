"""Asks ripgrep which files may hold a match, where it is installed: a whole project in the time of a few files.

It only names files. What is shown of them is read through the jail and matched by the search itself, so that results
are the same without it, and a link that is swapped in meanwhile leads nowhere.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from agentsh.ports.workspace import Wanted
from agentsh.workspace.ignore import CACHES

MAX_NAMED_BYTES = 4 << 20
"""Of file names. A pattern that is nearly everywhere needs no help: the search ends at its own limits at once."""

_OPTIONS = (
    "--no-config", "--no-messages", "--hidden", "--crlf", "--files-with-matches", "--null",
    "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot",
    "--glob=!.git",
)  # fmt: skip
"""No more is ignored than what .gitignore files of the workspace say; those above `path` are for the caller."""

_NO_UTF8 = ("--invert-match", r"-e^\p{any}*$")
"""Finds each line that is not UTF-8: what stands there is decoded otherwise, and ripgrep does not know how."""


async def mentions(
    root: str, path: str, wanted: Wanted, *, limit_s: float, environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return the files below the directory `path` that may hold a match; see `Workspace.mentions`."""
    program = shutil.which("rg")
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(prefix="agentsh-", suffix=".ignore") as caches:
        # The least of all rules, as in `Ignore`: where a .gitignore says otherwise, that holds.
        caches.write("".join(f"{name}/\n" for name in sorted(CACHES)).encode())
        caches.flush()
        begin = [program, *_OPTIONS, f"--ignore-file={caches.name}"]
        end = ["--", f"./{path}"]
        how = ["--text", *(["--ignore-case"] if wanted.ignore_case else []), *(["-F"] if wanted.literal else [])]
        runs = [[*begin, *how, f"-e{wanted.pattern}", *end]]
        if not wanted.literal:
            runs.append([*begin, *_NO_UTF8, *end])
        try:
            async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
                found = [group.create_task(_run(run, root, environment)) for run in runs]
        except TimeoutError:
            return None
    outputs = [task.result() for task in found]
    if any(output is None for output in outputs):
        return None
    names = b"".join(output or b"" for output in outputs).split(b"\0")
    return tuple(sorted({_plain(os.fsdecode(name)) for name in names if name}))


def _plain(path: str) -> str:
    return os.path.normpath(path)


async def _run(command: list[str], cwd: str, environment: Mapping[str, str]) -> bytes | None:
    """Return what a command printed; None where it failed, or printed too much."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=cwd, env=dict(environment), start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError):  # a pattern with a NUL, for one
        return None
    assert process.stdout is not None
    output = bytearray()
    try:
        while chunk := await process.stdout.read(65_536):
            output += chunk
            if len(output) > MAX_NAMED_BYTES:
                return None
        return bytes(output) if await process.wait() in (0, 1) else None  # 2: no regular expression to it
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
