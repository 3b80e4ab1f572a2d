"""Lets everything that reads logs read an archived one: a file system in which its segments seem to be there.

The archive is unpacked once, into files that have no name, and they are gone with their descriptors.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import BinaryIO

from agentsh.log.files import READ, FileSystem, RealFiles, Stat
from agentsh.log.packed import NAME, Contents, Member, TooNew, is_archived
from agentsh.log.segment import OPEN_NAME, closed_segments
from agentsh.log.store import Damage


def reading(files: FileSystem, directory: str) -> FileSystem:
    """Return the file system to read a session's log through: `files` itself, unless it is archived.

    Raises:
        OSError: the archive cannot be read at all, or there is no room to unpack it.
    """
    return ArchivedFiles(files, directory) if is_archived(files, directory) else files


def archive_damage(files: FileSystem) -> tuple[Damage, ...]:
    """Return what is wrong with the archive that `files` reads, if it reads one."""
    return (files.damage,) if isinstance(files, ArchivedFiles) and files.damage is not None else ()


class ArchivedFiles(RealFiles):
    """The machine's file system, with the segments of one archived log in their places; for reading only.

    damage: what of the archive does not unpack, or that all of it does in spite of bad bytes (`scratch`), or None.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._directory = directory
        self._members: dict[str, BinaryIO] = {}
        self.damage: Damage | None = None
        lost: Damage | None = None
        try:
            with Contents(files, os.path.join(directory, NAME)) as contents:
                for member, pieces in contents.parts():
                    short = self._unpack(member, pieces)
                    if short is not None and lost is None:
                        lost = Damage(f"{NAME}:{member.name}", "archive", short, 0, rot=True)
        except TooNew:
            self.damage = Damage(NAME, "newer", 0, 0)
            return
        if lost is None and not contents.told and not contents.ended:
            lost = Damage(NAME, "archive", 0, 0, rot=True)
        self.damage = lost if lost or contents.flawless else Damage(NAME, "scratch", 0, 0, rot=True)

    def _unpack(self, member: Member, pieces: Iterator[bytes]) -> int | None:
        """Take what there is of a segment; return how many bytes of it are missing, None where it is what it was."""
        import tempfile  # for archives only

        file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        digest, size = sha256(), 0
        try:
            for piece in pieces:
                size += file.write(piece)
                digest.update(piece)
            file.flush()
        except BaseException:
            with suppress(OSError):  # it tries once more to write what it holds
                file.close()
            raise
        whole = digest.hexdigest() == member.sha256 if member.sha256 else size == member.bytes
        if size or whole:
            self._members[os.path.join(self._directory, member.name)] = file
        else:
            file.close()
        return None if whole else member.bytes - size

    def __del__(self) -> None:
        for file in self._members.values():
            file.close()

    def open(self, path: str, flags: int) -> int:
        """Open a segment of the archive, or a file."""
        file = self._members.get(path)
        if file is None or flags != READ:
            return super().open(path, flags)
        return os.dup(file.fileno())

    def stat(self, path: str) -> Stat:
        """Describe a segment of the archive, or a name."""
        file = self._members.get(path)
        return super().stat(path) if file is None else self.fstat(file.fileno())

    def listdir(self, path: str) -> list[str]:
        """Return the names, with the segments of the archive and without leftovers of others."""
        names = super().listdir(path)
        if path != self._directory:
            return names
        others = [name for name in names if name != OPEN_NAME and not closed_segments([name])]
        return [*others, *map(os.path.basename, self._members)]
