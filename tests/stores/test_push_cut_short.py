"""Copies that were cut short: by kill -9 at every request, by a refusal, by a server that fails; and going on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentsh.base.errors import StorageRefused, StorageUnavailable
from tests.buckets import S3, Gate
from tests.stores.copies import SESSION, Machine, long_text

ROOT = Path(__file__).parents[2]
PUSH = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.stores.copies import SESSION, Machine
Machine(Path(sys.argv[2]), sys.argv[3]).pusher().push(SESSION)
"""


@pytest.mark.parametrize("arrived", [False, True])
def test_kill_9_at_every_request_and_going_on(gate: Gate, s3: S3, tmp_path: Path, arrived: bool) -> None:
    """Whoever looks between finds what was there before, whole; and the next push sends what is missing.

    arrived: the request on which it is killed has been done by the server all the same.
    """
    here = Machine(tmp_path / "here", s3.url, segment_bytes=4_000)
    here.begin()
    here.write("old", long_text(1))
    here.pusher().push(SESSION)
    old = len(here.lines())
    here.write("new", long_text(2), turns=6)
    killed = 0
    for at in (1, 2, 4, 5):
        puts_before = len(gate.puts)
        holding, release = threading.Event(), threading.Event()

        def rule(n: int, method: str, path: str, at: int = at, holding: threading.Event = holding,
                 release: threading.Event = release, before: int = puts_before) -> int | None:  # fmt: skip
            if method == "PUT" and len(gate.puts) - before == at:
                holding.set()
                if not arrived:
                    release.wait(20)
                    return 500
            return None

        gate.rule = rule
        process = subprocess.Popen([sys.executable, "-c", PUSH, str(ROOT), str(here.root), s3.url])
        while process.poll() is None and not holding.wait(0.02):
            pass
        killed += holding.is_set()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        release.set()
        gate.rule = lambda n, method, path: None
        other = Machine(tmp_path / f"reader{at}", s3.url)
        pulled = other.puller().pull(SESSION)  # raises where the manifest names what is not there
        assert pulled.manifest.last_seq >= old
        assert other.lines() == here.lines()[: pulled.manifest.last_seq]
    assert killed >= 3
    here.pusher().push(SESSION)
    last = Machine(tmp_path / "last", s3.url)
    last.puller().pull(SESSION)
    assert last.lines() == here.lines()


def test_what_came_before_a_kill_is_not_sent_again(gate: Gate, s3: S3, tmp_path: Path) -> None:
    here = Machine(tmp_path / "here", s3.url)
    here.begin()
    here.write(*(os.urandom(4).hex() + "x" for _ in range(40)), os.urandom(200_000).hex())
    gate.rule = lambda n, method, path: 403 if path.endswith("manifest.json") and method == "PUT" else None
    with pytest.raises(StorageRefused):
        here.pusher().push(SESSION)
    gate.rule = lambda n, method, path: None
    before = len(gate.puts)
    assert here.pusher().push(SESSION).sent < 5_000
    assert [path for path in gate.puts[before:] if "/blobs/" in path] == []


def test_a_pull_that_was_cut_short_goes_on(gate: Gate, s3: S3, tmp_path: Path) -> None:
    here, there = Machine(tmp_path / "here", s3.url, segment_bytes=4_000), Machine(tmp_path / "there", s3.url)
    here.begin()
    here.write("a" * 1000, long_text(1), turns=12)
    here.pusher().push(SESSION)
    manifest = here.puller().manifest(SESSION)
    last = manifest.segments[-1].parts[-1].key.rpartition("/")[2]
    gate.rule = lambda n, method, path: 500 if last in path else None
    with pytest.raises(StorageUnavailable):
        there.puller().pull(SESSION)
    assert not there.directory.exists()
    gate.rule = lambda n, method, path: None
    before = len(gate.seen)
    assert there.puller().pull(SESSION).how == "new"
    fetched = [path for method, path in gate.seen[before:] if method == "GET" and "/segments/" in path]
    assert len(fetched) == len(manifest.segments[-1].parts)
    assert there.lines() == here.lines()
