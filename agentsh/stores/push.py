"""Brings a session to a bucket: what is missing there, and last its manifest. Nothing there is ever deleted.

The queue is what differs between here and there, so that it needs no file: whoever was killed, and whoever comes
next, compare and go on. docs/upload.md is normative for the objects.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5, sha256
from typing import Any, NamedTuple

from agentsh.base.errors import LogTooNew, SessionMissing, StorageConflict, StorageDamaged, StorageRefused
from agentsh.base.errors import SessionReadOnly as Unreadable
from agentsh.base.ids import random_hex
from agentsh.log.archived import reading
from agentsh.log.checkpoint import DIRECTORY
from agentsh.log.files import FileSystem, RealFiles
from agentsh.log.lease import holder_of
from agentsh.log.seekable import Packer, pieces
from agentsh.stores.blobs import FileBlobs, unpacked
from agentsh.stores.bucket import Bucket, Found
from agentsh.stores.local_log import Content, LocalLog, newest_checkpoint
from agentsh.stores.manifest import (
    FORMAT,
    MARKER_KEY,
    Manifest,
    Part,
    Upped,
    blob_key,
    decode,
    encode,
    line_hash,
    manifest_key,
    named_blobs,
)

PART_BYTES = 4 << 20
"""Content of a part, at most, but for longer lines; what is in memory at once is this times AT_A_TIME."""
AT_A_TIME = 4
LOOK_FIRST_BYTES = 64 << 10
"""For less than this it is no dearer to send it than to ask first whether it is there."""
TRIES = 3
"""Somebody else may change the manifest between our reading it and our changing it."""

Progress = Callable[[int], None]
"""Is told how many bytes of content are done."""


class Pushed(NamedTuple):
    """What a push did. changed: the manifest was moved. sent: bytes of objects. lost: blobs that are missing here."""

    session: str
    last_seq: int
    changed: bool
    sent: int
    lost: int


class Pusher:
    """Pushes sessions of one home. Blocks. by, host: for the manifests. stamp: the time now, for them.

    Every method may raise StorageUnavailable, StorageRefused, StorageConflict and StorageDamaged.
    """

    def __init__(
        self, bucket: Bucket, sessions_dir: str, blobs_dir: str, *, by: str, host: str, stamp: Callable[[], str],
        files: FileSystem | None = None, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._bucket = bucket
        self._root = sessions_dir
        self._blobs_dir = blobs_dir
        self._blobs = FileBlobs(blobs_dir)
        self._by, self._host, self._stamp = by, host, stamp
        self._files = files or RealFiles()
        self._progress: Progress = progress or (lambda _: None)
        self._sent = 0
        self._proven = False

    def ready(self) -> None:
        """Make sure that the place can be written, as far as that is known before anything is.

        Writes to a prefix that is new, see `agentsh-upload.json` in docs/upload.md.
        """
        self._bucket.ready()
        self._prove()

    def push(
        self, session: str, *, durable_seq: int = 0, about: Mapping[str, Any] | None = None, replace: bool = False
    ) -> Pushed:
        """Bring a session to the bucket as far as it is durable. Idempotent.

        durable_seq: what its writer knows to be. about: for listings, None leaves what is there. replace: also
        where the copy there is another one; and each object is looked at again, and made good.

        Raises:
            SessionMissing, SessionReadOnly: there is no such session, or it cannot be read.
            LogTooNew: of a format that is not ours.
        """
        directory = os.path.join(self._root, session)
        held = holder_of(self._files, directory) is not None
        try:
            files = reading(self._files, directory)
            with LocalLog(files, directory, session, held=held, durable_seq=durable_seq) as log:
                if log.newer:
                    raise LogTooNew(f"session {session} is in the newer format {log.newer[:40]}")
                return self._push(log, about, replace)
        except FileNotFoundError as error:
            raise SessionMissing(f"no session {session}") from error
        except OSError as error:
            raise Unreadable(f"cannot read session {session}: {error.strerror or error}") from error

    def _push(self, log: LocalLog, about: Mapping[str, Any] | None, replace: bool) -> Pushed:
        session, before = log.session, self._sent
        if log.last is None:
            return Pushed(session, 0, False, 0, 0)
        self._prove()
        for _ in range(TRIES):
            there = self._bucket.read(manifest_key(session))
            known = None if there is None else self._known(there[0], log, replace)
            if known is not None and known.last_seq > log.last.seq:  # what is durable is known better by another
                return Pushed(session, known.last_seq, False, 0, len(known.lost_blobs))
            manifest = self._objects(log, known, about, anew=replace)
            if known is not None and _same(known, manifest):
                return Pushed(session, log.last.seq, False, self._sent - before, len(manifest.lost_blobs))
            data = encode(manifest)
            if there is None:
                done = self._bucket.create(manifest_key(session), data)
            else:
                if known is None or not _carried(known, log):
                    self._keep(session, there[0])  # what it names stays, and may be better than what is here now
                done = self._bucket.replace(manifest_key(session), data, there[1])
            if done is not None:
                self._sent += len(data)
                return Pushed(session, log.last.seq, True, self._sent - before, len(manifest.lost_blobs))
        raise StorageConflict(f"another machine writes to the copy of {session} right now", hint="try again")

    def _known(self, data: bytes, log: LocalLog, replace: bool) -> Manifest | None:
        """Return the manifest that is there, if this log goes on from it; None where it is to be replaced."""
        try:
            found = decode(data, log.session)
        except StorageDamaged:
            if replace:
                return None
            raise
        assert log.last is not None
        here = log.line_at(found.last_seq)
        if here == found.line:
            return found
        if replace:
            return None
        if here is None and found.last_seq <= log.last.seq:
            raise StorageConflict(
                f"event {found.last_seq} of {log.session}, the last of the copy, does not read here",
                hint=f"`agentsh verify {log.session}` tells what is damaged; the copy may be the better one",
            )
        if found.last_seq > log.last.seq:
            raise StorageConflict(
                f"the copy of {log.session} goes on to event {found.last_seq}, written at {found.host[:80]}; here it "
                f"ends with {log.last.seq}",
                hint=f"`agentsh pull {log.session}` brings it here, if this one is a part of it; else "
                f"`agentsh push {log.session} --replace` makes this the copy",
            )
        raise StorageConflict(
            f"{log.session} was continued at {found.host[:80]} too: event {found.last_seq} there is not the one here",
            hint=f"`agentsh push {log.session} --replace` makes this the copy; the other's manifest is kept",
        )

    def _objects(
        self, log: LocalLog, known: Manifest | None, about: Mapping[str, Any] | None, *, anew: bool
    ) -> Manifest:
        """Put everything there that the manifest will name, and return that. Blobs first: nothing dangles, ever.

        anew: also what the known manifest names already; it may be damaged.
        """
        by_ordinal = {s.ordinal: s for s in known.segments} if known is not None and not anew else {}
        lost = set(self._push_blobs(known.lost_blobs if known is not None else ()))
        segments = [self._segment(log.session, c, by_ordinal.get(c.ordinal), lost) for c in log.contents]
        assert log.last is not None
        if about is None:
            about = known.about if known is not None else {}
        return Manifest(
            log.session, log.last.seq, line_hash(log.last.line), self._stamp(), self._by, self._host,
            tuple(segments), self._checkpoint(log, known), tuple(sorted(lost)), about,
        )  # fmt: skip

    def _segment(self, session: str, content: Content, known: Upped | None, lost: set[str]) -> Upped:
        if known is not None and content.hash_to(known.raw_bytes) != known.raw_sha256:
            known = None  # `repair` or a rescue has made another one of it
        if known is not None and known.raw_bytes == content.end:
            self._progress(content.end)
            return known if known.sealed else known._replace(name=_name(content))
        prefix = f"sessions/{session}/segments/{content.key_name()}"
        if content.sealed and known is None:
            for piece in content.raw(0, content.end):
                lost.update(self._push_blobs(named_blobs(piece)))
            part = self._part(f"{prefix}/{{}}.zst", content.file(), content.end)
            self._progress(content.end)
            return Upped(
                content.name, content.ordinal, content.end, content.hash_to(content.end) or "", True, (part,)
            )
        parts = list(known.parts) if known is not None and not known.sealed else []
        start = sum(part.raw_bytes for part in parts)
        self._progress(start)
        while parts and parts[-1].raw_bytes < min(2 * (content.end - start), PART_BYTES):
            start -= parts.pop().raw_bytes  # so that many small ones become few, each byte sent a few times at most
        parts += self._parts(prefix, content, start, lost)
        return Upped(
            _name(content), content.ordinal, content.end, content.hash_to(content.end) or "", False,
            tuple(parts),
        )  # fmt: skip

    def _parts(self, prefix: str, content: Content, start: int, lost: set[str]) -> list[Part]:
        parts: list[Part] = []
        batch: list[tuple[int, bytes]] = []
        for piece in pieces(content.raw(start, content.end), PART_BYTES):
            batch.append((start, piece))
            start += len(piece)
            if len(batch) == AT_A_TIME:
                parts += self._send(prefix, batch, lost)
                batch = []
        return parts + self._send(prefix, batch, lost)

    def _send(self, prefix: str, batch: list[tuple[int, bytes]], lost: set[str]) -> list[Part]:
        lost.update(self._push_blobs(set().union(*(named_blobs(piece) for _, piece in batch))))

        def one(at: int, piece: bytes) -> Part:
            key = f"{prefix}/{at:012}-{at + len(piece):012}-{{}}.jsonl.zst"
            part = self._part(key, Packer().frame(piece), len(piece))
            self._progress(len(piece))
            return part

        return each(one, batch)

    def _part(self, key: str, data: bytes, raw_bytes: int) -> Part:
        """Put an object whose key holds the beginning of its hash, and return what the manifest says of it."""
        digest = sha256(data).hexdigest()
        part = Part(key.format(digest[:16]), len(data), digest, raw_bytes)
        self._put(part.key, data, lambda there: there == data)
        return part

    def _push_blobs(self, names: Iterable[str]) -> list[str]:
        """Put blobs there; return the names of those that are not here."""

        def one(name: str) -> str | None:
            data = self._blobs.packed(name)
            if data is None:  # another machine may have it
                return None if self._bucket.head(blob_key(name)) is not None else name
            self._put(blob_key(name), data, lambda there: unpacked(name, there) is not None)
            return None

        return [name for name in each(one, [(name,) for name in sorted(names)]) if name is not None]

    def _put(self, key: str, data: bytes, holds: Callable[[bytes], bool]) -> None:
        """Put an object unless it is there, and make sure of it. holds: tells whether bytes there will do."""
        found = self._bucket.head(key) if len(data) >= LOOK_FIRST_BYTES else None
        if found is None and (made := self._bucket.create(key, data)) is not None:
            self._sent += len(data)
            if made.md5 is None and (made := self._bucket.head(key)) is None:
                raise StorageDamaged(f"object {key} is not there after it was written")
            if not _plausible(made, data):
                raise StorageDamaged(f"object {key} is not what was written")
            return
        found = found or self._bucket.head(key)
        if found is not None and _plausible(found, data) and found.md5 is not None:
            return
        there = self._bucket.read(key)
        if there is None or not holds(there[0]):
            # What stands at a key like this can only be these bytes; anything else is damage, and is replaced.
            if there is None or self._bucket.replace(key, data, there[1]) is None:
                raise StorageDamaged(f"object {key} is not what it should be, and changes")
            self._sent += len(data)

    def _checkpoint(self, log: LocalLog, known: Manifest | None) -> Part | None:
        assert log.last is not None
        found = newest_checkpoint(os.path.join(self._root, log.session), log.last.seq)
        if found is None:
            ours = known is not None and known.last_seq <= log.last.seq  # else it may be ahead of this log
            return known.checkpoint if known is not None and ours else None
        name, data = found
        return self._part(f"sessions/{log.session}/{DIRECTORY}/{{}}/{name}", data, 0)

    def _keep(self, session: str, manifest: bytes) -> None:
        digest = sha256(manifest).hexdigest()[:16]
        self._put(f"sessions/{session}/replaced/{digest}.json", manifest, lambda there: there == manifest)

    def _prove(self) -> None:
        """Make sure, once for a prefix, that the place honours conditions: else two machines would overwrite."""
        if self._proven or self._bucket.head(MARKER_KEY) is not None:
            self._proven = True
            return
        data = b'{"format":"%b"}\n' % FORMAT.encode()
        probe = f"{MARKER_KEY}.probe"
        found = self._bucket.create(probe, data) or self._bucket.head(probe)
        overwritten = self._bucket.create(probe, data) is not None
        if found is not None and not overwritten:
            other = data + random_hex(8).encode()
            newer = self._bucket.replace(probe, other, found)  # from here on `found` is stale
            overwritten = newer is not None and self._bucket.replace(probe, data, found) is not None
        if overwritten:
            raise StorageRefused(
                f"{self._bucket.url}: it overwrites what it was told not to (If-None-Match, If-Match)",
                hint="another kind of storage; see docs/upload.md",
            )
        self._bucket.create(MARKER_KEY, data)
        self._proven = True


def _name(content: Content) -> str:
    return content.name if content.is_open else content.key_name()


def _carried(known: Manifest, log: LocalLog) -> bool:
    """Tell whether all that the copy has is here as it is there: not so after a repair, or a rescue."""
    here = {content.ordinal: content for content in log.contents}
    return all(s.ordinal in here and here[s.ordinal].hash_to(s.raw_bytes) == s.raw_sha256 for s in known.segments)


def _same(old: Manifest, new: Manifest) -> bool:
    """Tell whether nothing would change but when and where it was said."""
    return new._replace(updated=old.updated, by=old.by, host=old.host) == old


def _plausible(found: Found | None, data: bytes) -> bool:
    if found is None or found.size != len(data):
        return False
    return found.md5 is None or found.md5 == md5(data, usedforsecurity=False).hexdigest()


def each(job: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Return what `job` returns for each, some of them at a time. The first failure is raised."""
    if len(arguments) <= 1:
        return [job(*each) for each in arguments]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        futures = [pool.submit(job, *each) for each in arguments]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
