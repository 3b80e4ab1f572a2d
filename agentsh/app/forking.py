"""A new session that goes on from a moment of another: its log by reference, its workspace from the snapshot."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh import __version__
from agentsh.app.paths import Home
from agentsh.app.rewinding import STAT_CACHE, git_rule
from agentsh.app.stores import blob_store, event_store
from agentsh.base.clock import SystemClock, timestamp
from agentsh.base.errors import AgentshError, LogError, SessionExists
from agentsh.base.ids import new_session_id
from agentsh.events.codec import decode, encode
from agentsh.events.session import SessionInit, WorkspaceMoved, WorkspaceOrigin
from agentsh.log.record import Draft, Record
from agentsh.log.store import EventStore, OpenLog

if TYPE_CHECKING:
    from agentsh.workspace.snapshot_walk import Git

BY = f"agentsh {__version__}"
TYPES = frozenset(
    {"session_init", "mode_changed", "model_changed", "renamed", "workspace_moved", "snapshot_taken", "code_edit"}
)
"""What a fork must know of its parent; no other record is decoded."""
Progress = Callable[[int, int, int], None]


@dataclass(slots=True)
class Inherited:
    """What holds in the parent at the branch. init: None where it was lost. snapshot, first: refs, or None."""

    init: SessionInit | None = None
    model: str | None = None
    mode: Any = None
    title: str | None = None
    path: str | None = None
    snapshot: str | None = None
    first: str | None = None


@dataclass(frozen=True, slots=True)
class Forked:
    """A session that was made. upto_seq: its parent's last event in it. notes: what the user should know."""

    id: str
    parent: str
    upto_seq: int
    workspace: Path
    notes: tuple[str, ...]


def inherited(records: Iterator[Record], upto_seq: int) -> Inherited:
    """Return what holds after event `upto_seq`; records of later snapshots serve where there is none before."""
    found = Inherited()
    for record in records:
        fact: Any = decode(record).fact
        if fact.type in ("snapshot_taken", "code_edit"):
            ref = getattr(fact, "snapshot", None)
            if found.first is None and isinstance(ref, str):
                found.first = ref
            if record.seq > upto_seq and found.first is not None:
                return found
            found.snapshot = ref if isinstance(ref, str) else found.snapshot
        elif record.seq <= upto_seq:
            _take(found, fact)
    return found


def _take(found: Inherited, fact: Any) -> None:
    if isinstance(fact, SessionInit):
        found.init, found.model, found.mode, found.title = fact, fact.model, fact.mode, fact.title
        found.path = fact.workspace.path
    elif isinstance(fact, WorkspaceMoved):
        found.path = fact.path
    elif fact.type in ("mode_changed", "model_changed", "renamed"):
        name = {"mode_changed": "mode", "model_changed": "model", "renamed": "title"}[fact.type]
        setattr(found, name, getattr(fact, name, getattr(found, name)))


def _records(store: EventStore, session: str) -> Iterator[Record]:
    """Yield the records of the types that count; those of others are not decoded where the store can tell them."""
    lines = getattr(store, "lines", None)
    if lines is None:
        yield from (record for record in store.read(session) if record.type in TYPES)
        return
    from agentsh.log.scan import to_record

    wanted = frozenset(name.encode() for name in TYPES)
    yield from (to_record(raw) for _, kind, raw in lines(session) if kind in wanted)


async def fork(home: Home, parent: str, upto_seq: int | None = None, *, progress: Progress | None = None) -> Forked:
    """Fork `parent` after event `upto_seq`, or as it is now; return the new session, which nobody holds.

    The parent may be in use; its lease is not taken, and nothing of it is changed.

    Raises:
        SessionMissing, UsageProblem: there is no such session, or no such event.
        WorkspaceError: its snapshot does not read, or the disk refused. Nothing is left behind.
        LogError: the log cannot be written.
    """
    store = event_store(home)
    child, log = await _born(store, home, parent, upto_seq)
    target = home.workspaces / child
    try:
        upto = log.last_seq
        found = await asyncio.to_thread(lambda: inherited(_records(store, parent), upto))
        if found.init is None:
            raise LogError(f"session {parent} has lost its first event", hint=f"`agentsh repair {parent}`")
        notes = await asyncio.to_thread(_workspace, home, parent, child, found, upto_seq is None, progress)
        await _begin(log, child, found)
        await log.close()
    except BaseException:
        with suppress(AgentshError):
            await log.close()
        await asyncio.to_thread(_discard, home, child, target)
        raise
    return Forked(child, parent, upto, target, tuple(notes))


async def _born(store: EventStore, home: Home, parent: str, upto_seq: int | None) -> tuple[str, OpenLog]:
    while True:
        child = new_session_id(SystemClock().now())
        if (home.workspaces / child).exists():
            continue
        with suppress(SessionExists):
            return child, await store.fork(parent, child, upto_seq=upto_seq, by=BY)


async def _begin(log: OpenLog, child: str, found: Inherited) -> None:
    assert found.init is not None
    origin = found.init.workspace
    kind = "copy" if origin.kind == "in-place" else origin.kind
    workspace = WorkspaceOrigin(kind=kind, origin=origin.origin, base=origin.base)
    if origin.start is not None:
        workspace = workspace.model_copy(update={"start": origin.start})
    init = SessionInit(
        id=child, title=found.title, cwd=found.init.cwd, project=found.init.project, model=found.model or "",
        mode=found.mode, workspace=workspace,
    )  # fmt: skip
    draft: Draft = encode(init, ts=timestamp(SystemClock().now()))
    (record,) = await log.append([draft])
    await log.wait_durable(record.seq)


def _workspace(
    home: Home, parent: str, child: str, found: Inherited, now: bool, progress: Progress | None
) -> list[str]:
    """Make the child's workspace; return what to tell of it."""
    from agentsh.log.files import RealFiles
    from agentsh.log.lease import holder_of
    from agentsh.workspace.provision import empty
    from agentsh.workspace.snapshot_place import place

    blobs, target = blob_store(home), home.workspaces / child
    notes: list[str] = []
    source = Path(found.path or home.workspaces / parent)
    kind = None if found.init is None else found.init.workspace.kind
    git = git_rule(kind)
    ref = found.snapshot or found.first
    with blobs.writing():  # from a snapshot taken here to the event that makes it the child's
        idle = holder_of(RealFiles(), str(home.sessions / parent)) is None
        if source.is_dir() and (ref is None or (now and idle)):
            ref = _present(home, parent, source, ref, git) or ref
        if ref is None:
            empty(target)
            return ["the workspace of the fork is empty: there is no snapshot of its parent's, nor its directory"]
        left = place(
            target, blobs, ref, git=git, cache=home.sessions / child / STAT_CACHE, progress=progress,
            finish=(lambda partial: history(partial, found, source, parent, child, notes)) if kind == "git" else None,
        )  # fmt: skip
    return [*notes, f"not in the workspace of the fork: {', '.join(left[:10])}"] if left else notes


def history(partial: Path, found: Inherited, source: Path, old: str, new: str, notes: list[str]) -> None:
    """Give a clone that was made from a snapshot its history, and a branch of its own name."""
    from agentsh.workspace.git import GitFailed
    from agentsh.workspace.git_clone import rename_branch
    from agentsh.workspace.git_history import give_history

    origin = found.init.workspace.origin if found.init is not None else None
    missing = give_history(partial, Path(origin) if origin else None, source)
    if missing is not None:
        notes.append(missing)
    with suppress(GitFailed, OSError):
        rename_branch(partial, old, new)


def _present(home: Home, parent: str, source: Path, ref: str | None, git: "Git") -> str | None:
    """Return a snapshot of the parent's directory as it is now: its user may have worked there since the last one."""
    from agentsh.workspace.copy import TooMuch
    from agentsh.workspace.snapshot import Snapshotter

    snapshotter = Snapshotter(str(source), blob_store(home), git=git)
    snapshotter.load_cache(home.sessions / parent / STAT_CACHE)
    try:
        if ref is not None:
            snapshotter.load(ref)
        snapshotter.take("outside")
    except (TooMuch, OSError, AgentshError):
        return None
    return snapshotter.ref


def _discard(home: Home, child: str, target: Path) -> None:
    shutil.rmtree(home.sessions / child, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
