"""A session in a file of its own: Markdown, HTML, or the lines of its log."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from agentsh.app.paths import Home, here
from agentsh.app.screens import document_renderer
from agentsh.app.stores import blob_store, event_store
from agentsh.app.texts import BlobTexts
from agentsh.base.errors import UsageProblem
from agentsh.events.codec import decode

MOST_NUMBERED = 1_000


class FileRefused(UsageProblem):
    """A file to write to was not made: nothing of ours is there."""


def export(home: Home, session: str, form: str, file: Path | None) -> Path:
    """Write what is recorded so far; return the path. form: `md`, `html` or `jsonl`. file: None for a new name.

    Raises:
        UsageProblem: the file is there already, or cannot be written.
        SessionMissing, SessionReadOnly: as the store says.
    """

    def write(out: BinaryIO) -> None:
        renderer = document_renderer(form, out, BlobTexts(blob_store(home)))
        for record in event_store(home).read(session):
            renderer.on(decode(record))
        renderer.close()

    return write_new(file, f"agentsh-{session}", form, write)


def write_new(file: Path | None, stem: str, ending: str, write: Callable[[BinaryIO], None]) -> Path:
    """Make a file that was not there, readable by its owner only, and have it written; what fails leaves none.

    file: where; None for `stem.ending` in the current directory, with a number behind it where that is taken.

    Raises:
        UsageProblem: it is there already, or cannot be written.
    """
    if file is None:
        base = here() or Path.home()
        names = [stem, *(f"{stem}-{n}" for n in range(2, MOST_NUMBERED))]
        taken = (path for name in names if not os.path.lexists(path := base / f"{name}.{ending}"))
        file = next(taken, base / f"{stem}.{ending}")
    file = file.expanduser()
    try:
        with create(file) as out:
            write(out)
    except FileRefused:
        raise
    except BaseException as error:
        file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageProblem(f"{file} cannot be written: {error.strerror}") from None
        raise
    return file.absolute()


def create(file: Path) -> BinaryIO:
    """Open a file that was not there for writing, readable by its owner only.

    Raises:
        FileRefused: it is there already, or cannot be made.
    """
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise FileRefused(f"{file} is there already", hint="name another file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise FileRefused(f"{file} cannot be written: {why}") from None
    return os.fdopen(fd, "wb")
