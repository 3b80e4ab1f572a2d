"""Lets everything that reads logs read an archived one: a file system in which its segments seem to be there.

The archive is unpacked once, into files that have no name, and they are gone with their descriptors.
"""

import os
from hashlib import sha256
from typing import BinaryIO

from agentsh.log.archive import NAME, contents, describe, is_archived
from agentsh.log.files import READ, FileSystem, RealFiles, Stat
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

    damage: what of the archive does not unpack, or None. The files end where it begins.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        import tempfile  # for archives only

        self._directory = directory
        self._members: dict[str, BinaryIO] = {}
        self.damage: Damage | None = None
        path = os.path.join(directory, NAME)
        description = describe(files, path)
        if description is None:
            self.damage = Damage(NAME, "archive", 0, 0, rot=True)
            return
        for member, pieces in contents(files, path, description, self._spoiled):
            file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
            digest, size = sha256(), 0
            for piece in pieces:
                size += file.write(piece)
                digest.update(piece)
            file.flush()
            if digest.hexdigest() != member.sha256 and self.damage is None:
                self.damage = Damage(f"{NAME}:{member.name}", "archive", member.bytes - size, 0, rot=True)
            self._members[os.path.join(directory, member.name)] = file

    def _spoiled(self) -> None:
        self.damage = self.damage or Damage(NAME, "archive", 0, 0, rot=True)

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
