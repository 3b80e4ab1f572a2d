"""`agentsh verify`: re-read sessions and say of each whether it is whole. No pydantic on this path."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh.app.catalog import Place, find, places, sized
from agentsh.app.paths import find_homes
from agentsh.app.verifying import headline, place_line, remedy, verify
from agentsh.app.width import draws
from agentsh.base.errors import AgentshError, UsageProblem
from agentsh.base.text import clean, plural
from agentsh.cli.guard import json_line
from agentsh.stores.session_check import Finding

if TYPE_CHECKING:
    from agentsh.app.contexts import Checks

MAX_PLACES = 50
"""Told of one session without `--json`, which tells all."""
EVERY_S = 0.1

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
    bar = _Bar(sum(place.size for place in wanted))
    damaged = count = requests = different = 0
    for place, found in verify(wanted, jobs=jobs, incremental=incremental, blobs=blobs, progress=bar.add):
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


class _Bar:
    """How far it is, on stderr, where that is a terminal and there is much to read."""

    MUCH_BYTES = 50_000_000

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._next_s = 0.0
        self._shown = False
        self._on = total > self.MUCH_BYTES and draws(sys.stderr, os.environ)

    def add(self, size: int) -> None:
        self._done += size
        now = time.monotonic()
        if self._on and now >= self._next_s:
            self._next_s, self._shown = now + EVERY_S, True
            share = min(self._done / self._total, 1.0)
            bar = "█" * int(share * 30)
            sys.stderr.write(f"\r\x1b[2Kverifying {bar:<30} {share:4.0%} of {self._total / 1e6:,.0f} MB")
            sys.stderr.flush()

    def wipe(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False
