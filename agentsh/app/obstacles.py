"""What stands where a directory belongs: nothing can be kept there until somebody moves it away. Changes nothing."""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from agentsh.app.paths import Home
from agentsh.base.errors import LogError
from agentsh.log.plain import odd

_OF_A_HOME = {
    "sessions": "no session can be listed or begun",
    "workspaces": "no session can be begun",
    "blobs": "no long text can be read or kept, and no session begun",
    "trash": "nothing can be moved to the trash",
}
_OF_A_SESSION = {
    "checkpoints": "no checkpoint is saved, so that opening reads the whole log",
    "quarantine": "a damaged end of the log cannot be set aside",
}


class Obstacle(NamedTuple):
    """path: below the home. what: it is, in words. cost: what does not work until it is gone."""

    path: str
    what: str
    cost: str

    def __str__(self) -> str:
        return f"{self.path} is {self.what} where a directory belongs: {self.cost}; move it away"


def of_home(home: Home) -> list[Obstacle]:
    """Return what stands in the way in a home."""
    return list(_found(home, "", _OF_A_HOME))


def of_session(home: Home, session: str) -> list[Obstacle]:
    """Return what stands in the way of one session."""
    found = list(_found(home, f"sessions/{session}/", _OF_A_SESSION))
    return [*found, *_found(home, "workspaces/", {session: "the session cannot be resumed but with --dir"})]


def _found(home: Home, above: str, wanted: dict[str, str]) -> Iterator[Obstacle]:
    for name, cost in wanted.items():
        try:
            mode = os.stat(home.root / above / name).st_mode  # a link to a directory is as good as one
        except FileNotFoundError:
            if not os.path.islink(home.root / above / name):
                continue
            mode = stat.S_IFLNK
        except OSError:
            continue
        if not stat.S_ISDIR(mode):
            what = "a link to nothing" if stat.S_ISLNK(mode) else (odd(mode) or "a plain file").split(",")[0]
            yield Obstacle(above + name, what, cost)


def not_listed(home: Home, error: OSError) -> None:
    """Tell that sessions cannot be listed: of a home that came with a project nobody need care.

    Raises:
        LogError: they are there, or something else is.
    """
    if home.trusted and not isinstance(error, FileNotFoundError):
        raise LogError(f"{home.sessions} cannot be listed: {error.strerror}", hint="`agentsh doctor` tells more")
