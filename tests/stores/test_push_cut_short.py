"""Copies that were cut short: by kill -9 at every request, by a refusal, by a server that fails; and going on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentsh.base.errors import StorageRefused, StorageUnavailable
from tests.buckets import Cloud, Gate
from tests.stores.copies import SESSION, Machine, long_text

ROOT = Path(__file__).parents[2]
PUSH = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.stores.copies import SESSION, Machine
Machine(Path(sys.argv[2]), sys.argv[3]).pusher().push(SESSION)
"""

PUSH_FILES = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from agentsh.log.files import RealFiles
from agentsh.stores.bucket_files import FileBucket
from tests.stores.copies import SESSION, Machine

class Killed(RealFiles):
    left = int(sys.argv[4])

    def rename(self, old, new):
        self.left -= 1
        if not self.left and sys.argv[5] == "False":
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(old, new)
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)

bucket = FileBucket(sys.argv[3].removeprefix("file://"), files=Killed())
Machine(Path(sys.argv[2]), sys.argv[3]).pusher(bucket).push(SESSION)
"""


@pytest.mark.parametrize("arrived", [False, True])
def test_kill_9_at_every_file_and_going_on(tmp_path: Path, arrived: bool) -> None:
    """In a directory: before an object gets its name, or right behind."""
    url = f"file://{tmp_path}/nas"
    here = Machine(tmp_path / "here", url, segment_bytes=4_000)
    here.begin()
    here.write("old", long_text(1))
    here.pusher().push(SESSION)
    old = len(here.lines())
    here.write("new", long_text(2), turns=6)
    killed = 0
    for at in (1, 2, 4):
        command = [sys.executable, "-c", PUSH_FILES, str(ROOT), str(here.root), url, str(at), str(arrived)]
        killed += subprocess.run(command, check=False).returncode == -signal.SIGKILL
        other = Machine(tmp_path / f"reader{at}", url)
        pulled = other.puller().pull(SESSION)
        assert pulled.manifest.last_seq >= old
        assert other.lines() == here.lines()[: pulled.manifest.last_seq]
    assert killed >= 2
    here.pusher().push(SESSION)
    last = Machine(tmp_path / "last", url)
    last.puller().pull(SESSION)
    assert last.lines() == here.lines()


@pytest.mark.parametrize("arrived", [False, True])
def test_kill_9_at_every_request_and_going_on(cloud_gate: Gate, cloud: Cloud, tmp_path: Path, arrived: bool) -> None:
    """Whoever looks between finds what was there before, whole; and the next push sends what is missing.

    arrived: the request on which it is killed has been done by the server all the same.
    """
    here = Machine(tmp_path / "here", cloud.url, segment_bytes=4_000)
    here.begin()
    here.write("old", long_text(1))
    here.pusher().push(SESSION)
    old = len(here.lines())
    here.write("new", long_text(2), turns=6)
    killed = 0
    for at in (1, 2, 4, 5):
        puts_before = len(cloud_gate.puts)
        holding, release = threading.Event(), threading.Event()

        def rule(n: int, method: str, path: str, at: int = at, holding: threading.Event = holding,
                 release: threading.Event = release, before: int = puts_before) -> int | None:  # fmt: skip
            if method == "PUT" and len(cloud_gate.puts) - before == at:
                holding.set()
                if not arrived:
                    release.wait(20)
                    return 500
            return None

        cloud_gate.rule = rule
        process = subprocess.Popen([sys.executable, "-c", PUSH, str(ROOT), str(here.root), cloud.url])
        while process.poll() is None and not holding.wait(0.02):
            pass
        killed += holding.is_set()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        release.set()
        cloud_gate.rule = lambda n, method, path: None
        other = Machine(tmp_path / f"reader{at}", cloud.url)
        pulled = other.puller().pull(SESSION)  # raises where the manifest names what is not there
        assert pulled.manifest.last_seq >= old
        assert other.lines() == here.lines()[: pulled.manifest.last_seq]
    assert killed >= 3
    here.pusher().push(SESSION)
    last = Machine(tmp_path / "last", cloud.url)
    last.puller().pull(SESSION)
    assert last.lines() == here.lines()


def test_what_came_before_a_kill_is_not_sent_again(cloud_gate: Gate, cloud: Cloud, tmp_path: Path) -> None:
    here = Machine(tmp_path / "here", cloud.url)
    here.begin()
    here.write(*(os.urandom(4).hex() + "x" for _ in range(40)), os.urandom(200_000).hex())
    cloud_gate.rule = lambda n, method, path: 403 if path.endswith("manifest.json") and method == "PUT" else None
    with pytest.raises(StorageRefused):
        here.pusher().push(SESSION)
    cloud_gate.rule = lambda n, method, path: None
    before = len(cloud_gate.puts)
    assert here.pusher().push(SESSION).sent < 5_000
    assert [path for path in cloud_gate.puts[before:] if "/blobs/" in path] == []


PULL = PUSH.replace("pusher().push", "puller().pull")


def test_kill_9_while_pulling_and_going_on(cloud_gate: Gate, cloud: Cloud, tmp_path: Path) -> None:
    """At every request in turn, one home: nothing is in its place before all of it is, and the last one finishes."""
    here, there = Machine(tmp_path / "here", cloud.url, segment_bytes=4_000), Machine(tmp_path / "there", cloud.url)
    here.begin()
    here.write("a" * 900, long_text(1), long_text(2), turns=9)
    here.pusher().push(SESSION)
    killed = 0
    for at in (1, 2, 4, 6):
        holding, release, before = threading.Event(), threading.Event(), len(cloud_gate.seen)

        def rule(n: int, method: str, path: str, at: int = at, holding: threading.Event = holding,
                 release: threading.Event = release, before: int = before) -> int | None:  # fmt: skip
            if n - before >= at:
                holding.set()
                release.wait(20)
            return None

        cloud_gate.rule = rule
        process = subprocess.Popen([sys.executable, "-c", PULL, str(ROOT), str(there.root), cloud.url])
        while process.poll() is None and not holding.wait(0.02):
            pass
        killed += holding.is_set()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        release.set()
        cloud_gate.rule = lambda n, method, path: None
        assert not there.directory.exists()
    assert killed == 4
    there.puller().pull(SESSION)
    assert there.lines() == here.lines()
    assert not (there.root / "incoming").exists()


def test_a_pull_that_was_cut_short_goes_on(cloud_gate: Gate, cloud: Cloud, tmp_path: Path) -> None:
    here, there = Machine(tmp_path / "here", cloud.url, segment_bytes=4_000), Machine(tmp_path / "there", cloud.url)
    here.begin()
    here.write("a" * 1000, long_text(1), turns=12)
    here.pusher().push(SESSION)
    manifest = here.puller().manifest(SESSION)
    last = manifest.segments[-1].parts[-1].key.rpartition("/")[2]
    cloud_gate.rule = lambda n, method, path: 500 if last in path else None
    with pytest.raises(StorageUnavailable):
        there.puller().pull(SESSION)
    assert not there.directory.exists()
    cloud_gate.rule = lambda n, method, path: None
    before = len(cloud_gate.seen)
    assert there.puller().pull(SESSION).how == "new"
    fetched = [path for method, path in cloud_gate.seen[before:] if method == "GET" and "/segments/" in path]
    assert len(fetched) == len(manifest.segments[-1].parts)
    assert there.lines() == here.lines()
