"""Pins a checkpoint with the log that it stands on: kept whatever becomes of either, until it is let go.

A log only grows, so a hard link and a length are a true snapshot of it. `checkpoints/SEQ.pin/` holds links to the
checkpoint and to the segments up to its anchor, the open one under the closed name that it will have. What is behind
the anchor's line is not the pin's. The link to the checkpoint is made last: a pin without it is none.
Source: DESIGN section 4, "Checkpoints".
"""

import os
import re
from typing import NamedTuple

from agentsh.log.chain import LogScan
from agentsh.log.checkpoint import DIRECTORY, Checkpoint, checkpoint_name, is_anchored, read_checkpoint, read_packed
from agentsh.log.files import FileSystem
from agentsh.log.segment import OPEN_NAME, closed_name, exists

_NAME = re.compile(r"([0-9]{12,18})\.pin")


class Pin(NamedTuple):
    """A pinned checkpoint. place: its directory. segments: the names of the links, in order."""

    place: str
    checkpoint: Checkpoint
    segments: tuple[str, ...]


def pin(files: FileSystem, directory: str, session: str, seq: int) -> Pin | None:
    """Pin the checkpoint of `seq`, durably; return None where there is none that the log confirms. Idempotent.

    The caller holds the lease: of two at a time one would take the other's links for leftovers, and remove them.

    Raises:
        OSError: the disk refused, or has no hard links; what was begun is no pin, and goes with the next one.
    """
    there = pinned(files, directory, seq)
    if there is not None:
        return there
    found = read_checkpoint(files, directory, seq)
    if found is None or found.session != session:
        return None
    place = _place(directory, seq)
    scan = LogScan(files, directory, session)
    try:
        if not is_anchored(files, found.anchor, scan.segments):
            return None
        wanted = []
        for segment in scan.segments:
            if segment.ordinal <= found.anchor.ordinal:
                header = segment.head.header
                first = header.first_seq if header is not None else 0
                name = closed_name(segment.ordinal, first) if segment.name == OPEN_NAME else segment.name
                wanted.append((segment.name, name, segment.inode))
    finally:
        scan.close()
    for begun in {seq, *_begun(files, directory)}:  # what earlier tries have left holds segments for nobody
        unpin(files, directory, begun)
    files.mkdir(place)
    for source, name, inode in wanted:
        target = os.path.join(place, name)
        files.link(os.path.join(directory, source), target)
        if files.stat(target).inode != inode:  # it was closed, sealed or repaired meanwhile
            raise OSError(f"{source} has changed while it was pinned")
    files.link(os.path.join(directory, DIRECTORY, checkpoint_name(seq)), os.path.join(place, checkpoint_name(seq)))
    files.sync_dir(place)
    files.sync_dir(os.path.dirname(place))
    return pinned(files, directory, seq)


def pinned(files: FileSystem, directory: str, seq: int) -> Pin | None:
    """Return a pin, or None where there is none that is whole."""
    place = _place(directory, seq)
    found = read_packed(files, os.path.join(place, checkpoint_name(seq)))
    if found is None or found.anchor.seq != seq:
        return None
    names = sorted(name for name in files.listdir(place) if name != checkpoint_name(seq))
    return Pin(place, found, tuple(names))


def pins(files: FileSystem, directory: str) -> list[int]:
    """Return the seqs of the pinned checkpoints, in order."""
    try:
        names = files.listdir(os.path.join(directory, DIRECTORY))
    except OSError:
        return []
    seqs = sorted(int(m[1]) for name in names if (m := _NAME.fullmatch(name)))
    return [seq for seq in seqs if pinned(files, directory, seq) is not None]


def _begun(files: FileSystem, directory: str) -> list[int]:
    """Return the seqs of what would have become pins: the link to the checkpoint, the last to be made, is missing."""
    names = files.listdir(os.path.join(directory, DIRECTORY))
    seqs = [int(m[1]) for name in names if (m := _NAME.fullmatch(name))]
    return [seq for seq in seqs if not exists(files, os.path.join(_place(directory, seq), checkpoint_name(seq)))]


def unpin(files: FileSystem, directory: str, seq: int) -> None:
    """Let a pin go, durably: its links, not what they point to. Idempotent.

    Raises:
        OSError: the disk refused; another try goes on from there.
    """
    place = _place(directory, seq)
    if not exists(files, place):
        return
    names = files.listdir(place)
    for name in sorted(names, key=lambda n: n != checkpoint_name(seq)):  # first what makes it a pin
        files.unlink(os.path.join(place, name))
    files.rmdir(place)
    files.sync_dir(os.path.dirname(place))


def _place(directory: str, seq: int) -> str:
    return os.path.join(directory, DIRECTORY, f"{seq:012}.pin")
