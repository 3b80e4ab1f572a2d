"""Errors of real system calls in a real process, injected by strace, and short writes by a limit of file size."""

# ruff: noqa: ASYNC220 - nothing else runs on the loop

import os
import resource
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import SESSION, note, texts

COUNT = 14
ROOT = Path(__file__).parents[2]


@cache
def why_not() -> str:
    """Return why strace cannot be used here, or nothing."""
    if shutil.which("strace") is None:
        return "there is no strace"
    done = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return f"strace may not trace here: {done.stderr.strip()}" if done.returncode else ""


class Said(NamedTuple):
    """What the process told: numbers of records, and why others were refused."""

    acked: list[int]
    durable: list[int]
    refused: list[str]


def said(output: str) -> Said:
    rows = [row.partition(" ") for row in output.splitlines()]
    assert rows[-1][0] == "end", output
    numbers = {word: [int(rest) for w, _, rest in rows if w == word] for word in ("acked", "durable")}
    return Said(numbers["acked"], numbers["durable"], [rest for w, _, rest in rows if w == "refused"])


def run(root: Path, *injections: str) -> Said:
    """Let the process run with errors in the system calls that touch the session's directory or its files."""
    if reason := why_not():
        pytest.skip(reason)
    place = root / "sessions" / SESSION
    paths = [root / "sessions", place, place / "events.jsonl", place / "events.jsonl.new"]
    done = subprocess.run(
        [
            "strace", "-f", "-qq", "-o", root / "trace", *(f"--trace-path={path}" for path in paths),
            *(f"--inject={injection}" for injection in injections),
            sys.executable, "-m", "tests.crash.steady", root, str(COUNT),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "INJECTED" in (root / "trace").read_text(), "nothing was injected"
    return said(done.stdout)


async def check(root: Path, told: Said) -> list[int]:
    """Compare with what is there: each acknowledged record once, in order, and no other; then go on with the log."""
    store = JsonlStore(root / "sessions", FileBlobs(root / "blobs"))
    found = [int(text.split()[0]) for text in texts(store.read(SESSION))]
    assert found == told.acked
    assert not [d for d in store.damages(SESSION) if d.kind not in ("torn", "missing")]
    opened = await store.open(SESSION)
    assert not opened.recovery.damages
    (record,) = await opened.log.append([note("100 on")])
    await opened.log.wait_durable(record.seq)
    await opened.log.close()
    assert [int(text.split()[0]) for text in texts(store.read(SESSION))] == [*found, 100]
    return found


@pytest.mark.parametrize(("error", "when"), [("EIO", "2"), ("EIO", "2+4"), ("ENOSPC", "3")])
async def test_a_write_that_fails(tmp_path: Path, error: str, when: str) -> None:
    told = run(tmp_path, f"write:error={error}:when={when}")
    assert await check(tmp_path, told) == list(range(COUNT)), "each came through in the end"
    assert told.refused
    assert told.durable == told.acked


@pytest.mark.parametrize("when", ["2", "4"])
async def test_a_sync_that_fails_once(tmp_path: Path, when: str) -> None:
    """The lines go to a rescue segment, and nobody hears of it."""
    told = run(tmp_path, f"fdatasync:error=EIO:when={when}")
    assert await check(tmp_path, told) == list(range(COUNT))
    assert (told.refused, told.durable) == ([], told.acked)
    names = os.listdir(tmp_path / "sessions" / SESSION)
    assert any(name.startswith("000000-") for name in names), "the segment that failed is closed"


async def test_a_disk_on_which_no_sync_works_any_more(tmp_path: Path) -> None:
    told = run(tmp_path, "fdatasync:error=EIO:when=3+")
    found = await check(tmp_path, told)
    assert found == list(range(len(found)))
    assert len(found) < COUNT, "it stops saving"
    assert all(n in found for n in told.durable)
    assert any("the disk failed" in text for text in told.refused)


@pytest.mark.parametrize("call", ["fsync", "rename", "ftruncate", "fallocate", "openat"])
async def test_a_call_that_fails_now_and_then(tmp_path: Path, call: str) -> None:
    told = run(tmp_path, f"{call}:error=EIO:when=4+5", "write:error=ENOSPC:when=3+4")
    found = await check(tmp_path, told)
    assert found == list(range(COUNT))


async def test_short_writes(tmp_path: Path) -> None:
    """A limit of the file's size makes the kernel take a part of a write; that part is cut off again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.steady", tmp_path, str(COUNT)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_500, resource.RLIM_INFINITY)),
    )  # fmt: skip
    assert process.stdout is not None
    output = ""
    for row in process.stdout:
        output += row
        if row.startswith("refused"):
            store = JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs"))
            assert list(store.damages(SESSION)) == [], "nothing half-written stays"
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 30, resource.RLIM_INFINITY))
    assert process.wait(30) == 0
    process.stdout.close()
    told = said(output)
    assert await check(tmp_path, told) == list(range(COUNT))
    assert any("File too large" in text or "No space left" in text for text in told.refused)
