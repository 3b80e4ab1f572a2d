"""Brings a session back from a bucket: into a place of its own, checked, and only then into the list of sessions."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

from agentsh.base.errors import LogWriteFailed, SessionMissing, StorageConflict, StorageDamaged
from agentsh.log.archived import reading
from agentsh.log.checkpoint import DIRECTORY
from agentsh.log.files import CREATE, READ, FileSystem, RealFiles, make_dirs, write_all
from agentsh.log.lease import Lease, take
from agentsh.log.reserve import what_to_do
from agentsh.log.seekable import MAX_FRAME_BYTES, Unpacker
from agentsh.log.segment import OPEN_NAME, chunks, closed_segments, discard, exists
from agentsh.stores.blobs import FileBlobs, unpacked
from agentsh.stores.bucket import Bucket
from agentsh.stores.local_log import LocalLog
from agentsh.stores.manifest import Manifest, Part, Upped, blob_key, decode, line_hash, manifest_key, named_blobs
from agentsh.stores.push import each
from agentsh.stores.sealed_content import sealed_content
from agentsh.stores.session_check import Finding
from agentsh.stores.trash import Trash
from agentsh.stores.verify import Verifier

INCOMING = "incoming"
"""In a home: sessions that are on their way. A pull that was cut short goes on from there."""
QUARANTINE = "quarantine"
BLOBS_AT_A_TIME = 256

Progress = Callable[[int], None]
"""Is told how many bytes came."""


class Pulled(NamedTuple):
    """What a pull did. how: `new`, `forward` (the session here was a part of it), `same` or `ahead` (it is here).

    finding: what verification says of the restored log, None where nothing was restored. blobs: how many came.
    lost_blobs: named by the log, and not there either. kept: where the older session went, or None.
    """

    manifest: Manifest
    how: str
    finding: Finding | None
    blobs: int
    lost_blobs: tuple[str, ...]
    kept: str | None


class Puller:
    """Pulls sessions into one home. Blocks.

    Every method may raise StorageUnavailable, StorageRefused and StorageDamaged.
    """

    def __init__(
        self, bucket: Bucket, home: str, *, files: FileSystem | None = None, progress: Progress | None = None
    ) -> None:
        self._bucket = bucket
        self._home = home
        self._sessions = os.path.join(home, "sessions")
        self._blobs = FileBlobs(os.path.join(home, "blobs"))
        self._files = files or RealFiles()
        self._progress: Progress = progress or (lambda _: None)

    def manifest(self, session: str) -> Manifest:
        """Return what is there of a session.

        Raises:
            SessionMissing: nothing.
        """
        found = self._bucket.read(manifest_key(session))
        if found is None:
            raise SessionMissing(f"there is no session {session} at {self._bucket.url}")
        return decode(found[0], session)

    def listed(self) -> list[str]:
        """Return the ids of the sessions that are there."""
        return [name for name in self._bucket.list("sessions/") if not name.startswith(".")]

    def pull(self, session: str) -> Pulled:
        """Restore a session.

        Raises:
            SessionMissing: it is not there.
            SessionHeld: it is open here.
            StorageConflict: the one here is not a part of it.
            LogWriteFailed: the disk refused; what came so far is kept, and the next pull goes on.
        """
        manifest = self.manifest(session)
        target = os.path.join(self._sessions, session)
        try:
            with self._lease(target, session):
                here = self._here(target, manifest)
                if here in ("same", "ahead"):
                    with self._blobs.writing():
                        came = self._fetch_blobs(self._named_in(target), manifest)
                    return Pulled(manifest, here, None, came, manifest.lost_blobs, None)
                return self._restore(manifest, target, forward=here == "forward")
        except OSError as error:
            raise LogWriteFailed(
                f"cannot restore {session}: {error.strerror or error}", hint=what_to_do(error)
            ) from error

    @contextmanager
    def _lease(self, target: str, session: str) -> Iterator[None]:
        lease: Lease | None = take(self._files, target, session) if exists(self._files, target) else None
        try:
            yield
        finally:
            if lease is not None:
                lease.release()

    def _here(self, target: str, manifest: Manifest) -> str:
        """Return how the session here stands to the copy: `new` (there is none), `forward`, `same` or `ahead`."""
        if not exists(self._files, target):
            return "new"
        with LocalLog(reading(self._files, target), target, manifest.session) as log:
            if log.last is None:
                return "forward"
            if log.line_at(manifest.last_seq) == manifest.line:
                return "same" if log.last.seq == manifest.last_seq else "ahead"
            if log.last.seq < manifest.last_seq:
                return "forward"  # if its last event is the same there, which is only known once that is here
        raise StorageConflict(
            f"{manifest.session} is here already, and went another way than the copy from {manifest.host[:80]}",
            hint=_both(manifest.session),
        )

    def _restore(self, manifest: Manifest, target: str, *, forward: bool) -> Pulled:
        files, session = self._files, manifest.session
        place = os.path.join(self._home, INCOMING)
        staging = os.path.join(place, session)
        make_dirs(files, staging)
        lease = take(files, staging, session)
        try:
            self._clear(staging, manifest)
            for segment in manifest.segments:
                self._fetch(staging, segment)
            finding = self._checked(staging, manifest)
            if forward:
                self._check_prefix(target, staging, manifest)
            if manifest.checkpoint is not None:
                self._fetch_checkpoint(staging, manifest.checkpoint)
            with self._blobs.writing():  # `gc` has to wait until the log that names them is in its place
                came = self._fetch_blobs(self._named_in(staging), manifest)
                kept = None
                files.sync_dir(staging)
                make_dirs(files, self._sessions)
                if forward:
                    self._keep_quarantine(target, staging)
                    kept = Trash(self._home, files=files).put(session, why="pull", workspace=None)
                files.rename(staging, target)
                files.sync_dir(self._sessions)
                files.sync_dir(place)
        finally:
            lease.release()
        with suppress(OSError):
            files.rmdir(place)
        return Pulled(manifest, "forward" if forward else "new", finding, came, manifest.lost_blobs, kept)

    def _clear(self, staging: str, manifest: Manifest) -> None:
        """Take away what an earlier pull of another manifest left; what is whole and wanted stays."""
        wanted = {segment.name for segment in manifest.segments}
        for name in self._files.listdir(staging):
            if name.endswith(".new") or (name.endswith((".jsonl", ".jsonl.zst")) and name not in wanted):
                discard(self._files, os.path.join(staging, name))

    def _fetch(self, staging: str, segment: Upped) -> None:
        path = os.path.join(staging, segment.name)
        if exists(self._files, path):
            if self._digest(path, sealed=segment.sealed) == segment.raw_sha256:
                return
            discard(self._files, path)
        new = f"{path}.new"
        fd = self._files.open(new, CREATE)
        digest, size = sha256(), 0
        try:
            for at in range(0, len(segment.parts), 4):
                some = segment.parts[at : at + 4]
                for part, data in zip(some, each(self._object, [(p,) for p in some]), strict=True):
                    content = data if segment.sealed else _unpacked(part, data)
                    digest.update(content)
                    size += len(content)
                    write_all(self._files, fd, content)
            self._files.sync(fd)
        except BaseException:
            discard(self._files, new)
            raise
        finally:
            self._files.close(fd)
        if not segment.sealed and (digest.hexdigest(), size) != (segment.raw_sha256, segment.raw_bytes):
            discard(self._files, new)
            raise StorageDamaged(f"the objects of segment {segment.name} do not make up what its manifest says")
        if segment.sealed and self._digest(new, sealed=True) != segment.raw_sha256:
            discard(self._files, new)
            raise StorageDamaged(f"object {segment.parts[0].key} does not hold what its manifest says")
        self._files.rename(new, path)

    def _object(self, part: Part) -> bytes:
        found = self._bucket.read(part.key)
        if found is None:
            raise StorageDamaged(f"object {part.key} is missing, and its manifest names it")
        if sha256(found[0]).hexdigest() != part.sha256:
            raise StorageDamaged(f"object {part.key} is not what its manifest says: its SHA-256 is another")
        self._progress(len(found[0]))
        return found[0]

    def _digest(self, path: str, *, sealed: bool) -> str | None:
        digest = sha256()
        try:
            for chunk in _content(self._files, path, sealed=sealed):
                digest.update(chunk)
        except OSError:
            return None
        return digest.hexdigest()

    def _checked(self, staging: str, manifest: Manifest) -> Finding:
        """Verify the log: every crc, every seq, the chain of the segments, and that it ends as the manifest says."""
        place = os.path.dirname(staging)
        (finding,) = Verifier(place, None).check([manifest.session])
        with LocalLog(self._files, staging, manifest.session) as log:
            last = log.last
        if last is None or last.seq != manifest.last_seq or line_hash(last.line) != manifest.line:
            raise StorageDamaged(f"the log of {manifest.session} does not end as its manifest says")
        return finding

    def _check_prefix(self, target: str, staging: str, manifest: Manifest) -> None:
        with (
            LocalLog(reading(self._files, target), target, manifest.session) as mine,
            LocalLog(self._files, staging, manifest.session) as copy,
        ):
            if mine.last is not None and copy.line_at(mine.last.seq) != line_hash(mine.last.line):
                raise StorageConflict(
                    f"{manifest.session} is here already, and its last event is not in the copy",
                    hint=_both(manifest.session),
                )

    def _fetch_checkpoint(self, staging: str, part: Part) -> None:
        place = os.path.join(staging, DIRECTORY)
        make_dirs(self._files, place)
        path = os.path.join(place, part.key.rpartition("/")[2])
        discard(self._files, path)
        data = self._object(part)
        fd = self._files.open(path, CREATE)
        try:
            write_all(self._files, fd, data)
            self._files.sync(fd)
        finally:
            self._files.close(fd)
        self._files.sync_dir(place)

    def _named_in(self, directory: str) -> set[str]:
        names: set[str] = set()
        files = reading(self._files, directory)
        for name in files.listdir(directory):
            if name == OPEN_NAME or closed_segments([name]):
                rest = b""
                for chunk in _content(files, os.path.join(directory, name), sealed=name.endswith(".zst")):
                    whole, _, rest = (rest + chunk).rpartition(b"\n")
                    names |= named_blobs(whole)
                names |= named_blobs(rest)
        return names

    def _fetch_blobs(self, names: set[str], manifest: Manifest) -> int:
        lost, came = set(manifest.lost_blobs), 0

        def one(name: str) -> int:
            if self._blobs.packed(name) is not None:
                return 0
            found = self._bucket.read(blob_key(name))
            if found is None:
                if name in lost:
                    return 0
                raise StorageDamaged(
                    f"object {blob_key(name)} is missing, and the log of {manifest.session} names it"
                )
            data = unpacked(name, found[0])
            if data is None:
                raise StorageDamaged(f"object {blob_key(name)} is not what its name says")
            self._blobs.put(data)
            self._progress(len(found[0]))
            return 1

        wanted = sorted(names)
        for at in range(0, len(wanted), BLOBS_AT_A_TIME):
            came += sum(each(one, [(name,) for name in wanted[at : at + BLOBS_AT_A_TIME]]))
        return came

    def _keep_quarantine(self, target: str, staging: str) -> None:
        """What was set aside here stays beside the log; links, so that the older session keeps it too."""
        old, new = os.path.join(target, QUARANTINE), os.path.join(staging, QUARANTINE)
        if not exists(self._files, old):
            return
        make_dirs(self._files, new)
        for name in self._files.listdir(old):
            with suppress(FileExistsError):
                self._files.link(os.path.join(old, name), os.path.join(new, name))
        self._files.sync_dir(new)


def _content(files: FileSystem, path: str, *, sealed: bool) -> Iterator[bytes]:
    if sealed:
        yield from sealed_content(files, path)
        return
    fd = files.open(path, READ)
    try:
        yield from chunks(files, fd, 0)
    finally:
        files.close(fd)


def _unpacked(part: Part, data: bytes) -> bytes:
    whole = Unpacker().first_frame(data) if part.raw_bytes <= MAX_FRAME_BYTES else None
    if whole is None or whole[1] != len(data) or len(whole[0]) != part.raw_bytes:
        raise StorageDamaged(f"object {part.key} does not unpack")
    return whole[0]


def _both(session: str) -> str:
    """Return what to do where neither is the beginning of the other."""
    elsewhere = f"`agentsh pull {session} --home DIR` brings the copy elsewhere"
    return f"both are kept as they are; {elsewhere}, `agentsh push {session} --replace` makes this one the copy"
