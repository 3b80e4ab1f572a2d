"""Segments that archiving is about to remove unread: moved to quarantine where they hold what nothing else does.

Of a segment that stands there in both its forms the closed one is archived, and behind an archive its segments are
leftovers. Both are copies as a rule. But a copied, renamed or restored directory may hold others of that name.
"""

import os
from hashlib import sha256

from agentsh.log.files import READ, FileSystem
from agentsh.log.packed import NAME, is_archived, verified
from agentsh.log.recover import move_aside
from agentsh.log.sealed import SealedFile, raw_sha256
from agentsh.log.segment import SEALED, Closed, chunks, closed_segments


def keep_others(files: FileSystem, directory: str) -> None:
    """Leave only such segments as may go when a log is archived, or taken out of its archive.

    Raises:
        OSError: one cannot be read or moved; nothing is lost.
    """
    if is_archived(files, directory):
        beside = _forms(files, directory)
        found = verified(files, os.path.join(directory, NAME)) if beside else None
        hashes = {m.name: m.sha256 for m in found.members} if found is not None else {}
        for closed in beside if found is not None else ():  # beside a damaged one `unarchive` looks at them
            if raw_sha256(files, directory, closed) != hashes.get(closed.name.removesuffix(SEALED)):
                move_aside(files, directory, closed.name)
        return
    taken = {closed.name for closed in closed_segments(files.listdir(directory))}
    for closed in _forms(files, directory):
        if closed.name not in taken and not _in_the_closed_one(files, directory, closed):
            move_aside(files, directory, closed.name)


def _forms(files: FileSystem, directory: str) -> list[Closed]:
    """Return every file that has the name of a closed segment, of two forms both."""
    return [closed for name in sorted(files.listdir(directory)) for closed in closed_segments([name])]


def _in_the_closed_one(files: FileSystem, directory: str, twin: Closed) -> bool:
    """Tell whether the closed form begins with what a sealed one holds: of a fork's it may be more."""
    fd = files.open(os.path.join(directory, twin.name), READ)
    try:
        about = SealedFile(files, fd).description
    finally:
        files.close(fd)
    if about is None:
        return False
    digest = sha256()
    fd = files.open(os.path.join(directory, twin.name.removesuffix(SEALED)), READ)
    try:
        for chunk in chunks(files, fd, 0, about.raw_bytes):
            digest.update(chunk)
    finally:
        files.close(fd)
    return digest.hexdigest() == about.raw_sha256
