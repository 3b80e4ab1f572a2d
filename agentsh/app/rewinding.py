"""Snapshots of a session's workspace, and rewinds without a model: what `rewind ID` opens a session for."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh import __version__
from agentsh.app.paths import Home
from agentsh.app.stores import blob_store, event_store
from agentsh.base.clock import SystemClock
from agentsh.base.errors import LogError
from agentsh.context.fold import fold
from agentsh.context.state import SessionState
from agentsh.engine.bus import Bus
from agentsh.engine.journal import Journal
from agentsh.engine.open import Writer, past, reopen
from agentsh.engine.rewinding import Moment, Rewinder, moments
from agentsh.events.codec import decode
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import Snapshots

if TYPE_CHECKING:
    from agentsh.workspace.snapshot_walk import Git

STAT_CACHE = "workspace.stat"
"""In a session's directory: what the next process need not read again. Disposable."""


def workspace_snapshots(
    home: Home, session: str, root: Path, state: SessionState, blobs: BlobStore, kind: str | None
) -> Snapshots:
    """Return the snapshots of a session whose log folded to `state`. kind: of its workspace; None where it is lost."""
    from agentsh.workspace.snapshot_thread import WorkspaceSnapshots

    return WorkspaceSnapshots(
        str(root),
        blobs,
        git=git_rule(kind),
        ref=state.snapshots[-1].ref if state.snapshots else None,
        unfinished=state.unfinished,
        cache=home.sessions / session / STAT_CACHE,
    )


def git_rule(kind: str | None) -> "Git":
    """Return what snapshots hold of `.git`: nothing of the user's own, all but the origin's history of a clone."""
    if kind == "in-place":
        return "none"
    return "shared" if kind == "git" else "own"


def workspace_of(home: Home, session: str, state: SessionState) -> Path:
    """Return the directory that a session works in."""
    return Path(state.workspace_path or home.workspaces / session)


async def moments_of(home: Home, session: str) -> list[Moment]:
    """Return the moments that a session can go back to. Needs no lease and writes nothing."""
    state = fold(map(decode, event_store(home).read(session)))
    root = workspace_of(home, session, state)
    snapshots = workspace_snapshots(home, session, root, state, blob_store(home), None)
    try:
        return await moments(state, snapshots)
    finally:
        await snapshots.close()


@asynccontextmanager
async def opened(home: Home, session: str) -> AsyncIterator[tuple[Rewinder, SessionState]]:
    """Open a session for a rewind alone: its lease, its log, its snapshots.

    Raises:
        SessionHeld, SessionReadOnly, SessionMissing: as the store says.
        LogError: it has no event.
    """
    log = await event_store(home).open(session)
    try:
        events, state = past(log)
        if not events:
            raise LogError(f"session {session} is empty")
        journal = Journal(log.log, state, Bus(), SystemClock())
        await reopen(journal, log.recovery, Writer(__version__, socket.gethostname(), os.getpid()))
        kind = None if state.workspace is None else state.workspace.kind
        root = workspace_of(home, session, state)
        snapshots = workspace_snapshots(home, session, root, state, blob_store(home), kind)
        try:
            rewinder = Rewinder(journal, snapshots)
            await rewinder.finish()
            yield rewinder, state
        finally:
            await snapshots.close()
    finally:
        await log.log.close()
