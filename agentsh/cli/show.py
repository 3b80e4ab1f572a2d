"""`agentsh show`: all that is known of one session."""

import os
from typing import Any

from agentsh.app.catalog import ARCHIVE_NAME, LOG_NAME, Row, find, row_of
from agentsh.app.paths import find_homes, here
from agentsh.base.text import clean, plural
from agentsh.cli import ls
from agentsh.cli.guard import print_json
from agentsh.cli.ls import count


def run(session: str | None, *, last: bool, as_json: bool) -> int:
    """Print it; return 0."""
    import time

    homes = find_homes(here(), os.environ)
    place = find(homes, session, last=last)
    row = row_of(place)
    if as_json:
        print_json(ls.as_json(row))
        return 0
    for name, value in _facts(row, time.time_ns()):
        print(f"{name:<12}{clean(value)}")
    return 0


def _log_name(row: Row) -> str:
    return ARCHIVE_NAME if row.place.archived else LOG_NAME


def _context(s: dict[str, Any]) -> str:
    prompt, cached = s.get("newest_prompt"), s.get("newest_cached") or 0
    if not prompt:
        return "no request was counted yet"
    return f"{count(prompt)} in the newest request, {min(cached / prompt, 1):.0%} of it cached"


def _facts(row: Row, now_ns: int) -> list[tuple[str, str]]:
    s, known = row.summary, ls.as_json(row)
    prompt, cached = s.get("prompt_tokens") or 0, s.get("cached_tokens") or 0
    share = f", {cached / prompt:.0%} of the prompt cached" if prompt else ""
    tokens = f"{count(prompt)} in, {count(s.get('completion_tokens') or 0)} out{share}"
    cost = s.get("cost_usd")
    facts = [
        ("session", row.place.id),
        ("title", s.get("title") or "(no prompt yet)"),
        ("state", f"running, {row.holder}" if row.holder else row.state),
        ("created", s.get("created") or "?"),
        ("updated", f"{row.age(now_ns)} ago"),
        ("model", f"{s.get('model') or '?'}, mode {s.get('mode') or '?'}"),
        ("turns", str(s.get("turns") or 0)),
        ("tokens", tokens),
        ("context", _context(s)),
        ("cost", "not known" if cost is None else f"${cost:.4f}"),
        ("started in", s.get("cwd") or "?"),
        ("workspace", f"{known['workspace_path']} ({s.get('workspace') or '?'})"),
        ("log", f"{row.place.home.sessions / row.place.id / _log_name(row)} ({row.place.size:,} bytes)"),
        ("events", str(s.get("last_seq") or 0)),
    ]
    if s.get("tags"):
        facts.insert(2, ("tags", " ".join(s["tags"])))
    if s.get("problem"):
        return [*facts, ("damage", f"{s['problem']} (`agentsh verify {row.place.id}` tells more)")]
    anew = f"`agentsh repair {row.place.id}` begins it anew"
    if s.get("damages") and not s.get("last_seq"):
        return [*facts, ("damage", f"nothing of it reads: `agentsh verify {row.place.id}` tells more, {anew}")]
    if s.get("damages"):
        places = f"{plural(s['damages'], 'place')} of the log {'does' if s['damages'] == 1 else 'do'} not read"
        facts.append(("damage", f"{places}, all else does (`agentsh verify {row.place.id}` tells where)"))
    if row.state == "empty":
        return [*facts, ("note", f"it has no entry: {anew}")]
    return [*facts, ("go on", f"agentsh resume {row.place.id}")]
