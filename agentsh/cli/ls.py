"""`agentsh ls`: a table of sessions. On the fast path: standard library only, no framework, no pydantic."""

import os
import sys
import time
from typing import Any

from agentsh.app.catalog import Filter, Row, places, rows
from agentsh.app.paths import Homes, find_homes, here
from agentsh.app.upload_state import state_of
from agentsh.app.width import columns_from
from agentsh.base.errors import AgentshError
from agentsh.base.text import clean, one_line, plural
from agentsh.cli.columns import fit, width
from agentsh.cli.guard import print_json
from agentsh.cli.hot import Argument, Command, Option

COMMAND = Command(
    name="ls",
    help="List sessions, newest first.",
    arguments=(Argument("query", "Words that title, id, project or tags must contain.", "WORDS", many=True),),
    options=(
        Option("tag", ("--tag",), "text", "Only sessions with this tag; may be repeated.", many=True),
        Option("all", ("--all",), "flag", "Everything, not only the newest 50; archived too.", False),
        Option(
            "sort", ("--sort",), "choice", "The order.", "updated", choices=("updated", "created", "size", "cost")
        ),
        Option("limit", ("--limit",), "count", "How many at most; 0 for all.", 50),
        Option("json", ("--json",), "flag", "One JSON object per line.", False),
    ),
)
PIPE_COLUMNS = 120
STATES_READ = 50
"""Of so many sessions, the first of the list, it is looked whether their copies are behind."""
COLOURS = {"running": "32", "crashed": "33", "damaged": "31", "empty": "2", "archived": "2"}


def run(values: dict[str, Any]) -> int:
    """Print the list; return 0."""
    homes = find_homes(here(), os.environ)
    limit = 0 if values["all"] else values["limit"]
    found = rows(homes, Filter(values["query"], tuple(values["tag"]), values["sort"], limit, values["all"]))
    if values["json"]:
        for row in found:
            print_json(as_json(row))
        return 0
    if not found:
        print(_nothing(homes, values))
        return 0
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    columns = columns or columns_from(os.environ, PIPE_COLUMNS)
    for line in table(found, columns, colour, time.time_ns(), size=values["sort"] == "size"):
        print(line)
    if behind := _behind(homes, found):
        print(clean(f"agentsh: {behind}"), file=sys.stderr)
    return 0


def _behind(homes: Homes, found: list[Row]) -> str:
    """Return what is wrong with the copies of sessions of the list, "" for nothing."""
    states = [(row.place.id, state_of(row.place.home, row.place.id)) for row in found[:STATES_READ]]
    failed = [(session, state) for session, state in states if state is not None and state.problem is not None]
    if not failed:
        return ""
    url = _configured(homes)  # loads what `ls` does without on all other days
    failed = [(session, state) for session, state in failed if state.url == url]
    if not failed:
        return ""
    session, state = failed[0]
    more = f" and of {plural(len(failed) - 1, 'other session')}" if len(failed) > 1 else ""
    return f"the copy of {session}{more} is behind: {state.problem} (`agentsh doctor` tells more)"


def _configured(homes: Homes) -> str | None:
    """Return where copies go, None for nowhere, or where the settings do not read, which is not for `ls` to tell."""
    from agentsh.app.settings import load_settings

    try:
        return load_settings(homes, os.environ).checkpoint.upload
    except AgentshError:
        return None


def _nothing(homes: Homes, values: dict[str, Any]) -> str:
    """Return why there is no row, and what to do."""
    archived = 0 if values["all"] else len(places(homes.read))
    if archived and not (values["query"] or values["tag"]):
        return f"No sessions but {archived:,} archived. See them: agentsh ls --all"
    if values["query"] or values["tag"]:
        return "No sessions match" + (". Archived ones too: agentsh ls --all" if archived else ".")
    return f"No sessions in {', '.join(str(home.root) for home in homes.read)}. Start one: agentsh new"


def as_json(row: Row) -> dict[str, Any]:
    """Return a row for `--json`: the summary, and what is only known now."""
    summary = {k: v for k, v in row.summary.items() if k != "version"}
    path = summary.pop("workspace_path", None) or str(row.place.home.workspaces / row.place.id)
    return {
        "id": row.place.id,
        "state": row.state,
        "pid": row.holder.pid if row.holder else None,
        "home": str(row.place.home.root),
        "bytes": row.place.size,
        **summary,
        "workspace_path": path,
    }


def table(found: list[Row], columns: int, colour: bool, now_ns: int, *, size: bool = False) -> list[str]:
    """Return the lines of the table, each at most `columns` wide. The id is never cut.

    size: of the log, in the place of the tokens.
    """
    wide = columns >= 110
    head = ["ID", "AGE", "STATE", "TURNS", "TOKENS", "COST", "TITLE"] + (["WORKSPACE"] if wide else [])
    body = [_cells(row, now_ns, wide) for row in found]
    if size:
        head[4] = "SIZE"
        for cells, row in zip(body, found, strict=True):
            cells[4] = f"{count(row.place.size)}B"
    if columns < 64:  # narrow: what it is and where it stands, and the title below
        return _narrow(found, body, columns, colour)
    widths = [max(width(line[n]) for line in [head, *body]) for n in range(6)]
    rest = columns - sum(widths) - 2 * len(widths)
    share = [rest] if not wide else [max(rest * 6 // 10, 10), rest - max(rest * 6 // 10, 10) - 2]
    lines = []
    for n, cells in enumerate([head, *body]):
        parts = [fit(cells[k], widths[k], right=k in (3, 4, 5)) for k in range(6)]
        parts += [fit(cells[6 + k], share[k]) for k in range(len(share))]
        if n:
            parts[2] = _painted(parts[2], found[n - 1].state, colour)
        line = "  ".join(parts).rstrip()
        lines.append(f"\x1b[1m{line}\x1b[0m" if colour and not n else line)
    return lines


def _painted(text: str, state: str, colour: bool) -> str:
    code = COLOURS.get(state) if colour else None
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _narrow(found: list[Row], body: list[list[str]], columns: int, colour: bool) -> list[str]:
    lines = []
    for row, cells in zip(found, body, strict=True):
        lines.append(f"{cells[0]}  {cells[1]}  {_painted(cells[2], row.state, colour)}")
        lines.append(("  " + fit(cells[6], columns - 2)).rstrip())
    return lines


def _cells(row: Row, now_ns: int, wide: bool) -> list[str]:
    s = row.summary
    tokens = (s.get("prompt_tokens") or 0) + (s.get("completion_tokens") or 0)
    cost = s.get("cost_usd")
    title = one_line(s.get("title") or "(no prompt yet)", 200)
    if s.get("tags"):
        title = f"[{one_line(' '.join(s['tags']), 200)}] {title}"
    cells = [
        row.place.id,
        row.age(now_ns),
        f"pid {row.holder.pid}" if row.holder else row.state,
        str(s.get("turns") or 0),
        count(tokens),
        "-" if cost is None else f"${cost:.2f}" if cost >= 0.995 else f"${cost:.4f}",
        title,
    ]
    if wide:
        cells.append(clean(_workspace(row)))
    return cells


def _workspace(row: Row) -> str:
    """What a workspace was made of; where it is, only if that is not the usual place."""
    s = row.summary
    kind, path, origin = s.get("workspace"), s.get("workspace_path"), s.get("origin")
    if path:
        return f"{kind or '?'} {_short(path)}"
    return f"{kind} of {_short(origin)}" if kind in ("copy", "git") and origin else kind or "?"


def _short(path: str) -> str:
    home = os.environ.get("HOME")
    return "~" + path[len(home) :] if home and path.startswith(home + "/") else path


def count(n: int) -> str:
    """Return a number in at most five characters: `950`, `12.3k`, `1.2M`."""
    if n < 1000:
        return str(n)
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size * 0.99995:
            value = n / size
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return str(n)
