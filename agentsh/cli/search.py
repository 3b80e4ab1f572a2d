"""`agentsh search`: sessions by what was said in them. No framework, no pydantic."""

import os
import sys
import threading
from typing import Any

from agentsh.app.catalog import Place, places, with_summaries
from agentsh.app.paths import find_homes, here
from agentsh.app.searching import LEAST_CHARS, is_whole, search, search_whole
from agentsh.app.width import columns_from
from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.cli.columns import fit
from agentsh.cli.guard import print_json

PIPE_COLUMNS = 160
TITLE_COLUMNS = 30
NARROW = 100
"""On a terminal that is narrower, what was found stands in a line of its own."""


def run(words: list[str], *, as_json: bool) -> int:
    """Print each session that holds the words, newest first; return 0, or 1 where none does.

    Raises:
        UsageProblem: less than two characters are looked for.
    """
    wanted = " ".join(" ".join(words).split())
    if len(wanted) < LEAST_CHARS:
        raise UsageProblem(f"{LEAST_CHARS} characters at least are looked for", hint="agentsh search TEXT")
    known = with_summaries(places(find_homes(here(), os.environ).read))
    quick = [place for place, _ in known if not place.archived]
    said = search(quick, wanted, threading.Event(), limit_s=float("inf"), most=len(quick))
    found = 0
    for place, summary in known:
        where = said.get(place.id) or _in_title(summary, wanted)
        if where is None and not is_whole(place):
            where = search_whole(place, wanted)
        if where is not None:
            found += 1
            _print(place, summary, where, as_json=as_json)
    if not found:
        print(f"agentsh: no session holds {one_line(wanted, 100)!r}", file=sys.stderr)
    return 0 if found else 1


def _in_title(summary: dict[str, Any], wanted: str) -> str | None:
    """Return the title where it holds the words: it may be longer ago than what is searched of a log."""
    title = summary.get("title") or ""
    return title if wanted.casefold() in title.casefold() else None


def _print(place: Place, summary: dict[str, Any], where: str, *, as_json: bool) -> None:
    title, updated = summary.get("title"), summary.get("updated")
    if as_json:
        home = str(place.home.root)
        print_json({"id": place.id, "home": home, "title": title, "updated": updated, "match": where})
        return
    columns = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    columns = columns or columns_from(os.environ, PIPE_COLUMNS)
    head = f"{place.id}  {one_line(updated or '', 200)[:10]:10}  "
    name = one_line(title or "", 200)
    lines = [head + name, f"    {where}"] if columns < NARROW else [f"{head}{fit(name, TITLE_COLUMNS)}  {where}"]
    for line in lines:
        print(fit(line, columns).rstrip())
