"""What becomes of sessions: archived, renamed, tagged, thrown away and taken back. The commands are in `cli`."""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh import __version__
from agentsh.app.catalog import LOG_NAME, Place, read_summary, row_of
from agentsh.app.paths import Home
from agentsh.app.stores import event_store
from agentsh.base.errors import LogError, LogWriteFailed, SessionAmbiguous, SessionMissing, SessionReadOnly
from agentsh.log.files import RealFiles
from agentsh.log.lease import is_free, take
from agentsh.log.reserve import NO_ROOM, what_to_do
from agentsh.stores.archiving import Archived, archive_session, unarchive_session
from agentsh.stores.trash import Trash, Trashed

if TYPE_CHECKING:
    from agentsh.context.state import SessionState
    from agentsh.events.base import Fact
    from agentsh.log.unarchive import Taken

Progress = Callable[[int], None]
MOST_NAMED = 10
"""Of the sessions in the trash, where the one that is asked for is not there."""


def archive(place: Place, progress: Progress) -> Archived:
    """Archive a session. Raises as `archive_session`."""
    if not place.archived and not (place.home.sessions / place.id / LOG_NAME).exists():
        asyncio.run(_open_and_close(place))  # a change of segments was interrupted: opening begins the open one

    def facts() -> Mapping[str, Any]:
        summary = read_summary(place)
        whole = "problem" not in summary and not summary.get("damages")
        return {"summary": {k: v for k, v in summary.items() if k != "damages"}} if whole else {}

    return archive_session(str(place.home.sessions), place.id, facts, progress=progress)


def unarchive(place: Place, progress: Progress) -> "Taken | None":
    """Take a session out of its archive; return None where it was not in one. Raises as `unarchive_session`."""
    return unarchive_session(str(place.home.sessions), place.id, progress=progress)


async def _open_and_close(place: Place) -> None:
    opened = await event_store(place.home).open(place.id)
    await opened.log.close()


def unexported(place: Place) -> tuple[str, list[str] | None] | None:
    """Return (what it was made of, files) where the workspace holds something that is nowhere else, else None.

    Files are None where there are too many to compare. A workspace that is not the session's own is not touched by
    `rm`, and not looked at.
    """
    from agentsh.workspace.changes import not_taken_over

    workspace = place.home.workspaces / place.id
    if not workspace.is_dir() or workspace.is_symlink():
        return None
    kind, origin = row_of(place).summary.get("workspace"), row_of(place).summary.get("origin")
    source = Path(origin) if kind in ("copy", "git") and isinstance(origin, str) else None
    try:
        files = not_taken_over(workspace, source)
    except OSError as error:
        raise LogError(
            f"{workspace} cannot be looked through: {error.strerror}", hint="--yes moves it all the same"
        ) from None
    if files == []:
        return None
    return (str(source) if source is not None else "nothing", files)


def remove(place: Place, *, now: bool = False) -> str:
    """Move a session, its log and its own workspace, to the trash; return where, below the home.

    now: remove it for good, which takes no room on the disk; returns an empty text.

    Raises:
        SessionHeld: somebody has it open.
        LogWriteFailed: the disk refused; it is as before, or `rm` again goes on.
    """
    from agentsh.stores.index import SummaryIndex
    from agentsh.workspace.strays import AVAILABLE, kill_session
    from agentsh.workspace.temporary import remove_left

    directory, workspace = place.home.sessions / place.id, place.home.workspaces / place.id
    try:
        lease = take(RealFiles(), str(directory), place.id)
        try:
            if AVAILABLE:
                kill_session(place.id)  # what a killed agentsh left running must not go on in the trash
            remove_left(str(directory))
            own = str(workspace) if workspace.is_dir() and not workspace.is_symlink() else None
            trash = Trash(str(place.home.root))
            if now:
                trash.remove(place.id, workspace=own)
                where = ""
            else:
                where = trash.put(place.id, why="rm", workspace=own)
        finally:
            lease.release()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(directory):
            raise SessionMissing(f"no session {place.id}") from error
        full = f"`agentsh rm --now {place.id}` removes it for good" if error.errno in NO_ROOM else None
        what = f"remove session {place.id}" if now else f"move session {place.id} to the trash"
        where = f"{error.filename}: " if error.filename else ""
        raise LogWriteFailed(f"cannot {what}: {where}{error.strerror or error}", hint=full) from error
    SummaryIndex(place.home.index_file).forget([place.id])
    return where


def left_temporary(home: Home) -> list[str]:
    """Return the private temporary directories of a home's sessions that nobody has open: a kill leaves one."""
    from agentsh.workspace.temporary import left_in

    return left_in(str(home.sessions), partial(is_free, RealFiles()))


def restore(home: Home, text: str) -> Trashed:
    """Move a session back from the trash: the newest one whose id `text` is, begins or ends.

    Raises:
        SessionMissing: the trash has none.
        SessionAmbiguous: it has several.
        SessionExists: there is one of that id.
        LogWriteFailed: the disk refused.
    """
    trash = Trash(str(home.root))
    matches = [t for t in trash.listed() if t.session.startswith(text) or t.session.endswith(text)]
    if not matches or not text:
        raise SessionMissing(f"no session {text!r} in the trash of {home.root}", hint=_held(trash))
    fits = {t.session: None for t in matches}
    if len(fits) > 1:
        what = f"{text!r} fits {len(fits)} sessions in the trash; give more of the id:"
        raise SessionAmbiguous(what, candidates=tuple(fits))
    try:
        trash.restore(matches[0])
    except OSError as error:
        why = error.strerror or str(error)
        raise LogWriteFailed(f"cannot restore {matches[0].session}: {why}", hint=what_to_do(error)) from error
    return matches[0]


def _held(trash: Trash) -> str:
    """Return which sessions are in the trash, the newest first, in words."""
    ids = list(dict.fromkeys(t.session for t in trash.listed() if t.whole))
    more = f", and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
    return f"in it: {', '.join(ids[:MOST_NAMED])}{more}" if ids else "it is empty"


def record(place: Place, make: "Callable[[SessionState], Fact | None]") -> None:
    """Open a session, record the fact that `make` returns for its state, if any, and close it again.

    Raises:
        SessionHeld, SessionReadOnly, LogWriteFailed: as opening and writing do.
        LogError: it has no event.
    """
    if place.archived:
        raise SessionReadOnly(f"session {place.id} is archived", hint=f"`agentsh unarchive {place.id}`")
    asyncio.run(_record(place, make))


async def _record(place: Place, make: "Callable[[SessionState], Fact | None]") -> None:
    from agentsh.app.opening import open_folded
    from agentsh.base.clock import SystemClock
    from agentsh.engine.bus import Bus
    from agentsh.engine.journal import Journal
    from agentsh.engine.open import Writer, reopen

    opened, folded = await open_folded(event_store(place.home), place.id)
    try:
        state = folded.state
        if not state.last_seq:
            raise LogError(f"session {place.id} is empty", hint="`agentsh new` starts another")
        fact = make(state)
        if fact is not None:
            journal = Journal(opened.log, state, Bus(None), SystemClock())
            await reopen(journal, opened.recovery, Writer(__version__, socket.gethostname(), os.getpid()))
            await journal.record(fact, durable=True)
    finally:
        await opened.log.close()
