"""Snapshots behind their port: one thread for all of it, so that the event loop never waits for a disk."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from agentsh.base.errors import AgentshError, BlobMissing, LogWriteFailed, WorkspaceError
from agentsh.base.waiting import to_the_end
from agentsh.log.store import BlobStore
from agentsh.ports.snapshots import By, Changed, Step, Taken, Winding
from agentsh.ports.tool import Edit
from agentsh.workspace.copy import TooMuch
from agentsh.workspace.snapshot import Snapshotter, Stopped
from agentsh.workspace.snapshot_diff import compared
from agentsh.workspace.snapshot_restore import Restorer, plan
from agentsh.workspace.snapshot_walk import Git
from agentsh.workspace.trees import unreadable

_T = TypeVar("_T")

MAX_NAMED = 20


class WorkspaceSnapshots:
    """Implements `ports.snapshots.Snapshots` on a directory.

    ref: the last snapshot of the log, or None. unfinished: who was at work when the last process died, so that what
    the first look finds is theirs. cache: a file that saves reading everything again in the next process. around:
    is entered while a rewind changes files.
    """

    def __init__(
        self,
        root: str,
        blobs: BlobStore,
        *,
        git: Git,
        ref: str | None = None,
        unfinished: By | None = None,
        cache: Path | None = None,
        around: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._snapshotter = Snapshotter(root, blobs, git=git)
        self._blobs = blobs
        self._ref = ref
        self._unfinished = unfinished
        self._cache = cache
        self._around = around
        self._remarks: list[str] = []
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._begun = False
        self._owed: list[Taken] = []  # taken, and not given to anybody who records it
        self._held = contextlib.ExitStack()
        self._has = ref is not None  # a snapshot that the log names
        self._loaded = self._closed = self._looked = False
        self._blind: str | None = None

    def begin(self) -> None:
        """Take the first snapshot in the background; `before` returns it."""
        if not (self._begun or self._has or self._closed):
            self._begun = True
            self._pool.submit(self._first)

    def holding(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock of the blob store on the thread that writes them."""
        return self._holding()

    @asynccontextmanager
    async def _holding(self) -> AsyncIterator[None]:
        stack = contextlib.ExitStack()
        entering = self._pool.submit(lambda: stack.enter_context(self._blobs.writing()))
        try:  # whoever is cancelled waits neither for the lock nor for the first snapshot
            await asyncio.shield(asyncio.wrap_future(entering))
            yield
        finally:
            with contextlib.suppress(RuntimeError):  # closed meanwhile, and the lock with it
                self._pool.submit(stack.close)

    async def before(self, *, look: bool) -> list[Taken]:
        """Return the first snapshot where there is none yet, and what others have changed.

        The first one takes a while: who is cancelled meanwhile does not wait, and the next caller gets it.
        """
        await asyncio.shield(asyncio.wrap_future(self._pool.submit(_translated, lambda: self._before(look=look))))
        owed, self._owed = self._owed, []
        self._has, self._begun = True, False
        return owed

    async def after(self, edits: Sequence[Edit] | None) -> list[Taken]:
        """Return what a tool has changed."""
        return await self._run(lambda: self._after(edits))

    async def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Changed]:
        """Return how much differs between the snapshots of each pair."""
        return await self._run(lambda: [compared(self._snapshotter.manifests, self._blobs, a, b) for a, b in pairs])

    async def plan(self, steps: Sequence[Step], to_seq: int) -> Winding:
        """Return what it takes to go back to event `to_seq`."""
        one = self._snapshotter
        return await self._run(
            lambda: plan(one.manifests, self._blobs, one.root, steps, to_seq, self._snapshotter.left_out)
        )

    async def wind(self, winding: Winding) -> list[Taken]:
        """Change the files, and return the snapshot of it."""
        return await self._run(lambda: self._wind(winding))

    def remarks(self) -> list[str]:
        """Return what was not said yet."""
        told, self._remarks = self._remarks, []
        return told

    async def turn_ended(self) -> None:
        """Let `gc` in where the first snapshot was taken and nobody needed it: it is taken anew another time."""
        if self._begun:
            self._begun = False
            self._pool.submit(self._forget)

    async def close(self) -> None:
        """Keep the cache, and end the thread."""
        if not self._closed:
            self._closed = self._snapshotter.stopped = True
            try:
                await self._run(self._finish)
            finally:
                self._pool.shutdown(wait=False)

    async def _run(self, job: Callable[[], _T]) -> _T:
        """Run a job to its end on the thread, whatever cancels the caller."""

        async def wait() -> _T:
            return await asyncio.wrap_future(self._pool.submit(_translated, job))

        return await to_the_end(asyncio.create_task(wait()))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        if self._cache is not None:
            self._snapshotter.load_cache(self._cache)
        if self._ref is not None:
            with contextlib.suppress(BlobMissing):  # then the next one is a first one again
                self._snapshotter.load(self._ref)

    def _first(self) -> None:
        with contextlib.suppress(AgentshError):  # told by the look that follows, which tries again
            self._held.enter_context(self._blobs.writing())
            self._owed += self._look("start")

    def _look(self, by: By) -> list[Taken]:
        self._load()
        if self._blind is not None:
            return []
        self._looked = True
        try:
            return self._snapshotter.take(by)[0]
        except Stopped:
            return []
        except TooMuch as error:
            self._blind = error.limit
            self._remarks.append(
                f"the workspace holds more than {error.limit}: snapshots cover only what edit tools change, "
                "and a rewind cannot undo what commands did"
            )
        except OSError as error:
            self._remarks.append(f"no snapshot of the workspace: {error.strerror or error}")
        return []

    def _before(self, *, look: bool) -> None:
        self._load()
        by, self._unfinished = self._unfinished or "outside", None
        if self._snapshotter.ref is None:
            self._owed += self._look("start")
        elif look or by != "outside":
            self._owed += self._look(by)
        self._held.close()

    def _after(self, edits: Sequence[Edit] | None) -> list[Taken]:
        self._unfinished = "tool"  # where this fails, what the next look finds is the tool's all the same
        if edits is None:
            taken = self._look("tool")
        else:
            self._load()
            taken = self._snapshotter.take_edits(edits) if edits else []
        self._unfinished = None
        return taken

    def _wind(self, winding: Winding) -> list[Taken]:
        one = self._snapshotter
        self._load()
        target = one.manifests.tree(winding.target).nodes
        self._unfinished = "rewind"
        restorer = Restorer(one.root, self._blobs, one.nodes, target)
        with self._around():
            restorer.run(winding.paths)
        if restorer.late:
            named = ", ".join(sorted(restorer.late)[:MAX_NAMED])
            self._remarks.append(f"changed by somebody else just now, and left alone: {named}")
        late = set(restorer.late)
        taken = one.take_paths([path for path in winding.paths if path not in late], "rewind")[0]
        self._unfinished = None
        if self._blind is None:
            taken += self._look("outside")  # what was changed under our hands is theirs
        return taken

    def _forget(self) -> None:
        self._held.close()
        self._owed.clear()
        self._snapshotter.forget()

    def _finish(self) -> None:
        self._held.close()
        if self._cache is not None and self._looked and self._snapshotter.ref is not None:
            self._snapshotter.save_cache(self._cache)


def _translated(job: Callable[[], _T]) -> _T:
    try:
        return job()
    except BlobMissing as error:
        raise unreadable(error) from None
    except LogWriteFailed:
        raise
    except OSError as error:
        raise WorkspaceError(f"a snapshot failed: {error.strerror or error}") from None
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise WorkspaceError("a snapshot failed: its place, as the log has it, is no path") from None
