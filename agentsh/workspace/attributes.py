"""Extended attributes and access lists of files that get a new inode: what their owner has set goes along."""

import os
from contextlib import suppress

_KEPT = ("user.", "system.posix_acl_access")
"""Not those of `security` and `trusted`: labels are the system's, and capabilities are not for changed content."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def carry(source: int, target: int) -> None:
    """Give one open file the attributes of another, as far as the file system takes them. Linux only."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for name in os.listxattr(source):
            if name.startswith(_KEPT):
                with suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))


def carry_from(directory: int, name: str, target: int) -> None:
    """Give an open file the attributes of the one at a name, if there is one that can be read."""
    try:
        source = os.open(name, _READ, dir_fd=directory)
    except OSError:
        return
    try:
        carry(source, target)
    finally:
        os.close(source)
