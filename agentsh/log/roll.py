"""Changes the open segment for a new one, so that a crash between any two steps leaves a log with nothing lost."""

import os
from contextlib import suppress

from agentsh.log.files import FileSystem
from agentsh.log.recover import OpenSegment
from agentsh.log.segment import OPEN_NAME, begin_segment, close_segment, closed_name, exists, file_sha256, new_header

SEGMENT_BYTES = 64 << 20
"""A segment that is at least as long as this is closed at the end of a turn. Source: DESIGN section 4."""


def roll(
    files: FileSystem, directory: str, session: str, old: OpenSegment, *, size: int, last_seq: int, by: str
) -> OpenSegment:
    """Close `old`, whose lines are all durable, and begin the segment behind it. size: of the file as we left it.

    The steps: hash, rename, sync the directory; create, write and sync the header, sync the directory again.
    A log without an open segment, or with one whose header is half there, is whole and known to every reader.

    Raises:
        OSError: the disk refused, or the file is not as we left it. `old` is to be written further; where it could
            not get its name back it is read all the same, under the closed one.
    """
    path = os.path.join(directory, OPEN_NAME)
    here = files.fstat(old.fd)
    if here.size != size or files.stat(path).inode != here.inode:
        raise OSError(f"{path} is not the file that was written")
    before = file_sha256(files, path)
    ordinal, first_seq = old.ordinal + 1, last_seq + 1
    header = new_header(session, ordinal=ordinal, first_seq=first_seq, by=by, prev_sha256=before)
    try:
        close_segment(files, directory, old.ordinal, old.first_seq)
        fd = begin_segment(files, directory, header)
    except OSError:
        take_back(files, directory, old)
        raise
    return OpenSegment(fd, len(header.raw), header.salt, ordinal, first_seq)


def take_back(files: FileSystem, directory: str, old: OpenSegment) -> None:
    """Give the old segment its open name again, unless a new one has it; else the next opening does."""
    closed = os.path.join(directory, closed_name(old.ordinal, old.first_seq))
    target = os.path.join(directory, OPEN_NAME)
    with suppress(OSError):
        if not exists(files, target):
            files.rename(closed, target)
            files.sync_dir(directory)
