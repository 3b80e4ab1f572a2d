"""`agentsh fork`: a new session from a moment of another."""

import asyncio
import os
import sys

from agentsh.app.catalog import check_plain, find
from agentsh.app.forking import fork
from agentsh.app.paths import find_homes, here
from agentsh.base.errors import NotTrusted
from agentsh.base.text import clean
from agentsh.cli.copying import CopyProgress
from agentsh.cli.guard import print_json


def run(session: str | None, *, at: int | None, as_json: bool) -> int:
    """Make it; return 0."""
    place = find(find_homes(here(), os.environ), session)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so no session is made there", hint="`agentsh trust`")
    check_plain(place)
    with CopyProgress(sys.stderr, "restoring the workspace") as progress:
        made = asyncio.run(fork(place.home, place.id, at, progress=progress.show))
    if as_json:
        print_json({
            "id": made.id, "parent": made.parent, "upto_seq": made.upto_seq, "workspace": str(made.workspace),
            "notes": list(made.notes),
        })  # fmt: skip
        return 0
    print(f"{made.id} goes on from event {made.upto_seq} of {made.parent}")
    for note in made.notes:
        print(clean(note))
    print(f"agentsh resume {made.id}")
    return 0
