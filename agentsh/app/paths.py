"""Which directories hold sessions: the homes to read from and the one to write to. Standard library only.

AGENTSH_HOME, else the nearest directory at or above the current one that holds agentsh.toml, sessions/ and
workspaces/, else ~/.agentsh. One that was found by walking up may have come with somebody's repository: until
`agentsh trust` it is only read.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from agentsh.base.ids import is_session_id

CONFIG = "agentsh.toml"


class Home(NamedTuple):
    """A directory that holds sessions. trusted: it may be written to, and its configuration is obeyed."""

    root: Path
    trusted: bool

    @property
    def sessions(self) -> Path:
        """One directory per session: its log, its lock."""
        return self.root / "sessions"

    @property
    def workspaces(self) -> Path:
        """One directory per session: where its tools work."""
        return self.root / "workspaces"

    @property
    def blobs(self) -> Path:
        """Content-addressed bytes, shared by the sessions."""
        return self.root / "blobs"

    @property
    def index_file(self) -> Path:
        """The cache behind `ls`."""
        return self.root / "index.db"

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.root / CONFIG


class Homes(NamedTuple):
    """Where to look. read: in order of preference. write: where new sessions go. note: one line for the user."""

    read: tuple[Home, ...]
    write: Home
    note: str | None = None


def user_home(env: Mapping[str, str]) -> Path:
    """Return ~/.agentsh."""
    return Path(env.get("HOME") or os.path.expanduser("~")) / ".agentsh"


def here() -> Path | None:
    """Return the current directory, or None where it was deleted under us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def find_homes(cwd: Path | None, env: Mapping[str, str]) -> Homes:
    """Return the homes for a command that is run in `cwd`, which may be gone. Creates nothing.

    Raises:
        UsageProblem: AGENTSH_HOME names what is no directory.
    """
    named = env.get("AGENTSH_HOME")
    if named:
        home = Home(Path(named).expanduser().absolute(), trusted=True)
        if os.path.exists(home.root) and not os.path.isdir(home.root):
            from agentsh.base.errors import UsageProblem

            raise UsageProblem(f"AGENTSH_HOME {home.root} is there, and no directory", hint="name a directory")
        return Homes((home,), home)
    own = Home(user_home(env), trusted=True)
    found = None if cwd is None else _walk_up(cwd)
    if found is None or found == own.root:
        return Homes((own,), own)
    from agentsh.app.trust import is_trusted

    if is_trusted(found, own.root):
        home = Home(found, trusted=True)
        return Homes((home, own), home)
    note = f"{found} is not trusted, so new sessions go to {own.root} (`agentsh trust` changes that)"
    return Homes((Home(found, trusted=False), own), own, note)


def _walk_up(cwd: Path) -> Path | None:
    places = (cwd, *cwd.parents)
    # A workspace may hold anything, a home with a hostile configuration too: the walk never starts in one.
    if any(place.parent.name == "workspaces" and is_session_id(place.name) for place in places):
        return None
    return next((place for place in places if is_home(place)), None)


def is_home(place: Path) -> bool:
    """Tell whether a directory has the three marks of a home."""
    return (place / CONFIG).is_file() and (place / "sessions").is_dir() and (place / "workspaces").is_dir()


def prepare(home: Home) -> None:
    """Make a home's directories where they are missing, readable by their owner only.

    Raises:
        UsageProblem: they cannot be made.
    """
    from agentsh.base.errors import UsageProblem

    for place in (home.root, home.sessions, home.workspaces, home.blobs):
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is there, and no directory" if isinstance(error, FileExistsError) else error.strerror
            raise UsageProblem(
                f"{place} cannot be made: {why}", hint="AGENTSH_HOME names another place for sessions"
            ) from None
