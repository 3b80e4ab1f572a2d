"""Kill -9 of a real appending process: every event that it acknowledged is there, in order, and the log goes on."""

import random
import subprocess
import sys
from pathlib import Path

from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note, texts
from tests.log.logs import SESSION

WRITER = """
import asyncio, sys
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note

async def main():
    root, session = sys.argv[1:]
    store = JsonlStore(root + "/sessions", FileBlobs(root + "/blobs"))
    opened = await store.open(session)
    n = opened.log.last_seq
    while True:
        size = 40_000 if n % 29 == 0 else n % 7 * 300
        records = await opened.log.append([note(f"{n + i} " + "x" * size) for i in range(1 + n % 3)])
        n = records[-1].seq
        if n % 11 == 0:
            await opened.log.wait_durable(n)
        print(n, flush=True)

asyncio.run(main())
"""


def writer(root: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), SESSION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


async def test_acknowledged_events_survive_kill_9(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    store = JsonlStore(tmp_path / "sessions", blobs)
    log = await store.create(SESSION, by="test 1")
    await log.close()
    dice = random.Random(11)
    for _ in range(4):
        process = writer(tmp_path)
        assert process.stdout is not None
        acked = 0
        for _ in range(dice.randint(1, 150)):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            acked = int(line)
        process.kill()
        rest, _ = process.communicate()
        acked = max([acked, *(int(word) for word in rest.split(b"\n")[:-1] if word)])
        opened = await store.open(SESSION)
        assert len(opened.records) >= acked
        assert [r.seq for r in opened.records] == list(range(1, len(opened.records) + 1))
        for record in opened.records:
            text = record.payload["text"]
            text = blobs.get(text["blob"]).decode() if isinstance(text, dict) else text
            assert text.startswith(("again", f"{record.seq - 1} ", f"{record.seq - 2} ", f"{record.seq} "))
        assert not opened.recovery.damages
        await opened.log.append([note("again")])
        await opened.log.close()
    assert texts(store.read(SESSION))[-1] == "again"
    assert list(store.damages(SESSION)) == []
