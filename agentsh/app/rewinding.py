"""Snapshots of a session's workspace, and rewinds without a model: what `rewind ID` opens a session for."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh import __version__
from agentsh.app.opening import open_folded
from agentsh.app.paths import Home
from agentsh.app.stores import blob_store, event_store
from agentsh.base.clock import SystemClock
from agentsh.base.errors import LogError, WorkspaceError
from agentsh.context.rewinds import settle
from agentsh.context.state import SessionState
from agentsh.engine.bus import Bus
from agentsh.engine.journal import Journal
from agentsh.engine.open import Writer, reopen
from agentsh.engine.rewinding import Moment, Rewinder, moments
from agentsh.engine.whole import LoggedSession
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import Snapshots

if TYPE_CHECKING:
    from agentsh.workspace.snapshot_place import Progress
    from agentsh.workspace.snapshot_walk import Git

STAT_CACHE = "workspace.stat"
"""In a session's directory: what the next process need not read again. Disposable."""


def workspace_snapshots(
    home: Home,
    session: str,
    root: Path,
    state: SessionState,
    blobs: BlobStore,
    kind: str | None,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Snapshots:
    """Return the snapshots of a session whose log folded to `state`. kind: of its workspace; None: not known.

    around: is entered while a rewind changes files.
    """
    from agentsh.workspace.snapshot_thread import WorkspaceSnapshots

    return WorkspaceSnapshots(
        str(root),
        blobs,
        git=git_rule(kind),
        ref=None if state.snapshot is None else state.snapshot.ref,
        unfinished=state.unfinished,
        cache=home.sessions / session / STAT_CACHE,
        around=around,
    )


def git_rule(kind: str | None) -> "Git":
    """Return what snapshots hold of `.git`: nothing of the user's own, all but the origin's history of a clone."""
    if kind == "in-place":
        return "none"
    return "shared" if kind == "git" else "own"


def workspace_of(home: Home, session: str, state: SessionState) -> Path:
    """Return the directory that a session works in."""
    return Path(state.workspace_path or home.workspaces / session)


def present(
    home: Home, session: str, state: SessionState, blobs: BlobStore, progress: "Progress | None" = None
) -> tuple[Path, list[str]]:
    """Return the workspace of a session, made again from its last snapshot where it is gone, and what to tell of it.

    Blocks. It is never replaced by another directory.

    Raises:
        WorkspaceError: it is gone and cannot be made again.
    """
    root = workspace_of(home, session, state)
    if root.is_dir():
        return root, []
    hint = f"`agentsh resume {session} --dir PATH` goes on in another"
    if in_the_way := next((p for p in (home.workspaces, root) if os.path.lexists(p) and not p.is_dir()), None):
        raise WorkspaceError(
            f"{in_the_way} is no directory, so the workspace is not there", hint=f"move it, or {hint}"
        )
    if root != home.workspaces / session or state.snapshot is None:
        raise WorkspaceError(f"the workspace {root} is not there", hint=hint)
    from agentsh.workspace.snapshot_place import place

    kind = None if state.workspace is None else state.workspace.kind
    origin = None if state.workspace is None else state.workspace.origin
    step = state.snapshot
    notes = [f"the workspace was gone; it is made again from its snapshot of event {step.seq}"]
    try:
        left = place(
            root, blobs, step.ref, git=git_rule(kind), cache=home.sessions / session / STAT_CACHE, progress=progress,
            finish=(lambda partial: _history(partial, origin, notes)) if kind == "git" else None,
        )  # fmt: skip
    except WorkspaceError as error:
        raise WorkspaceError(f"the workspace is not there; {error.message}", hint=hint) from None
    if left:
        notes.append(f"not in it again: {', '.join(left[:10])}")
    return root, notes


def _history(partial: Path, origin: str | None, notes: list[str]) -> None:
    from agentsh.workspace.git_history import give_history

    missing = give_history(partial, Path(origin) if origin else None, None)
    if missing is not None:
        notes.append(missing)


async def moments_of(home: Home, session: str) -> list[Moment]:
    """Return the moments that a session can go back to. Needs no lease and writes nothing."""
    known = await asyncio.to_thread(LoggedSession(event_store(home), session).moments)
    snapshots = workspace_snapshots(home, session, home.workspaces / session, SessionState(), blob_store(home), None)
    try:
        return await moments(known, snapshots)
    finally:
        await snapshots.close()


@asynccontextmanager
async def opened(home: Home, session: str) -> AsyncIterator[tuple[Rewinder, SessionState]]:
    """Open a session for a rewind alone: its lease, its log, its snapshots.

    Raises:
        SessionHeld, SessionReadOnly, SessionMissing: as the store says.
        LogError: it has no event.
    """
    store = event_store(home)
    log, folded = await open_folded(store, session)
    state, whole = folded.state, LoggedSession(store, session)
    try:
        if not state.last_seq:
            raise LogError(f"session {session} is empty")
        if state.behind:
            settle(state, await asyncio.to_thread(whole.state))
        journal = Journal(log.log, state, Bus(), SystemClock())
        await reopen(journal, log.recovery, Writer(__version__, socket.gethostname(), os.getpid()))
        kind = None if state.workspace is None else state.workspace.kind
        root = workspace_of(home, session, state)
        snapshots = workspace_snapshots(home, session, root, state, blob_store(home), kind)
        try:
            rewinder = Rewinder(journal, snapshots, whole)
            await rewinder.finish()
            yield rewinder, state
        finally:
            await snapshots.close()
    finally:
        await log.log.close()
