"""Snapshots against `cp -a`, and forks against a copy of the log: ratios of interleaved runs.

Run by hand: `python benches/snapshots.py [FILES] [MB]`, by default 10,000 files and 200 MB. Needs three times that on
the disk of the temporary directory. Nothing here fails on an absolute time.
"""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.workspace.snapshot import Snapshotter

ROUNDS = 5
CHANGED = 5
KNOWN = 40
PARENT, TS = "20261129-k3v9qd", "2026-11-29T16:20:01.123456Z"


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def a_tree(root: Path, files: int, megabytes: int) -> list[Path]:
    dice, paths = random.Random(1), []
    for n in range(files):
        path = root / f"d{n % 100}" / f"e{n % 7}" / f"f{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(max(megabytes * 1_000_000 // files // 4, 1)) * 4)
        paths.append(path)
    return paths


def save(path: Path, data: bytes) -> None:
    """As editors do."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.replace(path)


def synced(path: Path) -> None:
    """Write two small files durably, the least that a snapshot of one file costs: its content and the manifest."""
    for new in (path.with_suffix(".a"), path.with_suffix(".b")):
        with open(new, "wb") as file:
            file.write(b"x" * 200)
            file.flush()
            os.fsync(file.fileno())
        new.rename(new.with_suffix(".done"))
        directory = os.open(path.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


def snapshots(place: Path, files: int, megabytes: int) -> None:
    root = place / "ws"
    paths = a_tree(root, files, megabytes)
    time.sleep(0.1)
    one = Snapshotter(str(root), FileBlobs(place / "blobs"))
    print(f"first snapshot of {files:,} files, {megabytes} MB: {timed(lambda: one.take('start')):,.0f} ms")
    ours, copies, known = [], [], []
    for n in range(ROUNDS):
        for path in paths[n * CHANGED : (n + 1) * CHANGED]:
            save(path, b"changed %d" % n * 2000)
        time.sleep(0.05)
        ours.append(timed(lambda: one.take("tool")))
        copies.append(timed(lambda: subprocess.run(["cp", "-a", root, place / "copy"], check=True)))
        shutil.rmtree(place / "copy")
    mine, theirs = statistics.median(ours), statistics.median(copies)
    print(f"{CHANGED} changed: snapshot {mine:.1f} ms, cp -a {theirs:.0f} ms: {theirs / mine:.1f} times as fast")
    os.sync()  # what cp left to be written is not waited for in the next figure
    cpu_s = time.process_time()
    for n in range(KNOWN):
        save(paths[-1 - n], b"known %d" % n)
        relative = str(paths[-1 - n].relative_to(root))
        known.append(timed(lambda relative=relative: one.take_paths([relative], "tool")))  # type: ignore[misc]
    cpu_ms = (time.process_time() - cpu_s) * 1000 / KNOWN
    bare = [timed(lambda n=n: synced(place / f"bare{n}")) for n in range(KNOWN)]  # type: ignore[misc]
    print(
        f"the changed path is known: {statistics.median(known):.2f} ms (best {min(known):.2f}), {cpu_ms:.2f} of them"
    )
    print(f"  of processor; two small files made durable: {statistics.median(bare):.2f} ms (best {min(bare):.2f})")


async def forks(place: Path, megabytes: int) -> None:
    store = JsonlStore(place / "sessions", FileBlobs(place / "blobs"))
    log = await store.create(PARENT, by="bench")
    line = Draft("note", TS, {"text": "some words of output " * 90})
    while log.last_seq * 2000 < megabytes * 1_000_000:
        await log.append([line] * 200)
    await log.close()
    parent = place / "sessions" / PARENT
    ours, copies = [], []
    for n in range(ROUNDS):
        start = time.perf_counter()
        child = await store.fork(PARENT, f"20261129-{n:06}", by="bench")
        ours.append((time.perf_counter() - start) * 1000)
        await child.close()
        copies.append(timed(lambda: shutil.copytree(parent, place / "copied")))
        shutil.rmtree(place / "copied")
    new = sum(f.stat().st_size for f in (place / "sessions" / "20261129-000000").iterdir() if f.stat().st_nlink == 1)
    mine, theirs = statistics.median(ours), statistics.median(copies)
    print(
        f"fork of a log of {megabytes} MB: {mine:.1f} ms and {new:,} new bytes; copying it: {theirs:.0f} ms", end=""
    )
    print(f": {theirs / mine:.1f} times as fast")


def main() -> None:
    files, megabytes = (int(word) for word in (sys.argv[1:] + ["10000", "200"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        snapshots(Path(name), files, megabytes)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        asyncio.run(forks(Path(name), megabytes // 2))


if __name__ == "__main__":
    main()
