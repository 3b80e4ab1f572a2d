"""Takes a log out of its archive: all of it, or what is left of it where the archive is damaged.

The step that decides is the renaming of `events.jsonl`, or, where nothing is left of that segment, of the archive.
Until then nothing has changed but names that nobody reads; after it what is left to do is tidying up, which `settle`
takes up again. A damaged archive is never removed: it goes to quarantine, whole. Blocks; the caller holds the lease.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from agentsh.log.archive import NEW, Unarchivable, content_of, sweep
from agentsh.log.beyond import seq_beyond
from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import PROOF, Checkpoint, checkpoint_seqs, write_checkpoint
from agentsh.log.files import CREATE, READ, FileSystem, make_dirs, write_all
from agentsh.log.packed import NAME, Contents, Member, Progress, TooNew, is_archived, verified
from agentsh.log.recover import QUARANTINE, move_aside
from agentsh.log.sealed import raw_sha256
from agentsh.log.segment import OPEN_NAME, SEALED, chunks, closed_segments, discard, exists

BACK = ".back"
"""What a segment's name ends with that comes out of an archive, until all of them are there."""


class Taken(NamedTuple):
    """What became of an archive. kept: its name in quarantine, where it was damaged or held what the log does not.

    whole: all of its content came back.
    """

    kept: str | None = None
    whole: bool = True


class _Came(NamedTuple):
    """A member as it came out, under its name with BACK if `there`. whole: it is what it was."""

    member: Member
    there: bool
    whole: bool
    sha256: str


def unarchive(
    files: FileSystem, directory: str, progress: Progress = lambda _: None, *, of_nothing: bool = False
) -> Taken:
    """Put the segments of an archive back in their places, each to the byte what it was, and remove the archive.

    All of it is unpacked, compared and synced under other names before anything else is touched. What of a damaged
    archive does not unpack is missing then; the archive goes to quarantine, and where it says how long the log was,
    a checkpoint without a state goes on saying so, so that opening tells what is missing and no seq is used again.
    of_nothing: also where nothing at all is left.

    Raises:
        Unarchivable: nothing of it is left; nothing has changed.
        TooNew: the archive is of a newer format.
        OSError: the disk refused; the log is as it was, or in its place.
    """
    came: list[_Came] = []
    try:
        with Contents(files, os.path.join(directory, NAME)) as contents:
            for member, pieces in contents.parts():
                came.append(_unpack(files, directory, member, pieces, progress))
        whole = bool(came) and all(one.whole for one in came) and (contents.told or contents.ended)
        if whole and contents.flawless:
            sweep(files, directory)  # or a sealed twin of an earlier time would stand beside what comes back
            _put_back(files, directory, came)
            discard(files, os.path.join(directory, NAME))
            files.sync_dir(directory)
            return Taken()
        better = _better(files, directory, came, contents.told or contents.ended)
        if not (of_nothing or better or any(one.there for one in came)):
            raise Unarchivable(f"nothing of {NAME} unpacks")
        make_dirs(files, os.path.join(directory, QUARANTINE))
        if not whole:
            _prove(files, directory, contents.description.last_seq)
        _tidy(files, directory, came, better)
    except BaseException:
        _forget(files, directory)
        raise
    _put_back(files, directory, [one for one in came if one.member.name not in better])
    return Taken(_set_aside(files, directory), whole)


def settle(files: FileSystem, directory: str) -> Taken:
    """Before anything is written to a log: take an archive back, or remove one that is not the log any more.

    One that is damaged, or holds what is not in the log, goes to quarantine instead.

    Raises:
        Unarchivable, TooNew, OSError: as `unarchive`.
    """
    if is_archived(files, directory):
        return unarchive(files, directory)
    if not exists(files, os.path.join(directory, NAME)):
        return Taken()
    if not _is_copy(files, directory):
        make_dirs(files, os.path.join(directory, QUARANTINE))
        return Taken(_set_aside(files, directory))
    files.unlink(os.path.join(directory, NAME))
    files.sync_dir(directory)
    return Taken()


def _unpack(
    files: FileSystem, directory: str, member: Member, pieces: Iterator[bytes], progress: Progress
) -> _Came:  # fmt: skip
    path = os.path.join(directory, member.name + BACK)
    discard(files, path)
    fd = files.open(path, CREATE)
    try:
        digest, size = sha256(), 0
        for piece in pieces:
            digest.update(piece)
            write_all(files, fd, piece)
            size += len(piece)
            progress(len(piece))
        files.sync(fd)
    finally:
        files.close(fd)
    whole = digest.hexdigest() == member.sha256 if member.sha256 else size == member.bytes
    if not size and not whole:
        discard(files, path)
    return _Came(member, size > 0 or whole, whole, digest.hexdigest())


def _put_back(files: FileSystem, directory: str, came: list[_Came]) -> None:
    """Give the segments that came out their names, the open one last."""
    names = [one.member.name for one in came if one.there]
    for name in names:
        if name != OPEN_NAME:
            files.rename(os.path.join(directory, name + BACK), os.path.join(directory, name))
    files.sync_dir(directory)
    if OPEN_NAME in names:
        files.rename(os.path.join(directory, OPEN_NAME + BACK), os.path.join(directory, OPEN_NAME))
        files.sync_dir(directory)


def _better(files: FileSystem, directory: str, came: list[_Came], all_known: bool) -> dict[str, str]:
    """Return the closed segments beside a damaged archive that hold what it has lost, by the names of members.

    They are there where archiving died before they were removed. all_known: there were no other members than those.
    """
    known = {one.member.name: one for one in came}
    found: dict[str, str] = {}
    for closed in closed_segments(files.listdir(directory)):
        plain = closed.name.removesuffix(SEALED)
        one = known.get(plain)
        if one is None:
            if not all_known:
                found[plain] = closed.name
        elif not one.there or (not one.whole and _hash(files, directory, closed.name) == one.member.sha256):
            found[plain] = closed.name
    return found


def _tidy(files: FileSystem, directory: str, came: list[_Came], better: dict[str, str]) -> None:
    """Clear the places of what comes back: nothing goes that is not in the archive as well."""
    known = {one.member.name: one for one in came}
    for name in files.listdir(directory):
        if not closed_segments([name]):
            wanted = name.removesuffix(BACK)
            unwanted = wanted != name and (wanted in better or not (wanted in known and known[wanted].there))
            if unwanted or closed_segments([name.removesuffix(NEW)]):
                discard(files, os.path.join(directory, name))
            continue
        one = known.get(name.removesuffix(SEALED))
        if name in better.values():
            continue
        if one is not None and one.there and _hash(files, directory, name) == one.sha256:
            discard(files, os.path.join(directory, name))
        else:
            move_aside(files, directory, name)
    files.sync_dir(directory)


def _hash(files: FileSystem, directory: str, name: str) -> str | None:
    """Return the hash of a segment's content, or None where it does not unpack."""
    digest = sha256()
    try:
        for piece in content_of(files, os.path.join(directory, name)):
            digest.update(piece)
    except Unarchivable:
        return None
    return digest.hexdigest()


def _prove(files: FileSystem, directory: str, last_seq: int) -> None:
    """Keep on record how long the log was: `agentsh.log.beyond`."""
    session = os.path.basename(directory)
    if not last_seq or seq_beyond(files, directory, session, last_seq - 1, checkpoint_seqs(files, directory)):
        return
    write_checkpoint(
        files, directory, Checkpoint(Anchor(last_seq, 0, 0, "00000000"), session, PROOF, b""), keep=1 << 30
    )


def _set_aside(files: FileSystem, directory: str) -> str:
    """Move the archive to quarantine, which is there, and return its name there. It takes no room."""
    path, place = os.path.join(directory, NAME), os.path.join(directory, QUARANTINE)
    inode, taken, n = files.stat(path).inode, files.listdir(place), 0
    name = next((name for name in taken if files.stat(os.path.join(place, name)).inode == inode), "")
    if not name:  # else somebody was killed in the middle of this
        name = NAME
        while name in taken:
            n += 1
            name = f"archive.{n}.jsonl.zst"
        try:
            files.link(path, os.path.join(place, name))
        except FileExistsError:
            raise
        except OSError:  # the file system has no links
            files.rename(path, os.path.join(place, name))
    files.sync_dir(place)
    if exists(files, path):
        files.unlink(path)
    files.sync_dir(directory)
    return name


def _forget(files: FileSystem, directory: str) -> None:
    """Remove what was unpacked in vain."""
    with suppress(OSError):
        for name in files.listdir(directory):
            if name.endswith(BACK):
                discard(files, os.path.join(directory, name))


def _is_copy(files: FileSystem, directory: str) -> bool:
    """Tell whether an archive is whole and in the log as well: each segment is there, to the byte what it is in it.

    The open one may go on behind that.
    """
    try:
        description = verified(files, os.path.join(directory, NAME))
    except TooNew:
        return False
    if description is None:
        return False
    *closed, last = description.members
    there = {one.name.removesuffix(SEALED): one for one in closed_segments(files.listdir(directory))}
    for member in closed:  # one may be damaged by now, and the archive the only copy of what that held
        if member.name not in there or raw_sha256(files, directory, there[member.name]) != member.sha256:
            return False
    fd = files.open(os.path.join(directory, OPEN_NAME), READ)
    try:
        digest = sha256()
        for chunk in chunks(files, fd, 0, last.bytes):
            digest.update(chunk)
    finally:
        files.close(fd)
    return digest.hexdigest() == last.sha256
