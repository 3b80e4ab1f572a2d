"""`agentsh repair`: show what would be done, ask, and write a damaged log anew. The original is kept."""

import os
import sys
from pathlib import Path

from agentsh.app.catalog import Place, find, refuse_held, sized
from agentsh.app.paths import find_homes
from agentsh.app.remembered import as_told
from agentsh.app.repairing import damage_told, outcome, outlook, session_repair
from agentsh.app.verifying import headline, place_line, verify
from agentsh.base.errors import NotTrusted, UsageProblem
from agentsh.base.text import clean
from agentsh.cli.progress import Bar
from agentsh.stores.session_check import Finding

MAX_PLACES = 20


def run(session: str, *, yes: bool) -> int:
    """Repair the session; return 0 where it is whole now, 1 where the user said no or something is left."""
    place = find(find_homes(Path.cwd(), os.environ), session)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`")
    refuse_held(place)
    bar = Bar(f"reading {place.id}:", sized(place).size)
    with session_repair(place.home, place.id, bar) as repairer:
        plan = repairer.plan(anew=True)
        bar.wipe()
        taken = repairer.taken
        if taken is not None:
            print(f"{place.id} is taken out of its archive{damage_told(taken)}")
        if plan is not None:
            for damage in as_told(place.home, place.id, plan.damages[:MAX_PLACES]):
                print(clean(place_line(damage)))
            if len(plan.damages) > MAX_PLACES:
                print(f"… and {len(plan.damages) - MAX_PLACES:,} more")
            print(clean("\n".join(outlook(place.id, plan))))
            if not (yes or _agreed()):
                print("Nothing was changed." if taken is None else "Nothing else was changed.")
                return 1
            print(clean("\n".join(outcome(place.id, repairer.repair(plan)))))
    found = _verified(place)
    if plan is None and taken is None:
        what = "nothing to repair" if found.ok else "nothing that `repair` could mend"
        print(f"{place.id}: there is {what}")
    print(clean(f"{place.id}  {headline(found)}"))
    return 0 if found.ok else 1


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise UsageProblem("nobody can be asked here", hint="`--yes` agrees beforehand")
    print("Go on? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _verified(place: Place) -> Finding:
    """Read it all again."""
    bar = Bar(f"reading {place.id} again:", sized(place).size)
    ((_, found),) = verify([place], progress=bar)
    bar.wipe()
    return found
