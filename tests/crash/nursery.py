"""Writers to be killed: `python -m tests.crash.nursery ROOT` forks one for each seed that comes on stdin.

A fork costs a hundredth of a new interpreter, so that thousands can be killed. A writer says its pid, then each
record that `append` returned (`SEQ DIGEST`), and `durable SEQ` once `wait_durable` did; it ends only by being killed.
It is the real thing: the group sync and the sealing run on threads of their own.
"""

import asyncio
import os
import sys
from pathlib import Path
from random import Random
from zlib import crc32

from agentsh.base.errors import SessionMissing
from agentsh.log.record import Record
from agentsh.log.store import OpenLog
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note

SEGMENT_BYTES = 30_000
SIZES = (0, 10, 300, 1_500, 8_000, 20_000)
BLOB_BYTES = 40_000


def store_at(root: Path) -> JsonlStore:
    """Return a store whose segments are short, so that closing and sealing are killed as well."""
    return JsonlStore(root / "sessions", FileBlobs(root / "blobs"), segment_bytes=SEGMENT_BYTES)


def digest(record: Record) -> str:
    """Return what tells one line from another, whatever segment it stands in: the crc is another in each."""
    return f"{crc32(record.raw[:-19]):08x}"


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


async def opened(root: Path, session: str) -> OpenLog:
    store = store_at(root)
    try:
        return (await store.open(session)).log
    except SessionMissing:
        return await store.create(session, by="nursery 1")


async def write(root: Path, session: str, seed: int) -> None:
    """Append for ever."""
    dice = Random(seed)
    log = await opened(root, session)
    while True:
        size = BLOB_BYTES if dice.random() < 0.03 else dice.choice(SIZES)
        drafts = [note(f"{session} {dice.randbytes(size // 2).hex()}") for _ in range(dice.choice((1, 1, 2, 5)))]
        for record in await log.append(drafts):
            say(f"{record.seq} {digest(record)}")
        if dice.random() < 0.3:
            seq = log.last_seq
            await log.wait_durable(seq)
            say(f"durable {seq}")
        if dice.random() < 0.2:
            await log.turn_ended()


def main() -> None:
    """Fork a writer for each line, wait for its death, and say it."""
    root = Path(sys.argv[1])
    for line in sys.stdin:
        session, seed = line.split()
        child = os.fork()
        if child == 0:
            say(f"pid {os.getpid()}")
            asyncio.run(write(root, session, int(seed)))
            os._exit(1)
        _, status = os.waitpid(child, 0)
        say(f"died {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
