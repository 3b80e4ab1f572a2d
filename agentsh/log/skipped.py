"""Reads, at leisure, what a checkpoint spared the opening of a log: damage there is found days later at the latest.

How far it came is remembered in `checkpoints/verified.json`, a cache: closed segments that read without a flaw and
are still the same files are not read again. `agentsh verify` reads everything.
"""

import json
import os
import threading
import time
from contextlib import suppress
from itertools import pairwise
from typing import Any

from agentsh.log.chain import LogScan, Segment
from agentsh.log.checkpoint import DIRECTORY
from agentsh.log.files import CREATE, READ, FileSystem, write_all
from agentsh.log.segment import chunks, discard
from agentsh.log.store import Damage

FILE = "verified.json"
AT_A_TIME = 256
"""Lines between two pauses: a millisecond, so that nobody feels it."""
PAUSES = 3
"""A pause is this many times as long as the reading before it: a quarter of one processor at most."""


def skipped_damages(files: FileSystem, directory: str, session: str, stop: threading.Event) -> list[Damage]:
    """Return the places of a log that do not read, but for what an earlier pass has covered. Blocks, for long.

    Returns nothing once `stop` is set.

    Raises:
        OSError: the log cannot be read.
    """
    scan = LogScan(files, directory, session)
    try:
        after = _covered(files, directory, scan.segments)
        seq, began_s = after, time.perf_counter()
        for n, entry in enumerate(scan.entries(after), 1):
            seq = entry[0]
            if n % AT_A_TIME == 0:
                if stop.wait(PAUSES * (time.perf_counter() - began_s)):
                    break
                began_s = time.perf_counter()
        found = [damage for damage in scan.damages if not damage.harmless]
        if not found:
            _remember(files, directory, scan.segments, seq)
        return [] if stop.is_set() else found
    finally:
        scan.close()


def _identity(files: FileSystem, segment: Segment) -> list[Any]:
    found = files.fstat(segment.fd)
    return [segment.name, found.inode, found.size, found.mtime_ns]


def _covered(files: FileSystem, directory: str, segments: list[Segment]) -> int:
    """Return the seq up to which earlier passes have read segments that are still the same; 0 where none is."""
    upto = 0
    try:
        fd = files.open(os.path.join(directory, DIRECTORY, FILE), READ)
        try:
            rows = json.loads(b"".join(chunks(files, fd, 0)))["segments"]
        finally:
            files.close(fd)
        for (*identity, seq), segment in zip(rows, segments, strict=False):
            if identity != _identity(files, segment) or type(seq) is not int or seq < upto:
                break
            upto = seq
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return 0
    return upto


def _remember(files: FileSystem, directory: str, segments: list[Segment], seq: int) -> None:
    """Note the closed segments that end before `seq`; whoever cannot write that reads again next time."""
    rows: list[list[Any]] = []
    for segment, following in pairwise(segments):
        header = following.head.header
        if header is None or header.first_seq > seq:
            break
        rows.append([*_identity(files, segment), header.first_seq - 1])
    path = os.path.join(directory, DIRECTORY, FILE)
    with suppress(OSError):
        discard(files, path + ".new")
        fd = files.open(path + ".new", CREATE)
        try:
            write_all(files, fd, json.dumps({"segments": rows}).encode())
        finally:
            files.close(fd)
        files.rename(path + ".new", path)
