"""`agentsh verify`: re-read sessions and say of each whether it is whole. No pydantic on this path."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh.app.catalog import Place, find, places, sized
from agentsh.app.paths import find_homes
from agentsh.app.verifying import headline, place_line, remedy, verify
from agentsh.base.errors import AgentshError, UsageProblem
from agentsh.base.text import clean, plural
from agentsh.cli.guard import json_line
from agentsh.cli.progress import Bar
from agentsh.stores.session_check import Finding

if TYPE_CHECKING:
    from agentsh.app.contexts import Checks

MAX_PLACES = 50
"""Told of one session without `--json`, which tells all."""

EXIT_DAMAGED = 1


def run(
    sessions: list[str],
    *,
    everything: bool,
    incremental: bool,
    jobs: int | None,
    blobs: bool,
    contexts: bool,
    as_json: bool,
) -> int:
    """Print a line for each session; return 0 where all are whole, 1 where damage was found.

    contexts: every request is built again, and its hash compared; one that differs counts as damage.
    """
    homes = find_homes(Path.cwd(), os.environ)
    if not sessions and not everything:
        raise UsageProblem("which session?", hint="`agentsh verify ID`, or --all")
    if sessions and everything:
        raise UsageProblem("--all and an ID do not go together")
    wanted = places(homes.read) if everything else list(dict.fromkeys(find(homes, text) for text in sessions))
    wanted = [sized(place) for place in wanted]
    bar = Bar("verifying", sum(place.size for place in wanted))
    damaged = count = requests = different = 0
    for place, found in verify(wanted, jobs=jobs, incremental=incremental, blobs=blobs, progress=bar):
        bar.wipe()
        count += 1
        checks = _contexts(place) if contexts else None
        damaged += not found.ok
        if checks is not None:
            requests, different = requests + checks.requests, different + len(checks.problems)
        if as_json:
            print(json_line(_as_json(place, found) | _contexts_json(checks)))
        else:
            _tell(place, found)
            _tell_contexts(checks)
    bar.wipe()
    if everything and not as_json:
        print(f"{plural(count, 'session')}, {damaged:,} damaged" if count else "No sessions.")
        if contexts and count:
            print(f"{plural(requests, 'request')}, {requests - different:,} built again byte for byte")
    return EXIT_DAMAGED if damaged or different else 0


def _contexts(place: Place) -> "Checks":
    from agentsh.app.contexts import Check, Checks, Contexts

    try:
        return Contexts(place).check()
    except (OSError, AgentshError) as error:
        return Checks(0, (Check(0, str(error)),))


def _tell_contexts(checks: "Checks | None") -> None:
    if checks is None:
        return
    rebuilt = checks.requests - len(checks.problems)
    print(f"  {plural(checks.requests, 'request')}, {rebuilt:,} built again byte for byte")
    for check in checks.problems[:MAX_PLACES]:
        print(clean(f"  the request of event {check.seq}: {check.problem}"))
    if len(checks.problems) > MAX_PLACES:
        print(f"  … and {len(checks.problems) - MAX_PLACES:,} more (--json tells all)")


def _contexts_json(checks: "Checks | None") -> dict[str, Any]:
    if checks is None:
        return {}
    problems = [check._asdict() for check in checks.problems]
    return {"requests": checks.requests, "requests_that_differ": problems}


def _tell(place: Place, found: Finding) -> None:
    print(clean(f"{place.id}  {headline(found)}"))
    for damage in found.damages[:MAX_PLACES]:
        print(clean(f"  {place_line(damage)}"))
    if len(found.damages) > MAX_PLACES:
        print(f"  … and {len(found.damages) - MAX_PLACES:,} more (--json tells all)")


def _as_json(place: Place, found: Finding) -> dict[str, Any]:
    return {
        "id": place.id,
        "home": str(place.home.root),
        "ok": found.ok,
        "events": found.records,
        "last_seq": found.last_seq,
        "bytes": found.bytes,
        "checked_bytes": found.checked_bytes,
        "damages": [damage._asdict() for damage in found.damages],
        "remarks": list(found.remarks),
        "torn_bytes": found.torn_bytes,
        "checkpoints": found.checkpoints,
        "useless_checkpoints": list(found.useless),
        "problem": found.problem,
        "in_the_way": list(found.obstacles),
        "newer": found.newer,
        "pid": found.holder.pid if found.holder else None,
        "do": remedy(found) or None,
    }
