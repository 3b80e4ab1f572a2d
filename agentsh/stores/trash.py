"""What `rm` moved: a directory for each, with everything that belonged to the session, until `gc` or `restore`."""

import json
import os
import re
import stat
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from agentsh.base.errors import SessionExists, SessionMissing
from agentsh.base.ids import is_session_id
from agentsh.log.depths import remove_tree
from agentsh.log.files import CREATE, FileSystem, RealFiles, make_dirs, write_all
from agentsh.log.reserve import NO_ROOM
from agentsh.log.segment import discard, exists

DIRECTORY = "trash"
LOG, WORKSPACE, ABOUT = "session", "workspace", "about.json"

GONE = ".gone"
"""What the hidden name of a session's directory, or of its workspace, ends in while it is removed for good."""

_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)-([0-9]{8}-[0-9a-z]{6})(?:\.[0-9]+)?")


class Trashed(NamedTuple):
    """A session in the trash. name: of its directory. when: it went there. whole: its log is there."""

    name: str
    session: str
    when: datetime
    whole: bool
    has_workspace: bool


def gone_in(place: str, session: str = "") -> list[str]:
    """Return the directories of a place whose removal was begun, of one session or of all."""
    try:
        names = os.listdir(place)
    except OSError:
        return []
    ids = ((name, name[1:].removesuffix(GONE)) for name in names if name.startswith(".") and name.endswith(GONE))
    return [os.path.join(place, name) for name, of in ids if is_session_id(of) and (not session or of == session)]


class Trash:
    """`HOME/trash/TIME-ID/`: `session/`, `workspace/` and `about.json`. Raises OSError as the disk does."""

    def __init__(self, home: str, *, files: FileSystem | None = None) -> None:
        self._home = home
        self._place = os.path.join(home, DIRECTORY)
        self._files = files or RealFiles()

    def put(self, session: str, *, why: str, workspace: str | None) -> str:
        """Move a session, whose lease is held, and its workspace; return the name of where they are now.

        The workspace goes first and the log last: whoever is killed between leaves a session that is still listed,
        and the next `rm` of it goes on with the same directory.
        """
        files = self._files
        make_dirs(files, self._place)
        name = next((t.name for t in self.listed() if t.session == session and not t.whole), None)
        if name is None:
            name = self._fresh(session)
            files.mkdir(os.path.join(self._place, name))
            files.sync_dir(self._place)
        place = os.path.join(self._place, name)
        self._describe(place, {"session": session, "why": why, "workspace": workspace})
        if workspace is not None and exists(files, workspace):
            _move(files, workspace, os.path.join(place, WORKSPACE))
            files.sync_dir(place)
            files.sync_dir(os.path.dirname(workspace))
        files.rename(os.path.join(self._home, "sessions", session), os.path.join(place, LOG))
        files.sync_dir(place)
        files.sync_dir(os.path.join(self._home, "sessions"))
        return os.path.join(DIRECTORY, name)

    def remove(self, session: str, *, workspace: str | None) -> None:
        """Remove a session, whose lease is held, and its workspace for good: what takes no room at all.

        They lose their names first, so that nobody finds half of one; what is left after a kill is `gone_in`'s.
        """
        log = os.path.join(self._home, "sessions", session)
        for path in (workspace, log):
            if path is None or not exists(self._files, path):
                continue
            place, name = os.path.split(path)
            gone = os.path.join(place, f".{name}{GONE}")
            if exists(self._files, gone):
                remove_tree(gone)
            try:
                self._files.rename(path, gone)
            except OSError as error:
                if error.errno not in NO_ROOM:  # there are disks so full that they take no new name
                    raise
                remove_tree(path)
            self._files.sync_dir(place)
        for place in ("workspaces", "sessions"):
            for gone in gone_in(os.path.join(self._home, place), session):
                remove_tree(gone)

    def listed(self) -> list[Trashed]:
        """Return what is in the trash, newest first."""
        try:
            names = self._files.subdirs(self._place)
        except OSError:
            return []
        found = []
        for name in names:
            match = _NAME.fullmatch(name)
            if match is not None and is_session_id(match[2]):
                when = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
                place = os.path.join(self._place, name)
                whole = exists(self._files, os.path.join(place, LOG))
                work = exists(self._files, os.path.join(place, WORKSPACE))
                found.append(Trashed(name, match[2], when, whole, work))
        return sorted(found, key=lambda t: (t.when, t.name), reverse=True)

    def restore(self, found: Trashed) -> None:
        """Move a session back. The log goes last, so that it is listed once all is there.

        Raises:
            SessionExists: there is one of that id.
            SessionMissing: its log is not in the trash.
        """
        files = self._files
        target = os.path.join(self._home, "sessions", found.session)
        if exists(files, target):
            raise SessionExists(
                f"there is a session {found.session} already", hint="`agentsh rm` moves that one away"
            )
        if not found.whole:
            raise SessionMissing(f"the log of {found.session} is not in the trash")
        place = os.path.join(self._place, found.name)
        work = os.path.join(self._home, "workspaces", found.session)
        if found.has_workspace:
            if exists(files, work):
                raise SessionExists(f"{work} is there already", hint="move it away")
            make_dirs(files, os.path.dirname(work))
            _move(files, os.path.join(place, WORKSPACE), work)
            files.sync_dir(os.path.dirname(work))
        make_dirs(files, os.path.dirname(target))
        files.rename(os.path.join(place, LOG), target)
        files.sync_dir(os.path.dirname(target))
        discard(files, os.path.join(place, ABOUT))
        with suppress(OSError):  # something else is in there: it stays
            files.rmdir(place)

    def _fresh(self, session: str) -> str:
        stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{session}"
        name, n = stem, 1
        while exists(self._files, os.path.join(self._place, name)):
            n += 1
            name = f"{stem}.{n}"
        return name

    def _describe(self, place: str, about: dict[str, str | None]) -> None:
        path = os.path.join(place, ABOUT)
        if exists(self._files, path):
            return
        try:
            fd = self._files.open(path, CREATE)
            try:
                write_all(self._files, fd, json.dumps(about).encode() + b"\n")
                self._files.sync(fd)
            finally:
                self._files.close(fd)
        except OSError as error:
            discard(self._files, path)
            if error.errno not in NO_ROOM:  # it only informs, and a full disk is why people remove sessions
                raise
        self._files.sync_dir(place)


def _move(files: FileSystem, source: str, target: str) -> None:
    """Move a directory, also one that its owner may not write: its `..` changes by that."""
    try:
        files.rename(source, target)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(source).st_mode)
        if mode & stat.S_IWUSR:
            raise
        os.chmod(source, mode | stat.S_IWUSR)
        try:
            files.rename(source, target)
        except OSError:
            os.chmod(source, mode)
            raise
        os.chmod(target, mode)
