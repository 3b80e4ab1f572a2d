"""Makes a log one file: what every segment holds, in one frame of zstd with long-distance matching, and parity.

While `events.jsonl` is there, it and the closed segments are the log, and an archive beside them is one that is
being made, or was taken back. Where it is not, the archive is the log, and closed segments beside it are leftovers.
So each way has one step that decides: archiving ends the removal of `events.jsonl`, taking back (`unarchive`) the
renaming of it. Normative: docs/log-format.md. Blocks; the caller holds the lease.
"""

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from agentsh.log.beyond import seq_beyond
from agentsh.log.checkpoint import checkpoint_seqs
from agentsh.log.files import CREATE, READ, FileSystem, write_all
from agentsh.log.head import HEAD_BYTES, read_head
from agentsh.log.packed import NAME, Description, Member, Progress, compressor, verified
from agentsh.log.parity import parity
from agentsh.log.scan import last_seq_in
from agentsh.log.sealed import SealedFile
from agentsh.log.segment import OPEN_NAME, SEALED, chunks, closed_segments, discard

NEW = ".new"
END_BYTES = 64 << 10
"""Of a segment that are looked at for its last record."""


class Unarchivable(Exception):
    """A segment, or all of an archive, does not unpack: the log stays as it is."""


def archive(
    files: FileSystem, directory: str, session: str, facts: Mapping[str, Any], progress: Progress = lambda _: None
) -> Description:
    """Turn the segments of a log, which has an open one, into an archive.

    hash → write a file of another name → sync → read it back, unpack, compare → rename → sync the directory → remove
    `events.jsonl`, sync the directory → remove the closed segments, sync the directory.

    Raises:
        Unarchivable: a sealed segment does not unpack; nothing has changed.
        OSError: the disk refused; the log is whole, in one form or the other.
    """
    path = os.path.join(directory, NAME)
    new = path + NEW
    discard(files, new)
    sources = [closed.name for closed in closed_segments(files.listdir(directory))] + [OPEN_NAME]
    members, last = [], 0
    for name in sources:
        member, seq = _measured(files, os.path.join(directory, name), progress)
        members.append(member)
        last = last if seq is None else seq
    last = max(last, seq_beyond(files, directory, session, last, checkpoint_seqs(files, directory)))
    about = Description(session, tuple(members), facts, 0, last, parity=True)
    try:
        _write(files, directory, new, sources, about, progress)
        found = verified(files, new, progress)
        if found is None or found.members != about.members:
            raise OSError(f"{new} does not read as it was written")
        files.rename(new, path)
    except BaseException:
        discard(files, new)
        raise
    files.sync_dir(directory)
    files.unlink(os.path.join(directory, OPEN_NAME))
    files.sync_dir(directory)
    sweep(files, directory)
    return found


def _measured(files: FileSystem, path: str, progress: Progress) -> tuple[Member, int | None]:
    """Return a segment as a member, and the seq that the log has at its end, None where it does not tell."""
    digest, size, salt, end = sha256(), 0, 0, b""
    last: int | None = None
    for chunk in content_of(files, path):
        if not size:
            head = read_head(chunk[:HEAD_BYTES])
            salt = head.salt or 0
            last = head.header.first_seq - 1 if head.header is not None else None
        digest.update(chunk)
        size += len(chunk)
        end = (end + chunk)[-END_BYTES:]
        progress(len(chunk))
    seqs = (last_seq_in(line + b"\n", salt) for line in reversed(end.split(b"\n")))
    last = next((seq for seq in seqs if seq is not None), last)
    return Member(os.path.basename(path).removesuffix(SEALED), size, digest.hexdigest()), last


def _write(
    files: FileSystem, directory: str, new: str, sources: list[str], about: Description, progress: Progress
) -> None:
    import zstandard

    frame = compressor(about.raw_bytes)
    fd = files.open(new, CREATE)
    try:
        write_all(files, fd, about.packed())
        for name in sources:
            for chunk in content_of(files, os.path.join(directory, name)):
                if packed := frame.compress(chunk):
                    write_all(files, fd, packed)
                progress(len(chunk))
        write_all(files, fd, frame.flush())
        written = files.open(new, READ)
        try:
            write_all(files, fd, parity(files, written, files.fstat(written).size))
        finally:
            files.close(written)
        files.sync(fd)
    except zstandard.ZstdError as error:  # the content is longer or shorter than a moment ago
        raise OSError(f"the log in {directory} changes: {error}") from None
    finally:
        files.close(fd)


def sweep(files: FileSystem, directory: str) -> None:
    """Remove the closed segments beside an archive that is the log; what cannot go is a leftover until next time.

    Raises:
        OSError: the directory cannot be synced.
    """
    for name in files.listdir(directory):
        if closed_segments([name.removesuffix(NEW)]):
            discard(files, os.path.join(directory, name))
    files.sync_dir(directory)


def content_of(files: FileSystem, path: str) -> Iterator[bytes]:
    """Yield the content of a segment, whatever its form.

    Raises:
        Unarchivable: it is sealed, and damaged.
        OSError: it cannot be read.
    """
    fd = files.open(path, READ)
    try:
        if not path.endswith(".zst"):
            yield from chunks(files, fd, 0)
            return
        sealed = SealedFile(files, fd)
        for frame in sealed.frames:
            content = sealed.unpack(frame)
            if content is None or not sealed.whole:
                raise Unarchivable(f"{os.path.basename(path)} is damaged")
            yield content
    finally:
        files.close(fd)
