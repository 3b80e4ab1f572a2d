"""What a session has changed, and bringing it back: `diff ID` and `apply ID`."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from agentsh.app.paths import Home
from agentsh.app.stores import blob_store, event_store
from agentsh.app.taken_over import TAKEN_OVER, TakenOver
from agentsh.base.errors import BlobMissing, UsageProblem
from agentsh.base.light import dataclass
from agentsh.context.fold import fold
from agentsh.context.state import SessionState
from agentsh.engine.whole import LoggedSession
from agentsh.events.codec import decode
from agentsh.log.store import BlobStore
from agentsh.workspace.patch import patch_of
from agentsh.workspace.snapshot_diff import FileChange, counted, file_changes
from agentsh.workspace.snapshot_restore import authors, target_of
from agentsh.workspace.trees import Manifests, Nodes, unreadable

MAX_TOLD = 20
"""Files, and lines of each, of what tells of one turn."""


@dataclass(frozen=True, slots=True)
class SessionDiff:
    """What a session has changed since its first snapshot. after: everything that is there at the end.

    left_out: caches and large files, which no snapshot looks into. unfinished: a command was at work after that.
    taken: what was taken over earlier.
    """

    changes: list[FileChange]
    after: Nodes
    blobs: BlobStore
    state: SessionState
    left_out: tuple[str, ...]
    unfinished: bool
    taken: TakenOver


def session_diff(home: Home, session: str, at: int | None = None) -> SessionDiff:
    """Return what the session's tools changed up to event `at`, or up to its last snapshot. Needs no lease.

    Raises:
        SessionMissing, SessionReadOnly: as the store says.
        UsageProblem: there is no such event.
        WorkspaceError: a snapshot does not read.
    """
    store, blobs = event_store(home), blob_store(home)
    state, steps = fold(map(decode, store.read(session))), LoggedSession(store, session).moments().steps
    if at is not None and not 1 <= at <= state.last_seq:
        raise UsageProblem(f"there is no event {at}", hint=f"the last one is {state.last_seq}")
    file = home.sessions / session / TAKEN_OVER
    if not steps:
        return SessionDiff([], {}, blobs, state, (), state.unfinished is not None, TakenOver(file, blobs, (), (), {}))
    manifests = Manifests(blobs)
    end = steps[-1] if at is None else target_of(steps, at)
    try:
        before, last = manifests.tree(steps[0].ref), manifests.tree(end.ref)
        ours, _ = authors(manifests, [s for s in steps[1:] if s.seq <= end.seq], before.nodes)
    except BlobMissing as error:
        raise unreadable(error) from None
    found = [change for change in file_changes(before.nodes, last.nodes) if change.path in ours]
    taken = TakenOver(file, blobs, steps, ours, last.nodes)
    unfinished = at is None and state.unfinished is not None
    return SessionDiff(found, last.nodes, blobs, state, last.left_out, unfinished, taken)


def between(home: Home, session: str) -> Callable[[int, int], list[str]]:
    """Return what tells how files differ between the moments after two events, in lines; it reads the log once.

    Each file is a line with its figures, with up to 20 changed lines below.

    Raises:
        SessionMissing, SessionReadOnly: as the store says.
    """
    steps, blobs = LoggedSession(event_store(home), session).moments().steps, blob_store(home)
    manifests = Manifests(blobs)

    def told(first: int, last: int) -> list[str]:
        if not steps:
            return []
        trees = [manifests.tree(target_of(steps, seq).ref).nodes for seq in (first, last)]
        rows = []
        for change in file_changes(*trees)[:MAX_TOLD]:
            added, removed = counted(blobs, [change])
            rows.append(f"{change.status} {change.path} +{added:,} -{removed:,}")
            lines = (line for line in patch_of(blobs, change) if line[:1] in (b"+", b"-"))
            shown = [line for line in islice(lines, MAX_TOLD + 2) if not line.startswith((b"+++ ", b"--- "))]
            rows += [f"  {line.decode('utf-8', 'replace').rstrip()}" for line in shown[:MAX_TOLD]]
        return rows

    return told


def destination(state: SessionState, to: Path | None) -> Path:
    """Return where the changes of a session go.

    Raises:
        UsageProblem: there is no such directory, or none is known.
    """
    place = state.workspace
    if to is None:
        if place is not None and place.kind == "in-place":
            raise UsageProblem("the session works in place: its changes are there already")
        if place is None or place.origin is None:
            raise UsageProblem(
                "the session was made from nothing",
                hint=f"`agentsh apply {state.id} --to PATH` says where its files go",
            )
        to = Path(place.origin)
    if not to.is_dir():
        raise UsageProblem(
            f"{to} is no directory", hint=f"`agentsh apply {state.id} --to PATH` says where the changes go"
        )
    return to.resolve()
