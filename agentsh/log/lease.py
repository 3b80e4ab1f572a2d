"""The right to append to a session: a flock that the kernel gives back whatever becomes of the process.

The file `lock` is never unlinked while the session stands; its content only informs people.
"""

import errno
import json
import os
import time
from datetime import UTC, datetime

from agentsh.base.clock import timestamp
from agentsh.base.errors import SessionHeld
from agentsh.log.files import LOCK_FILE, READ, FileSystem
from agentsh.log.store import Holder

LOCK_NAME = "lock"
PATIENCE_S = 0.05
"""How long `take` goes on: somebody who asks for the holder has the lock for some microseconds."""
PAUSE_S = 0.002
MAX_CONTENT_BYTES = 4096

_NO_FLOCK = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})


class Lease:
    """A lease that is held. Where the file system knows no flock, only the writer's size check stands guard."""

    def __init__(self, files: FileSystem, fd: int) -> None:
        self._files = files
        self._fd = fd

    def release(self) -> None:
        """Give it back. Idempotent."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                self._files.truncate(fd, 0)
            except OSError:  # the content only informs
                pass
            finally:
                self._files.close(fd)


def take(files: FileSystem, directory: str, session: str) -> Lease:
    """Take the lease of a session, whose directory is there.

    Raises:
        SessionHeld: somebody has it.
        FileNotFoundError: the directory is gone.
        OSError: the lock file cannot be opened.
    """
    path = os.path.join(directory, LOCK_NAME)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        fd = files.open(path, LOCK_FILE)
        try:
            got = _locked(files, fd, exclusive=True)
            # The directory may have gone to the trash, and its name to another, between opening and locking.
            if got and files.stat(path).inode == files.fstat(fd).inode:
                _inform(files, fd)
                return Lease(files, fd)
            content = b"" if got else _content(files, fd)
        except BaseException:
            files.close(fd)
            raise
        files.close(fd)
        if time.monotonic() > deadline:
            holder = parse_holder(content)
            raise SessionHeld(
                f"session {session} is in use by {holder}",
                holder=str(holder),
                hint="follow it with `agentsh replay --follow`, or fork it",
            )
        time.sleep(PAUSE_S)


def holder_of(files: FileSystem, directory: str) -> Holder | None:
    """Return who has the lease right now, or None, without taking it."""
    try:
        fd = files.open(os.path.join(directory, LOCK_NAME), READ)
    except OSError:  # no lock file: nobody ever held it; one that we may not read: not ours to say
        return None
    try:
        if _locked(files, fd, exclusive=False):
            return None
        return parse_holder(_content(files, fd))
    except OSError:
        return None
    finally:
        files.close(fd)


def is_free(files: FileSystem, directory: str) -> bool:
    """Tell whether it is certain that nobody has the lease of a session right now: also where that is gone.

    False where nobody can tell: the file system knows no flock, or the lock of a session that is there was removed.
    """
    try:
        fd = files.open(os.path.join(directory, LOCK_NAME), READ)
    except FileNotFoundError:
        return _is_gone(files, directory)
    except OSError:
        return False
    try:
        return files.lock(fd, exclusive=False, wait=False)
    except OSError:
        return False
    finally:
        files.close(fd)


def _is_gone(files: FileSystem, directory: str) -> bool:
    try:
        files.stat(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _locked(files: FileSystem, fd: int, *, exclusive: bool) -> bool:
    try:
        return files.lock(fd, exclusive=exclusive, wait=False)
    except OSError as error:
        if error.errno in _NO_FLOCK:
            return True
        raise


def parse_holder(content: bytes) -> Holder:
    """Return what a lock file says. Never fails: it may be empty, torn, or from somebody else."""
    try:
        said = json.loads(content.rstrip(b"\0 \n"))
        pid, host, tty, since = (said.get(name) for name in ("pid", "host", "tty", "since"))
    except (ValueError, RecursionError, AttributeError):
        return Holder(0, "", None, "")
    return Holder(
        pid if type(pid) is int and pid > 0 else 0,
        host[:200] if isinstance(host, str) else "an unknown host",
        tty[:200] if isinstance(tty, str) else None,
        since[:40] if isinstance(since, str) else "an unknown time",
    )


def _content(files: FileSystem, fd: int) -> bytes:
    try:
        return files.read(fd, MAX_CONTENT_BYTES, 0)
    except OSError:
        return b""


def _inform(files: FileSystem, fd: int) -> None:
    """Write who we are. A full disk must not keep anybody from opening, so that failing is no matter."""
    said = {
        "pid": os.getpid(), "host": os.uname().nodename, "tty": _tty(), "since": timestamp(datetime.now(UTC)),
        "boot_id": _first_line(files, "/proc/sys/kernel/random/boot_id"), "start": _process_start(files),
    }  # fmt: skip
    try:
        files.truncate(fd, 0)
        files.write(fd, json.dumps(said).encode() + b"\n")
    except OSError:
        return


def _tty() -> str | None:
    for fd in (0, 1, 2):
        try:
            return os.ttyname(fd)
        except OSError:
            continue
    return None


def _process_start(files: FileSystem) -> int | None:
    """Return when this process began, in clock ticks since boot (proc(5), field 22), to tell a reused pid."""
    stat = _first_line(files, "/proc/self/stat")
    fields = stat.rpartition(")")[2].split() if stat else []
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else None


def _first_line(files: FileSystem, path: str) -> str | None:
    try:
        fd = files.open(path, READ)
    except OSError:
        return None
    try:
        return files.read(fd, 4096, 0).decode("utf-8", "replace").split("\n")[0]
    except OSError:
        return None
    finally:
        files.close(fd)
