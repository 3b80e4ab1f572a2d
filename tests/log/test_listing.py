"""A reader finds all segments of one moment, however many there are and however fast a writer closes the next."""

import subprocess
import sys
from pathlib import Path

from agentsh.log.chain import LogScan
from agentsh.log.files import READ
from agentsh.log.segment import OPEN_NAME, closed_name
from tests.log.disks import MemFiles
from tests.log.logs import DIR, SESSION
from tests.log.sealed_logs import segment


class Rolling(MemFiles):
    """A writer closes a segment, and begins another, each time a reader has opened so many files."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.opened = 0
        self.ordinal = 0

    def roll(self) -> None:
        """Close the open segment, where there is one, and begin another with one record."""
        if f"{DIR}/{OPEN_NAME}" in self.nodes:
            self.rename(f"{DIR}/{OPEN_NAME}", f"{DIR}/{closed_name(self.ordinal, self.ordinal + 1)}")
            self.ordinal += 1
        self.put(f"{DIR}/{OPEN_NAME}", segment(self.ordinal, self.ordinal + 1, self.ordinal + 1)[1])

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        self.opened += flags == READ
        if self.every and self.opened % self.every == 0:
            self.roll()
        return fd


def test_a_writer_that_rolls_while_they_are_opened() -> None:
    disk = Rolling(0)
    for _ in range(100):
        disk.roll()
    disk.every = 5
    scan = LogScan(disk, DIR, SESSION)
    found = [entry[0] for entry in scan.entries()]
    assert scan.damages == []
    assert found == list(range(1, len(found) + 1))
    assert len(found) > 100
    scan.close()
    assert disk.fds == {}


MANY = """
import resource, sys
from pathlib import Path
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))
root = Path(sys.argv[1])
store = JsonlStore(root, FileBlobs(root.parent / "blobs"))
print(sum(1 for _ in store.read(sys.argv[2])), store.damages(sys.argv[2]))
"""


def test_more_segments_than_a_process_may_open_at_first(tmp_path: Path) -> None:
    directory = tmp_path / "sessions" / SESSION
    directory.mkdir(parents=True)
    for n in range(400):
        name = OPEN_NAME if n == 399 else closed_name(n, n + 1)
        (directory / name).write_bytes(segment(n, n + 1, n + 1)[1])
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(directory.parent), SESSION], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("400 []\n", "")
