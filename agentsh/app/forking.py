"""A new session that goes on from a moment of another: its log by reference, its workspace from the snapshot."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh import __version__
from agentsh.app.paths import Home
from agentsh.app.private_file import replace_json
from agentsh.app.rewinding import STAT_CACHE, git_rule, workspace_of
from agentsh.app.stores import blob_store, event_store
from agentsh.app.taken_over import TAKEN_OVER
from agentsh.base.clock import SystemClock, timestamp
from agentsh.base.errors import AgentshError, LogError, SessionExists, SessionReadOnly, UsageProblem
from agentsh.base.ids import new_session_id
from agentsh.base.light import dataclass
from agentsh.base.text import short_path
from agentsh.context.fold import apply
from agentsh.context.repairs import forked
from agentsh.context.rewinds import settle
from agentsh.context.state import SessionState
from agentsh.context.state_codec import decode_state, encode_state, reducer
from agentsh.engine.whole import LoggedSession
from agentsh.events.codec import decode, encode
from agentsh.events.session import SessionInit, SnapshotTaken, WorkspaceOrigin
from agentsh.events.tool import CodeEdit
from agentsh.log.archived import reading
from agentsh.log.chain import Anchor, LogScan
from agentsh.log.checkpoint import KEEP, checkpoint_seqs, is_anchored, read_checkpoint
from agentsh.log.depths import discard_tree
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of
from agentsh.log.plain import read_plain
from agentsh.log.scan import peek, to_record
from agentsh.log.store import EventStore, OpenLog
from agentsh.ports.snapshots import Step

if TYPE_CHECKING:
    from agentsh.workspace.snapshot_walk import Git

FORK = " (fork)"
BY = f"agentsh {__version__}"
MAX_NAMED = 10
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Forked:
    """A session that was made. upto_seq: its parent's last event in it. notes: what the user should know."""

    id: str
    parent: str
    upto_seq: int
    workspace: Path
    notes: tuple[str, ...]


def state_at(home: Home, session: str, upto_seq: int) -> SessionState:
    """Return what a log folds to up to an event: from the newest checkpoint before it that holds. Blocks; no lease.

    Where no snapshot was taken by then, the first one after it, which nothing had changed before, stands for it.

    Raises:
        SessionReadOnly: the log cannot be read.
    """
    directory = str(home.sessions / session)
    try:
        files = reading(RealFiles(), directory)
        scan = LogScan(files, directory, session)
        try:
            state, anchor = SessionState(), None
            for seq in (seq for seq in checkpoint_seqs(files, directory) if seq <= upto_seq):
                saved = read_checkpoint(files, directory, seq)
                if saved is None or saved.session != session or saved.reducer != reducer():
                    continue
                if is_anchored(files, saved.anchor, scan.segments):
                    with suppress(ValueError):
                        state, anchor = decode_state(saved.state), saved.anchor
                        break
            _folded(state, scan, anchor, upto_seq)
        finally:
            scan.close()
    except OSError as error:
        raise SessionReadOnly(f"cannot read session {session}: {error.strerror or error}") from error
    if state.behind:
        first = state.snapshot
        settle(state, LoggedSession(event_store(home), session, upto_seq).state())
        state.snapshot = state.snapshot or first
    return state


def _folded(state: SessionState, scan: LogScan, anchor: Anchor | None, upto_seq: int) -> None:
    begun = 0 if anchor is None else anchor.seq
    for seq, text, _, _ in scan.entries() if anchor is None else scan.entries_from(anchor):
        if seq <= begun:
            continue
        if seq <= upto_seq:
            apply(state, decode(to_record(text + b"\n")))
        elif state.snapshot is not None:
            break
        elif peek(text)[0] in (b"snapshot_taken", b"code_edit"):
            fact = decode(to_record(text + b"\n")).fact
            ref = fact.snapshot if isinstance(fact, SnapshotTaken | CodeEdit) else None
            if ref is not None:
                state.snapshot = Step(0, ref, "start")


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
        state = await asyncio.to_thread(state_at, home, parent, upto)
        if state.workspace is None:
            raise LogError(f"session {parent} has lost its first event", hint=f"`agentsh repair {parent}`")
        notes = await asyncio.to_thread(_workspace, home, parent, child, state, upto_seq is None, progress)
        if state.turn is not None:
            notes = [*notes, "its last turn was not over: in the fork it ends there, as interrupted"]
        await _begin(log, child, state, state.workspace)
        with suppress(OSError, ValueError, UsageProblem):
            known = json.loads(read_plain(home.sessions / parent / TAKEN_OVER))
            await asyncio.to_thread(replace_json, home.sessions / child / TAKEN_OVER, known)
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


async def _begin(log: OpenLog, child: str, state: SessionState, origin: WorkspaceOrigin) -> None:
    """Record the child's birth and the end of what its parent had open; save what it knows.

    So its first opening reads nothing of its parent, and closes nothing as if a process had died.
    """
    kind = "copy" if origin.kind == "in-place" else origin.kind
    workspace = WorkspaceOrigin(kind=kind, origin=origin.origin, base=origin.base)
    if origin.start is not None:
        workspace = workspace.model_copy(update={"start": origin.start})
    init = SessionInit(
        id=child, title=_title(state.title), cwd=state.cwd, project=state.project, model=state.model, mode=state.mode,
        workspace=workspace,
    )  # fmt: skip
    ts = timestamp(SystemClock().now())
    closing = [encode(new.fact, ts=ts, cause=new.cause) for new in forked(state)]
    records = await log.append([encode(init, ts=ts), *closing])
    await log.wait_durable(records[-1].seq)
    for record in records:
        apply(state, decode(record))
    await log.checkpoint(encode_state(state), reducer=reducer(), keep=KEEP)


def _title(title: str | None) -> str | None:
    """Return what a fork is called, so that two rows of a list are not the same."""
    return title if title is None or title.endswith(FORK) else title + FORK


def _workspace(
    home: Home, parent: str, child: str, state: SessionState, now: bool, progress: Progress | None
) -> list[str]:
    """Make the child's workspace; return what to tell of it."""
    from agentsh.workspace.provision import empty
    from agentsh.workspace.snapshot_place import place

    blobs, target = blob_store(home), home.workspaces / child
    notes: list[str] = []
    source = workspace_of(home, parent, state)
    kind = None if state.workspace is None else state.workspace.kind
    git = git_rule(kind)
    ref = None if state.snapshot is None else state.snapshot.ref
    with blobs.writing():  # from a snapshot taken here to the event that makes it the child's
        idle = holder_of(RealFiles(), str(home.sessions / parent)) is None
        if source.is_dir() and (ref is None or (now and idle)):
            ref = _present(home, parent, source, ref, git) or ref
        if ref is None:
            empty(target)
            return ["the workspace of the fork is empty: there is no snapshot of its parent's, nor its directory"]
        left = place(
            target, blobs, ref, git=git, cache=home.sessions / child / STAT_CACHE, progress=progress,
            finish=(lambda partial: history(partial, state, source, parent, child, notes)) if kind == "git" else None,
        )  # fmt: skip
    if left:
        more = f" and {len(left) - MAX_NAMED:,} more" if len(left) > MAX_NAMED else ""
        notes.append(f"not in the workspace of the fork: {', '.join(map(short_path, left[:MAX_NAMED]))}{more}")
    return notes


def history(partial: Path, state: SessionState, source: Path, old: str, new: str, notes: list[str]) -> None:
    """Give a clone that was made from a snapshot its history, and a branch of its own name."""
    from agentsh.workspace.git import GitFailed
    from agentsh.workspace.git_clone import rename_branch
    from agentsh.workspace.git_history import give_history

    origin = None if state.workspace is None else state.workspace.origin
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
    discard_tree(str(home.sessions / child))
    discard_tree(str(target))
