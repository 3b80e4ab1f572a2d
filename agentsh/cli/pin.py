"""`agentsh pin`: keep a session as it is now beside itself, list what is kept, let it go."""

import os

from agentsh.app.catalog import find
from agentsh.app.paths import find_homes, here
from agentsh.app.pinning import Pinned, let_go, pin_session, pinned_in
from agentsh.base.errors import UsageProblem
from agentsh.base.text import clean
from agentsh.cli.guard import json_line
from agentsh.cli.writable import find_writable


def run(session: str, *, listing: bool, remove: int | None, as_json: bool) -> int:
    """Pin it, or list or remove its pins; return 0, or 1 where there is no such pin."""
    if (listing and remove is not None) or (as_json and not listing):
        raise UsageProblem("--list and --remove are two things, and --json goes with --list")
    if listing:
        for one in pinned_in(find(find_homes(here(), os.environ), session)):
            print(json_line({"seq": one.seq, "path": one.place, "bytes": one.size}) if as_json else _row(one))
        return 0
    place = find_writable(session)
    if remove is None:
        made = pin_session(place)
        print(clean(f"{place.id} is pinned up to event {made.seq:,}: {made.place}"))
        return 0
    gone = let_go(place, remove)
    print(f"{place.id}: {'the pin' if gone else 'there is no pin'} of event {remove:,}{' is gone' if gone else ''}")
    return 0 if gone else 1


def _row(one: Pinned) -> str:
    return clean(f"{one.seq:>12,}  {one.size:>14,} bytes  {one.place}")
