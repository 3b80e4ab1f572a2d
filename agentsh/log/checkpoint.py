"""Checkpoints as files: folded state with the place in the log that it belongs to. Disposable; knows no state.

`checkpoints/SEQ.ckpt.zst` is one zstd frame with a content checksum. Its content is one line of JSON that says what
the log looked like there, under a crc of its own as in a segment's header, and behind it the state, whatever bytes
its owner made of it. Source: DESIGN section 4, "Checkpoints".
"""

import json
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from agentsh.log.chain import Anchor, Segment
from agentsh.log.files import READ, FileSystem, make_dirs
from agentsh.log.frame import CRC_TAIL, crc_fits, dump_json, with_crc
from agentsh.log.seekable import MAX_FRAME_BYTES, Packer, Unpacker
from agentsh.log.segment import chunks, discard, put
from agentsh.log.spill import MAX_LINE_BYTES

DIRECTORY = "checkpoints"
KEEP = 3
"""Checkpoints that stay, the newest. Source: DESIGN section 4."""
FORMAT = "agentsh-ckpt/1"
PROOF = ""
"""The reducer of a checkpoint without a state, which only proves that the log was that long."""

_NAME = re.compile(r"([0-9]{12,18})\.ckpt\.zst")


class Checkpoint(NamedTuple):
    """State folded from everything up to the anchor's line, that included. reducer: what folded it, and how."""

    anchor: Anchor
    session: str
    reducer: str
    state: bytes


def checkpoint_name(seq: int) -> str:
    """Return the name of the checkpoint of everything up to `seq`."""
    return f"{seq:012}.ckpt.zst"


def checkpoint_seqs(files: FileSystem, directory: str) -> list[int]:
    """Return the seqs of a session's checkpoints, newest first; none where there is no place for them yet."""
    try:
        names = files.listdir(os.path.join(directory, DIRECTORY))
    except OSError:
        return []
    return sorted((int(m[1]) for name in names if (m := _NAME.fullmatch(name))), reverse=True)


def write_checkpoint(files: FileSystem, directory: str, checkpoint: Checkpoint, *, keep: int = KEEP) -> str:
    """Write a checkpoint, durably and never half, remove those beyond `keep`, and return its name.

    A newer one is never removed for an older one's sake; what cannot be removed stays, until the next time.

    Raises:
        OSError: the disk refused; the checkpoints that were there are as before.
    """
    place = os.path.join(directory, DIRECTORY)
    make_dirs(files, place)
    name = checkpoint_name(checkpoint.anchor.seq)
    new = os.path.join(place, f"{name}.new")
    for leftover in files.listdir(place):
        if leftover.endswith(".new"):
            discard(files, os.path.join(place, leftover))
    put(files, os.path.join(place, name), new, [pack(checkpoint)])
    for seq in checkpoint_seqs(files, directory)[max(keep, 1) :]:
        if seq != checkpoint.anchor.seq:
            discard(files, os.path.join(place, checkpoint_name(seq)))
    return name


def read_checkpoint(files: FileSystem, directory: str, seq: int) -> Checkpoint | None:
    """Return a checkpoint as it was written, or None where it is missing or damaged; says nothing about the log."""
    found = read_packed(files, os.path.join(directory, DIRECTORY, checkpoint_name(seq)))
    return found if found is not None and found.anchor.seq == seq else None


def read_packed(files: FileSystem, path: str) -> Checkpoint | None:
    """Return the checkpoint in a file, or None where it is missing or damaged."""
    try:
        fd = files.open(path, READ)
    except OSError:
        return None
    try:
        packed = b"".join(chunks(files, fd, 0, MAX_FRAME_BYTES))
    except OSError:
        return None
    finally:
        files.close(fd)
    return unpack(packed)


def newest_valid(
    files: FileSystem, directory: str, session: str, segments: Sequence[Segment], *, reducer: str
) -> Checkpoint | None:
    """Return the newest checkpoint of this log that its own line in the log confirms, or None.

    segments: those of a `LogScan`. reducer: whoever folds today; what another has folded is passed over.

    Raises:
        OSError: a segment cannot be read.
    """
    for seq in checkpoint_seqs(files, directory):
        found = read_checkpoint(files, directory, seq)
        if found is None or found.reducer != reducer or found.session != session:
            continue
        if is_anchored(files, found.anchor, segments):
            return found
    return None


def is_anchored(files: FileSystem, anchor: Anchor, segments: Sequence[Segment]) -> bool:
    """Tell whether the anchor's line stands in the log where it says: so a checkpoint newer than, or foreign to,
    the log refuses itself.

    Raises:
        OSError: a segment cannot be read.
    """
    for segment in segments:
        if segment.ordinal == anchor.ordinal and segment.head.salt is not None:
            if segment.cap is not None and anchor.seq >= segment.cap:
                return False  # a rescue has said it again, or it is not of this fork
            line = _line_at(files, segment, anchor.offset)
            return (
                line.startswith(b'{"seq":%d,' % anchor.seq)
                and line[-CRC_TAIL:] == b',"crc":"%b"}\n' % anchor.crc.encode()
                and crc_fits(line, segment.head.salt)
            )
    return False


def _line_at(files: FileSystem, segment: Segment, offset: int) -> bytes:
    if segment.sealed is not None:
        data = segment.sealed.read_at(offset, MAX_LINE_BYTES)
    else:
        data = files.read(segment.fd, MAX_LINE_BYTES, offset)
    return data[: data.find(b"\n") + 1]


def pack(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of the file."""
    value = {
        "format": FORMAT, "session": checkpoint.session, "upto_seq": checkpoint.anchor.seq,
        "anchor": {
            "ordinal": checkpoint.anchor.ordinal, "offset": checkpoint.anchor.offset, "crc": checkpoint.anchor.crc,
        },
        "reducer": checkpoint.reducer, "state_sha256": sha256(checkpoint.state).hexdigest(),
    }  # fmt: skip
    return Packer().frame(with_crc(dump_json(value)[:-1], 0) + checkpoint.state)


def unpack(packed: bytes) -> Checkpoint | None:
    """Return what `pack` was given, or None where any of it is damaged."""
    whole = Unpacker().first_frame(packed)
    if whole is None or whole[1] != len(packed):
        return None
    content = whole[0]
    end = content.find(b"\n") + 1
    try:
        if not crc_fits(content[:end], 0):
            return None
        value = json.loads(content[:end])
        at = value["anchor"]
        numbers = value["upto_seq"], at["ordinal"], at["offset"]
        texts = at["crc"], value["session"], value["reducer"]
        if value["format"] != FORMAT or value["state_sha256"] != sha256(content[end:]).hexdigest():
            return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if any(type(n) is not int or n < 0 for n in numbers) or any(type(t) is not str for t in texts):
        return None
    return Checkpoint(Anchor(*numbers, texts[0]), texts[1], texts[2], content[end:])
