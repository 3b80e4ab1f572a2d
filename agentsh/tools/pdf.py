"""The text of PDFs, page by page, by pypdf (the extra `pdf`), in a process that is bounded in time and memory."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentsh.base.errors import ToolFailed
from agentsh.base.text import head_bytes

LIMIT_S = 20.0
MEMORY_BYTES = 1 << 30
MAX_SAID_BYTES = 4 << 20
"""Of what the process prints; JSON takes up to six bytes for one."""

_CHILD = Path(__file__).with_name("pdf_child.py")


class Pages(NamedTuple):
    """What was read. texts: of the pages from the first that was asked for. total: pages of the PDF."""

    texts: tuple[str, ...]
    total: int


async def pdf_pages(name: str, data: bytes, *, first: int, count: int, max_bytes: int) -> Pages:
    """Return the text of at most `count` pages from `first` on, about max_bytes in all; at least one page.

    Raises:
        ToolFailed: pypdf is not installed, or the PDF cannot be read within 20 s and 1 GiB; what to do is said.
    """
    numbers = (first, count, max_bytes, int(LIMIT_S), MEMORY_BYTES)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(_CHILD), *map(str, numbers),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        cwd="/", env={}, start_new_session=True, limit=MAX_SAID_BYTES,
    )  # fmt: skip
    try:
        said, _ = await asyncio.wait_for(process.communicate(data), LIMIT_S)
    except TimeoutError:
        raise ToolFailed(f"{name}: reading this PDF takes more than {LIMIT_S:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
    return _pages(name, said[:MAX_SAID_BYTES])


def _pages(name: str, said: bytes) -> Pages:
    total: int | None = None
    texts: list[str] = []
    for line in said.split(b"\n"):
        with suppress(ValueError):
            fact = json.loads(line)
            if fact.get("error") == "missing":
                raise ToolFailed(
                    f"{name} is a PDF, and pypdf is not installed, which reads them",
                    hint="pip install 'agentsh[pdf]', or use pdftotext in the shell",
                )
            if "error" in fact and not texts:
                raise ToolFailed(f"{name} is a PDF, but {head_bytes(fact['error'], 400)}")
            total = fact.get("total", total)
            if "text" in fact:
                texts.append(fact["text"])
    if total is None:
        raise ToolFailed(f"{name}: reading this PDF takes more time or memory than is allowed")
    return Pages(tuple(texts), total)
