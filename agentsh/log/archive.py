"""A whole log as one file: what every segment holds, in one frame of zstd with long-distance matching.

While `events.jsonl` is there, it and the closed segments are the log, and an archive beside them is one that is
being made, or was taken back. Where it is not, the archive is the log, and closed segments beside it are leftovers.
So each way has one step that decides: archiving ends the removal of `events.jsonl`, taking back the renaming of it.
Normative: docs/log-format.md. Blocks; the caller holds the lease.
"""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from agentsh.log.files import CREATE, READ, FileSystem, write_all
from agentsh.log.frame import crc_fits, dump_json, with_crc
from agentsh.log.recover import move_aside
from agentsh.log.sealed import SealedFile
from agentsh.log.seekable import DESCRIPTION_MAGIC, SKIPPABLE_HEADER, skippable
from agentsh.log.segment import OPEN_NAME, SEALED, chunks, closed_segments, discard, exists

NAME = "archive.jsonl.zst"
NEW = ".new"
BACK = ".back"
"""What a segment's name ends with that comes out of an archive, until all of them are there."""
FORMAT = "agentsh-archive/1"
LEVEL = 9
"""zstd level. Archiving is asked for and may take its time: 40 MB/s, and 3 points more saved than at level 3."""
WINDOW_LOG = 27
"""128 MiB: as far back as `zstd -dc` looks without being told to; so repeats are found over whole sessions."""
READ_BYTES = 64 << 10
"""Packed bytes at a time: what is lost behind a damaged place, at most, of what came before it."""
MAX_DESCRIPTION = 16 << 20

Progress = Callable[[int], None]
"""Is told how many bytes of content are done."""


class Unarchivable(Exception):
    """A segment is damaged in such a way that its content cannot be told: the log stays as it is."""


class Member(NamedTuple):
    """A segment in an archive. name: of its plain file."""

    name: str
    bytes: int
    sha256: str


class Description(NamedTuple):
    """What an archive says of itself. facts: whatever its maker wants to know of it without unpacking.

    frame_at: where the frame begins in the file.
    """

    session: str
    members: tuple[Member, ...]
    facts: Mapping[str, Any]
    frame_at: int

    @property
    def raw_bytes(self) -> int:
        """Size of the content."""
        return sum(member.bytes for member in self.members)


def is_archived(files: FileSystem, directory: str) -> bool:
    """Tell whether the archive of a session is its log.

    Raises:
        OSError: the directory cannot be read.
    """
    return not exists(files, os.path.join(directory, OPEN_NAME)) and exists(files, os.path.join(directory, NAME))


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
    members = []
    for name in sources:
        digest, size = sha256(), 0
        for chunk in _content(files, os.path.join(directory, name)):
            digest.update(chunk)
            size += len(chunk)
            progress(len(chunk))
        members.append(Member(name.removesuffix(".zst"), size, digest.hexdigest()))
    try:
        _write(files, directory, new, session, sources, members, facts, progress)
        found = verified(files, new, progress)
        if found is None or found.members != tuple(members):
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


def sweep(files: FileSystem, directory: str) -> None:
    """Remove the closed segments beside an archive that is the log; what cannot go is a leftover until next time.

    Raises:
        OSError: the directory cannot be synced.
    """
    for name in files.listdir(directory):
        if closed_segments([name.removesuffix(NEW)]):
            discard(files, os.path.join(directory, name))
    files.sync_dir(directory)


def unarchive(files: FileSystem, directory: str, progress: Progress = lambda _: None) -> None:
    """Put the segments of an archive back in their places, each to the byte what it was, and remove the archive.

    All of it is unpacked, compared and synced under other names before anything else is touched. Every segment has a
    hash, so that an end that does not hold behind them is no matter.

    Raises:
        Unarchivable: the archive is damaged; nothing has changed.
        OSError: the disk refused; the log is whole, in one form or the other.
    """
    path = os.path.join(directory, NAME)
    description = describe(files, path)
    if description is None:
        raise Unarchivable(f"{NAME} is damaged: its first bytes do not read")
    targets = [os.path.join(directory, member.name) for member in description.members]
    try:
        stream = _Stream(_frame(files, path, description))
        for member, target in zip(description.members, targets, strict=True):
            _unpack(files, stream, member, target + BACK, progress)
    except BaseException:
        for target in targets:
            discard(files, target + BACK)
        raise
    sweep(files, directory)  # or a sealed twin of an earlier time would stand beside what comes back
    for target in targets[:-1]:
        files.rename(target + BACK, target)
    files.sync_dir(directory)
    files.rename(targets[-1] + BACK, targets[-1])
    files.sync_dir(directory)
    discard(files, path)
    files.sync_dir(directory)


def _unpack(files: FileSystem, stream: "_Stream", member: Member, path: str, progress: Progress) -> None:
    discard(files, path)
    fd = files.open(path, CREATE)
    try:
        digest = sha256()
        for piece in stream.take(member.bytes):
            digest.update(piece)
            write_all(files, fd, piece)
            progress(len(piece))
        if digest.hexdigest() != member.sha256:
            raise Unarchivable(f"{NAME} is damaged: {member.name} in it does not unpack")
        files.sync(fd)
    finally:
        files.close(fd)


def settle(files: FileSystem, directory: str) -> None:
    """Before anything is written to a log: take an archive back, or remove one that is not the log any more.

    One that holds what is not in the log goes to quarantine instead.

    Raises:
        Unarchivable, OSError: as `unarchive`.
    """
    if is_archived(files, directory):
        unarchive(files, directory)
    elif exists(files, os.path.join(directory, NAME)):
        if _is_copy(files, directory):
            files.unlink(os.path.join(directory, NAME))
            files.sync_dir(directory)
        else:
            move_aside(files, directory, NAME)


def _is_copy(files: FileSystem, directory: str) -> bool:
    """Tell whether what an archive holds is in the log as well: its segments are there, the open one to the byte."""
    description = describe(files, os.path.join(directory, NAME))
    if description is None or not description.members:
        return False
    *closed, last = description.members
    plain = {c.name.removesuffix(SEALED) for c in closed_segments(files.listdir(directory))}
    if last.name != OPEN_NAME or not {member.name for member in closed} <= plain:
        return False
    fd = files.open(os.path.join(directory, OPEN_NAME), READ)
    try:
        digest = sha256()
        for chunk in chunks(files, fd, 0, last.bytes):
            digest.update(chunk)
    finally:
        files.close(fd)
    return digest.hexdigest() == last.sha256


def describe(files: FileSystem, path: str) -> Description | None:
    """Return what an archive says of itself, or None where that is damaged.

    Raises:
        OSError: it cannot be read.
    """
    fd = files.open(path, READ)
    try:
        start = files.read(fd, SKIPPABLE_HEADER.size, 0)
        if len(start) < SKIPPABLE_HEADER.size:
            return None
        magic, size = SKIPPABLE_HEADER.unpack(start)
        if magic != DESCRIPTION_MAGIC or size > MAX_DESCRIPTION:
            return None
        return _read_description(files.read(fd, size, SKIPPABLE_HEADER.size), SKIPPABLE_HEADER.size + size)
    finally:
        files.close(fd)


def contents(
    files: FileSystem, path: str, description: Description, spoiled: Callable[[], None] = lambda: None
) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield each member with its content, which has to be taken before the next; shorter where it is damaged.

    spoiled: is called where something is wrong behind the last of them.
    """
    stream = _Stream(_frame(files, path, description))
    for member in description.members:
        yield member, stream.take(member.bytes)
    if not stream.ended():
        spoiled()


def verified(files: FileSystem, path: str, progress: Progress = lambda _: None) -> Description | None:
    """Return what an archive says of itself where all of it is true, else None.

    Raises:
        OSError: it cannot be read.
    """
    description = describe(files, path)
    if description is None:
        return None
    stream = _Stream(_frame(files, path, description))
    for member in description.members:
        digest = sha256()
        for piece in stream.take(member.bytes):
            digest.update(piece)
            progress(len(piece))
        if digest.hexdigest() != member.sha256:
            return None
    return description if stream.ended() else None


class _Stream:
    """Unpacked bytes, taken by length. Ends early where the frame is damaged."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def take(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    return
            piece, self._rest = self._rest[:size], self._rest[size:]
            size -= len(piece)
            yield piece

    def ended(self) -> bool:
        """Tell whether nothing is left, and the frame's own checksum held."""
        try:
            while not self._rest:
                self._rest = next(self._pieces)
        except StopIteration as end:
            return end.value is True
        return False


def _frame(files: FileSystem, path: str, description: Description) -> Generator[bytes, None, bool]:
    """Yield what the frame holds; the generator returns whether all of it did."""
    import zstandard

    frame = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).decompressobj()
    fd = files.open(path, READ)
    try:
        at = description.frame_at
        while packed := files.read(fd, READ_BYTES, at):
            at += len(packed)
            try:
                piece = frame.decompress(packed)
            except (zstandard.ZstdError, MemoryError):
                return False
            if piece:  # none as long as a block is not whole
                yield piece
            if frame.eof:
                return not frame.unused_data and not files.read(fd, 1, at)
        return False
    finally:
        files.close(fd)


def _write(
    files: FileSystem, directory: str, new: str, session: str, sources: list[str], members: list[Member],
    facts: Mapping[str, Any], progress: Progress,
) -> None:  # fmt: skip
    import zstandard

    size = sum(member.bytes for member in members)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, source_size=size, window_log=min(WINDOW_LOG, max(size.bit_length(), 10)), enable_ldm=True,
        write_content_size=True, write_checksum=True,
    )  # fmt: skip
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)
    about = {
        "format": FORMAT, "session": session, "members": [member._asdict() for member in members],
        "facts": dict(facts),
    }  # fmt: skip
    fd = files.open(new, CREATE)
    try:
        write_all(files, fd, skippable(DESCRIPTION_MAGIC, with_crc(dump_json(about)[:-1], 0)))
        for name in sources:
            for chunk in _content(files, os.path.join(directory, name)):
                if packed := frame.compress(chunk):
                    write_all(files, fd, packed)
                progress(len(chunk))
        write_all(files, fd, frame.flush())
        files.sync(fd)
    except zstandard.ZstdError as error:  # the content is longer or shorter than a moment ago
        raise OSError(f"the log in {directory} changes: {error}") from None
    finally:
        files.close(fd)


def _content(files: FileSystem, path: str) -> Iterator[bytes]:
    """Yield the content of a segment, whatever its form."""
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


def _read_description(line: bytes, frame_at: int) -> Description | None:
    try:
        if not crc_fits(line, 0):
            return None
        value = json.loads(line)
        members = tuple(Member(str(m["name"]), int(m["bytes"]), str(m["sha256"])) for m in value["members"])
        found = Description(str(value["session"]), members, dict(value["facts"]), frame_at)
        if value["format"] != FORMAT:
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    names = [member.name for member in members]
    closed = [c.name for c in closed_segments(names) if not c.sealed]
    if sorted(names) != sorted([*closed, OPEN_NAME]) or len(set(names)) != len(names):
        return None
    return found if names[-1:] == [OPEN_NAME] and all(member.bytes >= 0 for member in members) else None
