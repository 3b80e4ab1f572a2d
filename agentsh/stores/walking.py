"""Goes through a log to its end, or back from there, with what the disk says in our own words."""

import os
from collections.abc import Iterator

from agentsh.base.errors import SessionReadOnly
from agentsh.log.back import newest_first
from agentsh.log.chain import LogScan
from agentsh.log.files import FileSystem


def until_the_end(scan: LogScan, after_seq: int) -> Iterator[tuple[int, bytes]]:
    """Yield (seq, line) beyond `after_seq`, and close the scan.

    Raises:
        SessionReadOnly: the disk refused.
    """
    try:
        for seq, text, _, _ in scan.entries(after_seq):
            if seq > after_seq:
                yield seq, text + b"\n"
    except OSError as error:
        raise unreadable(scan.session, error) from error
    finally:
        scan.close()


def back(files: FileSystem, scan: LogScan) -> Iterator[bytes]:
    """Yield the lines from the last one back, and close the scan.

    Raises:
        SessionReadOnly: the disk refused.
    """
    try:
        yield from newest_first(files, scan)
    except OSError as error:
        raise unreadable(scan.session, error) from error
    finally:
        scan.close()


def unreadable(session: str, error: OSError) -> SessionReadOnly:
    """Return what to say of a log that the disk does not give."""
    return SessionReadOnly(f"cannot read session {session}: {why(error)}")


def why(error: OSError) -> str:
    """Return what the disk said, and of which file where it told that."""
    name = os.path.basename(error.filename) if isinstance(error.filename, str) else ""
    return f"{name + ': ' if name else ''}{error.strerror or error}"
