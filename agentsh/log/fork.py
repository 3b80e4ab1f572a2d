"""A log that goes on from a place in another one: the segments are shared by hard link, nothing of them is copied.

The child has its parent's segments under their closed names, the open one too, and a segment of its own whose header
says how much of the last of them is its part. A segment that somebody shares is never written into but at its end,
and never cut below what it has; so neither notices what becomes of the other. Source: DESIGN section 4.
"""

import errno
import os
from typing import NamedTuple

from agentsh.log.archived import archive_damage, reading
from agentsh.log.chain import END_BYTES, LogScan, Segment
from agentsh.log.files import CREATE, FileSystem, make_dirs, write_all
from agentsh.log.lease import LOCK_NAME, Lease, take
from agentsh.log.recover import OpenSegment
from agentsh.log.scan import Flaw, SegmentScan, last_seq_in
from agentsh.log.segment import begin_segment, chunks, closed_name, discard, exists, new_header

TRIES = 10
"""A writer may close, seal or repair the parent's segments between our listing and our linking."""
UNFINISHED = ".new"
"""Behind a dot and the child's id: what a fork is built in. A crash leaves it, and it is no session."""

_CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP})


class NoSuchEvent(Exception):
    """The parent has no event with that seq, or it does not read. last_seq: of the parent."""

    def __init__(self, last_seq: int) -> None:
        super().__init__(str(last_seq))
        self.last_seq = last_seq


class Branch(NamedTuple):
    """Where a fork leaves its parent. upto_bytes: of the content of the last of the segments."""

    segments: tuple[Segment, ...]
    upto_seq: int
    upto_bytes: int


def find_branch(files: FileSystem, scan: LogScan, upto_seq: int | None) -> Branch:
    """Return the place behind event `upto_seq` (None: behind the last one). At most one segment is read.

    Raises:
        NoSuchEvent: the event is not there.
        OSError: the log cannot be read.
    """
    for n in reversed(range(len(scan.segments))):
        segment = scan.segments[n]
        first = segment.head.header.first_seq if segment.head.header is not None else 0
        if upto_seq is not None and first > upto_seq:
            continue
        place = _last_place(files, segment) if upto_seq is None else _place_of(files, segment, upto_seq)
        if place is not None:
            return Branch(tuple(scan.segments[: n + 1]), *place)
        if upto_seq is not None and first:
            break  # it could have been in here alone
    raise NoSuchEvent(_last_seq(files, scan))


def _last_seq(files: FileSystem, scan: LogScan) -> int:
    for segment in reversed(scan.segments):
        place = _last_place(files, segment)
        if place is not None:
            return place[0]
    return 0


def _last_place(files: FileSystem, segment: Segment) -> tuple[int, int] | None:
    """Return (seq, end) of the last record of a segment that is this log's, or None where there is none."""
    if segment.sealed is None and segment.head.salt is not None and segment.cap is None:
        end = files.fstat(segment.fd).size if segment.limit is None else segment.limit
        start = max(segment.head.start, end - END_BYTES)
        data = b"".join(chunks(files, segment.fd, start, end))
        data = data[: data.rfind(b"\n") + 1]  # a writer may be in the middle of a line
        seq = last_seq_in(data, segment.head.salt)
        if seq is not None:
            return seq, start + len(data)
    return _place_of(files, segment, None)


def _place_of(files: FileSystem, segment: Segment, seq: int | None) -> tuple[int, int] | None:
    """Return (seq, end) of a record, or of the last one; None where it is not there. Reads the segment."""
    found: tuple[int, int] | None = None
    if segment.sealed is None:
        scans = iter([SegmentScan(segment.head, chunks(files, segment.fd, segment.head.start, segment.limit))])
    else:
        after = (seq or 1) - 1
        runs = segment.sealed.runs(segment.head, segment.limit, after)
        scans = (run.scan for run in runs if not isinstance(run, Flaw))
    for scan in scans:
        for item in scan.items():
            if isinstance(item, Flaw) or (segment.cap is not None and item[0] >= segment.cap):
                continue
            if seq is None or item[0] == seq:
                found = (item[0], item[3] + len(item[1]) + 1)
            if seq is not None and item[0] >= seq:
                return found
    return found


def fork(
    files: FileSystem, root: str, parent: str, child: str, upto_seq: int | None, *, by: str
) -> tuple[OpenSegment, Lease, int]:
    """Make the log of `child` from that of `parent`; return its open segment, its lease, and the seq it goes on from.

    The parent may be written meanwhile; its lease is not needed. by: program and version, for the header.

    Raises:
        NoSuchEvent: the parent has no such event.
        FileExistsError: the child's id is taken.
        SessionHeld: somebody has the child, which is about to be.
        OSError: the disk refused; nothing of the child is left.
    """
    new = os.path.join(root, f".{child}{UNFINISHED}")
    target = os.path.join(root, child)
    make_dirs(files, root)
    if exists(files, target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    _clear(files, new)
    files.mkdir(new)
    lease: Lease | None = None
    try:
        lease = take(files, new, child)
        branch = _shared(files, os.path.join(root, parent), parent, new, upto_seq)
        last = branch.segments[-1]
        header = new_header(
            child, ordinal=last.ordinal + 1, first_seq=branch.upto_seq + 1, by=by,
            parent={"session": parent, "upto_seq": branch.upto_seq, "upto_bytes": branch.upto_bytes},
        )  # fmt: skip
        segment = OpenSegment(
            begin_segment(files, new, header), len(header.raw), header.salt, header.ordinal, header.first_seq
        )
        try:
            if exists(files, target):  # a rename would take the place of an empty directory
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            files.rename(new, target)
            files.sync_dir(root)
        except BaseException:
            files.close(segment.fd)
            raise
        return segment, lease, branch.upto_seq
    except BaseException:
        _clear(files, new)
        if lease is not None:
            lease.release()
        raise


def _shared(files: FileSystem, directory: str, session: str, new: str, upto_seq: int | None) -> Branch:
    """Link the segments of one moment of the parent into the directory `new`, or copy them out of its archive."""
    for _ in range(TRIES):
        source = reading(files, directory)
        if not all(damage.harmless for damage in archive_damage(source)):
            raise OSError(errno.EIO, f"its archive is damaged; `agentsh repair {session}` saves what is left of it")
        scan = LogScan(source, directory, session)
        try:
            branch = find_branch(files, scan, upto_seq)
            if source is not files:
                for segment in branch.segments:
                    _copied(files, segment, new, branch)
                return branch._replace(segments=tuple(s._replace(fd=-1) for s in branch.segments))
            if branch.segments[-1].is_open:
                files.sync(branch.segments[-1].fd)  # what the child is said to have must outlive a power cut
            if all(_link(files, directory, segment, new, branch) for segment in branch.segments):
                return branch._replace(segments=tuple(s._replace(fd=-1) for s in branch.segments))
        finally:
            scan.close()
        for name in files.listdir(new):
            if name != LOCK_NAME:
                discard(files, os.path.join(new, name))
    raise OSError(errno.EBUSY, f"the segments of {session} change too fast")


def _link(files: FileSystem, directory: str, segment: Segment, new: str, branch: Branch) -> bool:
    """Give the child one segment; False where it is another by now."""
    source, target = os.path.join(directory, segment.name), _target(segment, new)
    try:
        files.link(source, target)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        _copied(files, segment, new, branch)
        return True
    return files.stat(target).inode == segment.inode


def _target(segment: Segment, new: str) -> str:
    """Return what a segment is called in the child: one that is open here is a closed one there."""
    if not segment.is_open:
        return os.path.join(new, segment.name)
    header = segment.head.header
    return os.path.join(new, closed_name(segment.ordinal, header.first_seq if header is not None else 1))


def _copied(files: FileSystem, segment: Segment, new: str, branch: Branch) -> None:
    """Give the child a copy of what it has of one segment."""
    limit = branch.upto_bytes if segment is branch.segments[-1] else segment.limit
    _copy(files, segment.fd, _target(segment, new), limit if segment.sealed is None else None)


def _copy(files: FileSystem, source: int, target: str, limit: int | None) -> None:
    """Copy a segment where it cannot be linked, as on another device."""
    fd = files.open(target, CREATE)
    try:
        for chunk in chunks(files, source, 0, limit):
            write_all(files, fd, chunk)
        files.sync(fd)
    finally:
        files.close(fd)


def _clear(files: FileSystem, directory: str) -> None:
    """Remove what a fork was built in, if it is there."""
    try:
        names = files.listdir(directory)
    except OSError:
        return
    for name in names:
        discard(files, os.path.join(directory, name))
    try:
        files.rmdir(directory)
    except OSError:
        return
