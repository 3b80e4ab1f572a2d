"""A process that appends COUNT records, whatever the system says: `python -m tests.crash.steady ROOT COUNT`.

It tells `acked N`, `durable N` or `refused WHY` of each; a record that was refused is tried again, ten times at most.
After every fifth the segment is closed, where it can be.
"""

import asyncio
import sys
from pathlib import Path

from agentsh.base.errors import LogWriteFailed
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import SESSION, note

TRIES = 10


async def write(root: Path, count: int) -> None:
    """Append, and tell."""
    store = JsonlStore(root / "sessions", FileBlobs(root / "blobs"), segment_bytes=2_000)
    log = None
    for _ in range(TRIES):
        try:
            log = log or (await store.create(SESSION, by="steady 1"))
        except LogWriteFailed as error:
            print(f"refused {error}", flush=True)
    assert log is not None
    for n in range(count):
        for _ in range(TRIES):
            try:
                await log.append([note(f"{n} " + "x" * 700)])
                print(f"acked {n}", flush=True)
                await log.wait_durable(log.last_seq)
                print(f"durable {n}", flush=True)
                break
            except LogWriteFailed as error:
                print(f"refused {error}", flush=True)
                if log.last_seq > n:  # it is written, and only the sync failed
                    break
                await asyncio.sleep(0.005)
        if n % 5 == 4:
            await log.turn_ended()
            await asyncio.sleep(0.02)
    try:
        await log.close()
    except LogWriteFailed as error:
        print(f"refused {error}", flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
