"""Finds sessions that a command is about to change, and asks where that needs an answer."""

import os
import sys

from agentsh.app.catalog import Place, find, refuse_held
from agentsh.app.paths import Home, find_homes, here
from agentsh.base.errors import NotTrusted, UsageProblem


def find_writable(text: str) -> Place:
    """Return the session that `text` names.

    Raises:
        SessionMissing, SessionAmbiguous: as `find` says.
        SessionHeld: another process has it.
        NotTrusted: its home is only read.
    """
    place = find(find_homes(here(), os.environ), text)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`")
    refuse_held(place)
    return place


def trusted_homes() -> list[Home]:
    """Return the homes that may be written to."""
    return [home for home in find_homes(here(), os.environ).read if home.trusted]


def agreed(question: str) -> bool:
    """Ask, and return whether the answer was yes.

    Raises:
        UsageProblem: nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise UsageProblem("nobody can be asked here", hint="`--yes` agrees beforehand")
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
