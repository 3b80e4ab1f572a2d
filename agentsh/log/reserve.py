"""Room that is kept for the last records of a disk that fills up: blocks behind the end of the open segment.

They are allocated with the file and not part of its size, so nobody else can have them: not the command that fills
the disk either, which a file to be deleted in need would only feed. A writer uses them up without noticing.
"""

import errno
import sys

from agentsh.log.files import FileSystem

RESERVE_BYTES = 128 << 10
"""The results of the calls of a step and the end of a turn: five of the longest lines."""
MIN_FREE_BYTES = 32 << 20
"""Below this, tools with effects are not started: they are what fills a disk."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk, a quota or a limit says that is full."""

NOT_HERE = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
"""What a file system says that allocates nothing ahead."""


def what_to_do(error: OSError) -> str | None:
    """Return a hint for somebody whose disk is full, None where it is something else."""
    return "free some space" if error.errno in NO_ROOM else None


class Reserve:
    """Keeps blocks ahead of one writer. size: 0 for none. Nothing here raises: a log works without.

    enough_upto: a file that ends there or before has room enough behind it, so that nobody need ask.
    """

    def __init__(self, files: FileSystem, size: int = RESERVE_BYTES) -> None:
        self._files = files
        self._size = size
        self._upto = 0
        self.enough_upto = 0 if size else sys.maxsize

    def keep_ahead(self, fd: int, end: int) -> None:
        """See to it that behind the offset `end` there is room, as long as the disk has any."""
        if end <= self.enough_upto:
            return
        try:
            self._files.reserve(fd, end, self._size)
        except OSError as error:
            if error.errno in NOT_HERE:
                self._size, self.enough_upto = 0, sys.maxsize
            return
        self._upto = end + self._size
        self.enough_upto = end + self._size - self._size // 2

    def gone(self) -> None:
        """Take note that the file was cut, or is another now: what was kept behind its end is not there any more."""
        self._upto = 0
        self.enough_upto = 0 if self._size else sys.maxsize

    def give_back(self, fd: int, end: int) -> None:
        """Give the blocks behind `end`, the end of the file as we left it, to everybody."""
        if self._upto > end:
            self.gone()
            try:
                if self._files.fstat(fd).size == end:
                    self._files.truncate(fd, end)
            except OSError:
                return
