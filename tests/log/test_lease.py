"""The lease: one winner, clean refusals, nothing stale, and content that only informs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.base.errors import SessionHeld
from agentsh.log.files import RealFiles
from agentsh.log.lease import LOCK_NAME, holder_of, is_free, parse_holder, take
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note, texts
from tests.log.logs import SESSION

RACER = """
import asyncio, sys
from agentsh.base.errors import SessionHeld
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.store_contract import note

async def main():
    root = sys.argv[1]
    store = JsonlStore(root + "/sessions", FileBlobs(root + "/blobs"))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        opened = await store.open(sys.argv[2])
    except SessionHeld as error:
        print("held", error.holder, flush=True)
        return
    await opened.log.append([note("mine")])
    print("won", flush=True)
    sys.stdin.readline()
    await opened.log.append([note("done")])
    await opened.log.close()

asyncio.run(main())
"""


def racer(root: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RACER, str(root), SESSION], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def say(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def new_session(root: Path) -> JsonlStore:
    store = JsonlStore(root / "sessions", FileBlobs(root / "blobs"))
    log = await store.create(SESSION, by="test 1")
    await log.append([note("first")])
    await log.close()
    return store


async def test_eight_processes_race_and_one_wins(tmp_path: Path) -> None:
    store = await new_session(tmp_path)
    racers = [racer(tmp_path) for _ in range(8)]
    try:
        assert [hear(p) for p in racers] == ["ready"] * 8
        for process in racers:
            say(process)
        said = [hear(p) for p in racers]
        winners = [p for p, word in zip(racers, said, strict=True) if word == "won"]
        assert len(winners) == 1
        assert all(word == "won" or word.startswith(f"held pid {winners[0].pid}") for word in said), said
        holder = store.holder(SESSION)
        assert holder is not None
        assert holder.pid == winners[0].pid
        say(winners[0])
        assert [p.wait(30) for p in racers] == [0] * 8
    finally:
        for process in racers:
            process.kill()
            process.communicate()
    assert texts(store.read(SESSION)) == ["first", "mine", "done"]
    assert store.holder(SESSION) is None


async def test_a_killed_holder_leaves_nothing_stale(tmp_path: Path) -> None:
    store = await new_session(tmp_path)
    process = racer(tmp_path)
    try:
        hear(process)
        say(process)
        assert hear(process) == "won"
        with pytest.raises(SessionHeld):
            await store.open(SESSION)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    finally:
        process.kill()
        process.communicate()
    opened = await store.open(SESSION)
    assert texts(opened.records) == ["first", "mine"]
    await opened.log.close()


async def test_asking_never_makes_an_opening_fail(tmp_path: Path) -> None:
    store = await new_session(tmp_path)
    stop = asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            await asyncio.to_thread(lambda: [store.holder(SESSION) for _ in range(20)])

    asking = [asyncio.ensure_future(ask()) for _ in range(3)]
    try:
        for _ in range(40):
            opened = await store.open(SESSION)
            await opened.log.close()
    finally:
        stop.set()
        await asyncio.gather(*asking)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 50, b"garbage", b"[1,2]", b'"x"', b"null", b"{", b'{"pid":"x","host":3,"tty":[],"since":{}}',
     b"[" * 4000, b'{"pid":true}', b'{"pid":-5}', b"\xff\xfe", b'{"pid":' + b"9" * 5000 + b"}", b"4711"],
)  # fmt: skip
async def test_content_only_informs(tmp_path: Path, content: bytes) -> None:
    assert parse_holder(content).pid == 0
    assert str(parse_holder(content))
    store = await new_session(tmp_path)
    path = tmp_path / "sessions" / SESSION / "lock"
    path.write_bytes(content)
    assert store.holder(SESSION) is None
    opened = await store.open(SESSION)  # a dead pid, a reused pid, garbage: the kernel knows better
    path.write_bytes(content)
    holder = store.holder(SESSION)
    assert holder is not None
    assert holder.pid == 0
    with pytest.raises(SessionHeld):
        await store.open(SESSION)
    await opened.log.close()


def test_a_holder_is_told_to_the_second() -> None:
    told = '{"pid":7,"host":"h","since":"%s"}'
    assert str(parse_holder((told % "2026-11-30T16:14:13.507435Z").encode())) == (
        "pid 7 at h, since 2026-11-30 16:14:13 UTC"
    )
    assert str(parse_holder((told % "Tuesday").encode())) == "pid 7 at h, since Tuesday"


async def test_a_pid_that_is_somebody_else_now_does_not_hold(tmp_path: Path) -> None:
    store = await new_session(tmp_path)
    (tmp_path / "sessions" / SESSION / "lock").write_text(
        json.dumps({"pid": os.getppid(), "host": "h", "since": "x"})
    )
    assert store.holder(SESSION) is None
    opened = await store.open(SESSION)
    await opened.log.close()


def test_the_content_says_who(tmp_path: Path) -> None:
    lease = take(RealFiles(), str(tmp_path), "s")
    said = json.loads((tmp_path / "lock").read_bytes())
    assert set(said) == {"pid", "host", "tty", "since", "boot_id", "start"}
    assert said["pid"] == os.getpid()
    assert str(os.getpid()) in str(holder_of(RealFiles(), str(tmp_path)))
    lease.release()
    lease.release()
    assert (tmp_path / "lock").exists()
    assert holder_of(RealFiles(), str(tmp_path)) is None


def test_a_session_is_free_only_where_that_is_certain(tmp_path: Path) -> None:
    """What belongs to nobody is removed by `gc`: a running session whose lock somebody took away would lose it."""
    files, directory = RealFiles(), tmp_path / SESSION
    assert is_free(files, str(directory)), "it is gone"
    directory.mkdir()
    lease = take(files, str(directory), SESSION)
    assert not is_free(files, str(directory))
    (directory / LOCK_NAME).unlink()
    assert not is_free(files, str(directory))
    lease.release()
    (directory / LOCK_NAME).touch()
    assert is_free(files, str(directory))
    (directory / LOCK_NAME).unlink()
    (directory / LOCK_NAME).mkdir()
    assert not is_free(files, str(directory))
