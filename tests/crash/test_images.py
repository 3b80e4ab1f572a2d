"""Power cuts of real file systems: a writer on an image behind a loop device, copied while it writes.

A copy is what the disk of a machine would hold whose power went at that moment: what the file system has not sent to
the device is not in it. Needs root, loop devices and mkfs; without them it is skipped, with the reason.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.crash.nursery import digest, store_at

pytestmark = pytest.mark.images
SESSION = "20261129-000000"
SIZES_MB = {"ext4": 48, "xfs": 320}
"""What mkfs takes at least; the images are sparse."""
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
OPTIONS = {"ext4": "loop,commit=600", "xfs": "loop"}
OF_A_COPY = {"ext4": "loop", "xfs": "loop,nouuid"}
NURSERY = "from tests.crash.nursery import main; main()"
NO_SYNC = "from agentsh.log.files import RealFiles; RealFiles.sync = lambda self, fd: None; " + NURSERY


class Cut(NamedTuple):
    """An image as a power cut left it, and what had been said to be durable before: digests by seq."""

    image: Path
    promised: dict[int, str]


@contextmanager
def mounted(image: Path, place: Path, options: str) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", options, image, place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no image can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True, capture_output=True)


def made(kind: str, image: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("mounting an image takes root")
    if shutil.which(MAKE[kind][0]) is None:
        pytest.skip(f"there is no {MAKE[kind][0]}")
    with image.open("wb") as file:
        file.truncate(SIZES_MB[kind] << 20)
    subprocess.run([*MAKE[kind], image], check=True, capture_output=True)
    return image


class Writer:
    """A real writer on a mounted image, and what it has told."""

    def __init__(self, root: Path, code: str, seed: int) -> None:
        self.told: dict[int, str] = {}
        self.durable = 0
        self.pid = 0
        self._rest = b""
        self._nursery = subprocess.Popen(
            [sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        os.set_blocking(self._nursery.stdout.fileno(), False)
        self._nursery.stdin.write(f"{SESSION} {seed}\n".encode())
        self._nursery.stdin.flush()

    def hear(self) -> None:
        """Take what was told so far."""
        assert self._nursery.stdout is not None
        while data := self._nursery.stdout.read():
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                word, _, rest = line.decode().partition(" ")
                if word == "pid":
                    self.pid = int(rest)
                elif word == "durable":
                    self.durable = int(rest)
                elif word != "died":
                    self.told[int(word)] = rest

    def cut(self, image: Path, copy: Path) -> Cut:
        """Copy the image while the writer stands still; what it told before must be in the copy."""
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(0.05)  # a system call that is under way comes to its end first
        self.hear()
        promised = {seq: known for seq, known in self.told.items() if seq <= self.durable}
        subprocess.run(["cp", "--sparse=always", image, copy], check=True)
        os.kill(self.pid, signal.SIGCONT)
        return Cut(copy, promised)

    def end(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.wait(30)
        self._nursery.stdout.close()


def cuts(kind: str, place: Path, count: int, code: str) -> list[Cut]:
    """Let a writer write, and cut the power so many times, some hundredths of a second apart."""
    dice, image = Random(5), made(kind, place / "image")
    found = []
    with mounted(image, place / "disk", OPTIONS[kind]) as disk:
        writer = Writer(disk, code, 5)
        try:
            deadline = time.monotonic() + 60
            for n in range(count):
                wanted = len(writer.told) + dice.randint(5, 40)
                while len(writer.told) < wanted and time.monotonic() < deadline:
                    time.sleep(0.002)
                    writer.hear()
                found.append(writer.cut(image, place / f"cut{n}"))
        finally:
            writer.end()
    return found


async def lost(kind: str, cut: Cut, place: Path) -> list[int]:
    """Mount what a cut has left, open the session there, and return the promised records that are not in it."""
    with mounted(cut.image, place, OF_A_COPY[kind]) as disk:
        store = store_at(disk)
        if SESSION not in store.sessions():
            return sorted(cut.promised)
        opened = await store.open(SESSION)
        found = {record.seq: digest(record) for record in opened.records}
        for record in opened.records:
            if isinstance(record.payload["text"], dict) and record.seq in cut.promised:
                store.blobs.get(record.payload["text"]["blob"])
        await opened.log.close()
    return [seq for seq, known in cut.promised.items() if found.get(seq) != known]


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
async def test_what_was_durable_survives_a_cut_of_a_real_file_system(kind: str, tmp_path: Path) -> None:
    made_cuts = cuts(kind, tmp_path, 4, NURSERY)
    assert max(len(cut.promised) for cut in made_cuts) > 10
    for n, cut in enumerate(made_cuts):
        assert await lost(kind, cut, tmp_path / f"copy{n}") == [], n


async def test_a_writer_that_does_not_sync_is_caught(tmp_path: Path) -> None:
    """A mutant on a real file system: the laboratory of images can fail."""
    gone = [await lost("ext4", cut, tmp_path / "copy") for cut in cuts("ext4", tmp_path, 2, NO_SYNC)]
    assert any(gone)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
async def test_many_cuts_of_a_real_file_system(kind: str, tmp_path: Path) -> None:
    made_cuts = cuts(kind, tmp_path, 40, NURSERY)
    for n, cut in enumerate(made_cuts):
        assert await lost(kind, cut, tmp_path / "copy") == [], n
    sys.stderr.write(f"\n{len(made_cuts)} cuts on {kind}, up to {len(made_cuts[-1].promised)} records, none lost\n")
