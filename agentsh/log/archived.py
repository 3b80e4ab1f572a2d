"""Lets everything that reads logs read an archived one: a file system in which its segments seem to be there.

The archive is unpacked once, into files that have no name, and they are gone with their descriptors.
"""

import os
import tempfile
from typing import BinaryIO

from agentsh.log.archive import NAME, contents, describe, is_archived
from agentsh.log.files import READ, FileSystem, RealFiles, Stat
from agentsh.log.segment import OPEN_NAME, closed_segments


def reading(files: FileSystem, directory: str) -> "FileSystem | ArchivedFiles":
    """Return the file system to read a session's log through: `files` itself, unless it is archived.

    Raises:
        OSError: the archive cannot be read at all, or there is no room to unpack it.
    """
    return ArchivedFiles(files, directory) if is_archived(files, directory) else files


class ArchivedFiles(RealFiles):
    """The machine's file system, with the segments of one archived log in their places; for reading only.

    damage: what of the archive does not unpack, in words, or None. The files end where it begins.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._directory = directory
        self._members: dict[str, BinaryIO] = {}
        self.damage: str | None = None
        path = os.path.join(directory, NAME)
        description = describe(files, path)
        if description is None:
            self.damage = "its first bytes do not read"
            return
        for member, pieces in contents(files, path, description):
            file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
            size = sum(file.write(piece) for piece in pieces)
            file.flush()
            if size < member.bytes and self.damage is None:
                self.damage = f"{member.name} in it does not unpack from byte {size:,} on"
            self._members[os.path.join(directory, member.name)] = file

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
