"""`gc`: what the trash has held for long enough, and blobs that nothing refers to any more. Only when asked.

Marking happens beside running sessions; for the last look and the removal it holds `blobs/lock` alone. Whoever puts
a blob holds that lock until the event that names it is written, or did so less than GRACE_S ago.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from agentsh.base.errors import LogError, LogWriteFailed
from agentsh.base.text import plural
from agentsh.log.depths import remove_tree, tree_bytes
from agentsh.log.files import LOCK_FILE, RealFiles, make_dirs
from agentsh.log.lease import holder_of
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.pull import INCOMING
from agentsh.stores.references import NotReadable, References, Stamp, files_in, read_references
from agentsh.stores.session_check import Finding
from agentsh.stores.trash import DIRECTORY, LOG, Trash, Trashed, gone_in
from agentsh.stores.verify import Verifier

GRACE_S = 86_400.0
"""A younger blob may belong to an event that waits for room on the disk. git gives two weeks for the same reason."""
STALE_S = 3600.0
"""A file of a blob that is being written is younger than that."""
PATIENCE_S = 10.0
"""How long `gc` waits for the writers of blobs: each takes milliseconds."""
_NOTHING_HIDDEN = frozenset({"session", "dur", "chain", "lock", "blob", "late"})
"""Kinds of damage under which every event's bytes read all the same."""


class Garbage(NamedTuple):
    """What there is to remove, or was removed. kept_blobs: those that are referred to, or young."""

    trash: tuple[Trashed, ...]
    trash_bytes: int
    blobs: int
    blob_bytes: int
    leftovers: int
    leftover_bytes: int
    kept_blobs: int


class Collector:
    """Collects the garbage of one home. Blocks. older_than: how long the trash keeps. progress: bytes looked at.

    Raises (every method):
        LogError: a log does not read whole; nothing was removed.
        LogWriteFailed: the disk refused.
    """

    def __init__(
        self, home: str, *, older_than: timedelta, progress: Callable[[int], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._home = home
        self._blobs = os.path.join(home, "blobs")
        self._older_than = older_than
        self._progress = progress
        self._now = now
        self._trash = Trash(home)
        self._files = RealFiles()

    def collect(self, *, dry_run: bool) -> Garbage:
        """Remove the garbage, or only say what it is."""
        try:
            expired = self._expired()
            found, stamps = self._marked(expired)
            candidates = self._unreferenced(found)
            if dry_run:
                return self._told(expired, candidates, self._leftovers())
            with self._alone():
                self._mark_again(expired, found, stamps)
                candidates = [c for c in self._unreferenced(found) if c in set(candidates)]
                leftovers = self._leftovers()
                done = self._told(expired, candidates, leftovers)
                trash = [os.path.join(self._home, DIRECTORY, each.name) for each in expired]
                left = [*_all(remove_tree, [*trash, *self._gone()])]
                left += _all(os.unlink, [path for path, _ in [*candidates, *leftovers]])
            if left:
                raise left[0]
            return done
        except NotReadable as error:
            raise LogError(
                f"nothing was removed: {os.path.relpath(error.path, self._home)} does not read, so that nobody knows "
                f"what it refers to ({error.why})",
                hint="`agentsh verify --all` tells more",
            ) from error
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise LogWriteFailed(f"gc could not remove all: {what}") from error

    def _expired(self) -> list[Trashed]:
        end = datetime.fromtimestamp(self._now(), UTC) - self._older_than
        return [
            t for t in self._trash.listed()
            if t.when <= end and holder_of(self._files, os.path.join(self._home, DIRECTORY, t.name, LOG)) is None
            and (t.whole or not os.path.isdir(os.path.join(self._home, "sessions", t.session)))
        ]  # fmt: skip

    def _gone(self) -> list[str]:
        """Return the directories that `rm --now` did not come to the end of."""
        return [path for place in ("sessions", "workspaces") for path in gone_in(os.path.join(self._home, place))]

    def _tops(self, expired: list[Trashed]) -> list[str]:
        """Return the directories whose files may refer to blobs: open, sealed, archived, trashed, arriving."""
        gone = {each.name for each in expired}
        tops = [os.path.join(self._home, "sessions"), os.path.join(self._home, INCOMING)]
        tops += [os.path.join(self._home, DIRECTORY, t.name, LOG) for t in self._trash.listed() if t.name not in gone]
        return tops

    def _marked(self, expired: list[Trashed]) -> tuple[References, dict[str, Stamp]]:
        found, stamps = References(), dict[str, Stamp]()
        for top in self._tops(expired):
            self._check(top)
            for path, stamp in files_in(top):
                self._progress(read_references(path, found))
                stamps[path] = stamp
        self._follow(found)
        return found, stamps

    def _mark_again(self, expired: list[Trashed], found: References, stamps: dict[str, Stamp]) -> None:
        for top in self._tops(expired):
            for path, stamp in files_in(top):
                if stamps.get(path) != stamp:
                    read_references(path, found)
        self._follow(found)

    def _check(self, top: str) -> None:
        """Stop where a log has damage that may hide a reference."""
        if not os.path.isdir(top) or os.path.basename(top) == INCOMING:  # a part of a log is no damaged one
            return
        logs = [os.path.basename(top)] if os.path.basename(top) == LOG else _directories(top)
        root = os.path.dirname(top) if os.path.basename(top) == LOG else top
        for finding in Verifier(root, None).check([name for name in logs if not name.startswith(".")]):
            if why := _hides(finding):
                raise NotReadable(os.path.join(root, finding.session), why)

    def _follow(self, found: References) -> None:
        """Take what the manifests of snapshots refer to, and theirs."""
        store, seen = FileBlobs(self._blobs), set[str]()
        while todo := found.snapshots - seen:
            for name in todo:
                seen.add(name)
                path = os.path.join(self._blobs, name[:2], f"{name}.zst")
                if os.path.exists(path):
                    packed = store.packed(name)
                    if packed is None:
                        raise NotReadable(path, "a snapshot's manifest is damaged")
                    found.add(store.get(f"sha256:{name}"))

    def _unreferenced(self, found: References) -> list[tuple[str, int]]:
        candidates = []
        for path, stamp in files_in(self._blobs):
            name = os.path.basename(path).removesuffix(".zst")
            if path.endswith(".zst") and len(name) == 64 and name not in found.names and self._age_s(stamp) > GRACE_S:
                candidates.append((path, stamp.size))
        return sorted(candidates)

    def _leftovers(self) -> list[tuple[str, int]]:
        return sorted(
            (path, stamp.size) for path, stamp in files_in(self._blobs)
            if os.path.basename(path).startswith(".") and path.endswith(".new") and self._age_s(stamp) > STALE_S
        )  # fmt: skip

    def _age_s(self, stamp: Stamp) -> float:
        return self._now() - stamp.mtime_ns / 1e9

    def _told(
        self,
        expired: list[Trashed],
        blobs: list[tuple[str, int]],
        leftovers: list[tuple[str, int]],
    ) -> Garbage:
        trash = sum(tree_bytes(os.path.join(self._home, DIRECTORY, t.name)) for t in expired)
        total = sum(path.endswith(".zst") for path, _ in files_in(self._blobs))
        return Garbage(
            tuple(expired), trash, len(blobs), sum(size for _, size in blobs), len(leftovers),
            sum(size for _, size in leftovers), total - len(blobs),
        )  # fmt: skip

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_dirs(self._files, self._blobs)
        fd = self._files.open(os.path.join(self._blobs, "lock"), LOCK_FILE)
        try:
            end = time.monotonic() + PATIENCE_S
            while not self._files.lock(fd, exclusive=True, wait=False):
                if time.monotonic() > end:
                    raise LogError("nothing was removed: a session keeps writing blobs", hint="try again later")
                time.sleep(0.02)
            yield
        finally:
            self._files.close(fd)


def _all(remove: Callable[[str], None], paths: Iterable[str]) -> Iterator[OSError]:
    """Remove each, and yield what was said of those that stay: one that cannot go keeps no other."""
    for path in paths:
        try:
            remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield error


def _directories(top: str) -> list[str]:
    """Return the names of the directories in one, links to them too: what a store does not open may still be read."""
    with os.scandir(top) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir())


def _hides(finding: Finding) -> str | None:
    if finding.problem is not None:
        return finding.problem
    if finding.newer is not None:
        return f"it is of the newer format {finding.newer[:40]}"
    bad = [d for d in finding.damages if not d.harmless and d.kind not in _NOTHING_HIDDEN]
    return f"{plural(len(bad), 'place')} damaged" if bad else None
