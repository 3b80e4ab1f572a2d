"""Checkpoints over a repair: they keep what the log has lost, so they must not lose their place in it.

A repair writes the log anew, and the place and the crc of every line change with it. A checkpoint whose line is
written anew gets that line's new place; its state stays as it is. So that an interrupted repair costs none, the new
form waits under another name until the repaired log has its own, and `adopt` goes on from there.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from agentsh.log.chain import Anchor, Segment
from agentsh.log.checkpoint import (
    DIRECTORY,
    PROOF,
    checkpoint_name,
    checkpoint_seqs,
    is_anchored,
    pack,
    read_checkpoint,
    read_packed,
)
from agentsh.log.files import CREATE, FileSystem, write_all
from agentsh.log.frame import CRC_TAIL
from agentsh.log.segment import discard

WAITING = ".moved"
"""What the name of a checkpoint ends in until the log that it is made for is there."""


def to_move(
    files: FileSystem, directory: str, session: str, segments: Sequence[Segment], first_seq: int, last_seq: int
) -> tuple[int, ...]:
    """Return the seqs of the checkpoints whose line a repair writes anew: those that hold now.

    And those that are ahead of the log, where nothing was written behind them: `agentsh.log.beyond`.
    first_seq: of the lines that are written anew. last_seq: of the last one that is left.

    Raises:
        OSError: a segment cannot be read.
    """
    found = []
    for seq in checkpoint_seqs(files, directory):
        if seq < first_seq or (one := read_checkpoint(files, directory, seq)) is None or one.session != session:
            continue
        if one.reducer == PROOF:  # it has no state to keep
            continue
        if seq > last_seq or is_anchored(files, one.anchor, segments):
            found.append(seq)
    return tuple(found)


def placed(
    lines: Iterable[bytes], ordinal: int, start: int, wanted: Sequence[int], found: dict[int, Anchor]
) -> Iterator[bytes]:
    """Pass lines on, and note in `found` where those of the wanted seqs stand. start: offset of the first one."""
    at, starts = start, {b'{"seq":%d,' % seq: seq for seq in wanted}
    for line in lines:
        if starts and (seq := starts.get(line[: line.find(b",") + 1])) is not None:
            crc = line[-CRC_TAIL:].removeprefix(b',"crc":"')[:8]
            found[seq] = Anchor(seq, ordinal, at, crc.decode())
        at += len(line)
        yield line


def prepare(files: FileSystem, directory: str, anchors: dict[int, Anchor]) -> None:
    """Write the checkpoints with their new places, durably, under names that nobody reads yet.

    Raises:
        OSError: the disk refused.
    """
    place = os.path.join(directory, DIRECTORY)
    for seq, anchor in anchors.items():
        one = read_checkpoint(files, directory, seq)
        if one is None:
            continue
        path = os.path.join(place, checkpoint_name(seq) + WAITING)
        discard(files, path)
        fd = files.open(path, CREATE)
        try:
            write_all(files, fd, pack(one._replace(anchor=anchor)))
            files.sync(fd)
        finally:
            files.close(fd)
    if anchors:
        files.sync_dir(place)


def adopt(files: FileSystem, directory: str, session: str, segments: Sequence[Segment]) -> None:
    """Give the checkpoints that wait for this log their names, and remove those that wait for another.

    Raises:
        OSError: the disk refused; another try goes on.
    """
    place = os.path.join(directory, DIRECTORY)
    try:
        waiting = [name for name in files.listdir(place) if name.endswith(WAITING)]
    except OSError:
        return
    for name in waiting:
        path = os.path.join(place, name)
        one = read_packed(files, path)
        if one is not None and one.session == session and is_anchored(files, one.anchor, segments):
            files.rename(path, os.path.join(place, checkpoint_name(one.anchor.seq)))
        else:
            with suppress(FileNotFoundError):
                files.unlink(path)
    if waiting:
        files.sync_dir(place)
