"""What `doctor` looks at in a home: permissions, leases, the index, strays, room, every session. Mends nothing."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from agentsh.app.catalog import Place, places
from agentsh.app.doctor import Line, fail, mine, ok, owner_only, warn
from agentsh.app.obstacles import of_home
from agentsh.app.paths import Home, Homes
from agentsh.app.verifying import headline, verify
from agentsh.base.errors import LogError
from agentsh.base.ids import is_session_id
from agentsh.base.text import plural
from agentsh.log.depths import walk
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of
from agentsh.log.plain import odd
from agentsh.log.segment import NEW_NAME

LITTLE_BYTES = 1 << 30
TOO_LITTLE_BYTES = 100 << 20
STALE_S = 3600.0
"""A file of a blob that is being written is younger than that."""
MAX_NAMED = 5


def look_at(homes: Homes, progress: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Look at every home that is read, and at their sessions."""
    if homes.note:
        yield warn("home", homes.note, "`agentsh trust`, if it is yours")
    for home in homes.read:
        writes = " (new sessions go here)" if home == homes.write else ""
        if not home.root.is_dir():
            yield ok("home", f"{home.root}: not there yet{writes}")
            continue
        yield ok("home", f"{home.root}: {'trusted' if home.trusted else 'not trusted, only read'}{writes}")
        try:
            found = places([home])
        except LogError as error:
            found = []
            yield fail("sessions", error.message, "mend what stands there, or who may read it")
        yield from _room(home)
        for obstacle in of_home(home):
            yield fail("home", f"{obstacle.path} is {obstacle.what}: {obstacle.cost}", f"move it away: {home.root}")
        if home.trusted:
            yield from _permissions(home)
            yield from _flock(home)
            yield from _index(home, len(found))
            yield from _strays(home, found)
        yield from _leases(found)
        yield from _sessions(found, progress)


def _room(home: Home) -> Iterator[Line]:
    free = shutil.disk_usage(home.root).free
    text = f"{free / 1e9:,.1f} GB free"
    if free < TOO_LITTLE_BYTES:
        yield fail("disk", text, f"make room at {home.root}: a full disk means that nothing is saved")
    elif free < LITTLE_BYTES:
        yield warn("disk", text, f"make room at {home.root}")
    else:
        yield ok("disk", text)


def _permissions(home: Home) -> Iterator[Line]:
    """Only the owner may read what agentsh keeps; what is in workspaces belongs to the user's own rules."""
    open_to_others, foreign = [], []
    for path in _own_files(home):
        try:
            found = path.lstat()
        except OSError:
            continue
        if not mine(found.st_uid):
            foreign.append(path)
        elif not owner_only(found.st_mode) and not path.is_symlink():
            open_to_others.append(path)
    if foreign:
        yield fail("permissions", f"{_named(home, foreign)} of another user", f"chown -R {os.geteuid()} {home.root}")
    if open_to_others:
        do = f"chmod -R go-rwx {home.root}/sessions {home.root}/blobs; chmod go-rwx {home.root}"
        yield warn("permissions", f"{_named(home, open_to_others)} can be read by others", do)
    if not (foreign or open_to_others):
        yield ok("permissions", "only you can read the sessions")


def _own_files(home: Home) -> Iterator[Path]:
    yield home.root
    for name in ("index.db", "trusted.json", "verified.json"):
        if (home.root / name).exists():
            yield home.root / name
    for top in (home.sessions, home.blobs):
        for directory, _, files in walk(str(top)):
            yield Path(directory)
            yield from (Path(directory) / name for name in files)


def _named(home: Home, found: list[Path]) -> str:
    names = [str(p.relative_to(home.root)) if p != home.root else str(p) for p in found[:MAX_NAMED]]
    more = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
    return f"{', '.join(names)}{more}"


def _flock(home: Home) -> Iterator[Line]:
    files = RealFiles()
    try:
        with tempfile.TemporaryFile(dir=home.root) as file:
            files.lock(file.fileno(), exclusive=True, wait=False)
        yield ok("locks", "the file system knows flock")
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOSPC):
            yield fail("home", f"{home.root} cannot be written: {error.strerror}", "AGENTSH_HOME names another place")
        else:
            yield warn("locks", f"no flock here: {error.strerror}", "open a session in one place at a time")


def _leases(found: list[Place]) -> Iterator[Line]:
    files = RealFiles()
    for place in found:
        directory = place.home.sessions / place.id
        holder = holder_of(files, str(directory))
        if holder is not None:
            yield ok("in use", f"{place.id} by {holder}")
        if (directory / NEW_NAME).exists() and holder is None:
            yield ok("rescue", f"{place.id} has one that was not finished; the next opening sets it aside")


def _index(home: Home, sessions: int) -> Iterator[Line]:
    """Open it read-only: whatever is wrong with it, it is only a cache."""
    import sqlite3

    path = home.index_file
    if os.path.lexists(path) and (words := odd(path.lstat().st_mode)) is not None:
        yield warn("index", f"{path.name} is {words}: every `ls` reads the logs", "move it away")
        return
    if not path.exists():
        yield ok("index", "none yet; `ls` makes it")
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            checked = db.execute("PRAGMA quick_check(1)").fetchone()
            rows = db.execute("SELECT COUNT(*) FROM summaries").fetchone()[0]
    except sqlite3.Error as error:
        if "locked" in str(error):
            yield ok("index", "in use by another process")
        else:
            yield warn("index", f"does not read: {error}", f"nothing, or rm {path}: `ls` makes it anew from the logs")
        return
    if checked != ("ok",):
        yield warn("index", "is damaged", f"nothing, or rm {path}: `ls` makes it anew from the logs")
    else:
        yield ok("index", f"{rows:,} of {plural(sessions, 'session')}")


def _strays(home: Home, found: list[Place]) -> Iterator[Line]:
    ids = {place.id for place in found}
    odd = [p for p in _listed(home.sessions) if p.is_dir() and p.name not in ids and not p.name.startswith(".")]
    if odd:
        do = "an id is 8 digits, a dash and 6 characters; rename them to be listed"
        yield warn("sessions", f"{_named(home, odd)}: no ids, so they are not listed", do)
    orphans = [p for p in _listed(home.workspaces) if is_session_id(p.name) and p.name not in ids]
    if orphans:
        yield warn(
            "workspaces", f"{_named(home, orphans)}: their sessions are gone", "keep what you need, then rm -r them"
        )
    blobs = [p for p in home.blobs.glob("*/.*.new") if _age_s(p) > STALE_S]
    if blobs:
        yield warn(
            "blobs", f"{plural(len(blobs), 'file')} of writes that were cut short", "rm " + _named(home, blobs)
        )
    if not (odd or orphans or blobs):
        yield ok("strays", "none")


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _age_s(path: Path) -> float:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime
    return 0.0


def _sessions(found: list[Place], progress: Callable[[int], None] | None) -> Iterator[Line]:
    whole = 0
    for place, finding in verify(found, incremental=True, progress=progress):
        if finding.ok:
            whole += 1
            for obstacle in finding.obstacles:
                yield warn("session", obstacle.removesuffix("; move it away"), "move it away")
        else:
            yield fail("session", f"{place.id}: {headline(finding)}", f"`agentsh verify {place.id}` tells where")
    yield ok("sessions", f"{whole:,} of {plural(len(found), 'session')} read without a flaw")
