"""Says at once that another process has a session: before a framework, or anything else heavy, is loaded (ADR 0002).

The words are not parsed here, so nothing is decided but this one thing, and only where they cannot mean another.
"""

import os

from agentsh.app.catalog import Place, find, find_by_id, refuse_held
from agentsh.app.paths import find_homes, here
from agentsh.base.errors import SessionMissing

CHANGES_NOTHING = frozenset({"--read-only", "--help"})
"""Options with which `resume` takes no lease. A short `-h` may hide in `-ph`."""


def refuse_at_once(argv: list[str]) -> None:
    """Raise if the words behind `resume` plainly name a session that another process has; else do nothing.

    A title is not looked up: that may take reading logs.

    Raises:
        SessionHeld: by whom.
    """
    named = argv[0] if argv else ""
    if not named or (named.startswith("-") and named != "--last") or any(map(_changes_nothing, argv)):
        return
    try:
        homes = find_homes(here(), os.environ)
        place: Place | None = find(homes, None, last=True) if named == "--last" else find_by_id(homes, named)
    except (OSError, SessionMissing):
        return
    if place is not None and place.home.trusted:
        refuse_held(place)


def _changes_nothing(word: str) -> bool:
    short = word.startswith("-") and not word.startswith("--")
    return word in CHANGES_NOTHING or (short and "h" in word)
