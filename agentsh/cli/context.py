"""`agentsh context`: the request that was sent at some point of a session: as a table, as JSON, or its very bytes."""

import os
import sys
from dataclasses import asdict
from typing import Any

from agentsh.app.catalog import Place, check_plain, find
from agentsh.app.contexts import Contexts, Sent, manifest_of
from agentsh.app.paths import Home, find_homes, here
from agentsh.base.errors import UsageProblem
from agentsh.base.text import clean, one_line, plural
from agentsh.cli.columns import fit, width
from agentsh.cli.guard import print_json
from agentsh.context.difference import Difference, difference
from agentsh.context.manifest import Group, Manifest, groups
from agentsh.context.request import tools_of
from agentsh.context.surroundings import recorded
from agentsh.ports.model import Message
from agentsh.ports.texts import Texts

EXIT_DIFFERS = 1
BAR_COLUMNS = 60
SHOWN_MESSAGES = 20
"""Of a difference, on either side."""
PARTS = (("system", "█"), ("instructions", "▓"), ("tools", "▒"), ("conversation", "■"), ("free", "·"))


def run(session: str | None, *, last: bool, at: int | None, format: str, diff: int | None, as_json: bool) -> int:
    """Print it; return 0, or 1 where the bytes that were sent could not be built again."""
    place = find(find_homes(here(), os.environ), session, last=last)
    check_plain(place)
    contexts = Contexts(place)
    sent = contexts.at(at)
    format = "json" if as_json else format
    if diff is not None:
        other = contexts.at(diff)
        old, new = sorted((sent, other), key=lambda s: s.event.seq)
        found = difference(old.rebuilt.prompt, old.body, new.rebuilt.prompt, new.body)
        if format == "json":
            print_json(_difference_json(old, new, found))
        else:
            print("\n".join(clean(row) for row in _difference_rows(old, new, found)))
        return 0
    if format == "request":
        sys.stdout.buffer.write(sent.body)
        sys.stdout.buffer.flush()
    elif format == "json":
        print_json(as_object(place.id, sent, contexts.texts))
    else:
        print("\n".join(rows(sent, contexts.texts)))
    if not sent.exact:
        print(f"agentsh: not the bytes that were sent: {sent.problem}", file=sys.stderr)
        return EXIT_DIFFERS
    return 0


def newest_rows(home: Home, session: str, columns: int) -> list[str]:
    """Return the newest request of a session as rows. Blocks for as long as reading the log takes."""
    contexts = Contexts(Place(home, session, 0, 0, ""))
    try:
        return rows(contexts.at(None), contexts.texts, columns)
    except UsageProblem:
        return ["nothing was sent yet"]


def rows(sent: Sent, texts: Texts, columns: int = 80) -> list[str]:
    """Return the request as a bar and a table. columns: of the terminal; the table never takes more than 100."""
    found = manifest_of(sent, texts)
    return [
        clean(row) for row in [*_head(sent, found), "", *_bar(sent, found), "", *_table(sent, found, texts, columns)]
    ]


def _head(sent: Sent, found: Manifest) -> list[str]:
    built = sent.built
    proof = "rebuilt byte for byte" if sent.exact else f"NOT rebuilt: {sent.problem}"
    rows = [
        f"request   event {sent.event.seq}, {sent.event.ts[:19].replace('T', ' ')}, {sent.state.model} over "
        f"{sent.rebuilt.wire}",
        f"body      {built.bytes:,} bytes, sha256 {built.request_sha256[:16]}…, {proof}",
        f"tokens    {built.tokens:,} of {built.budget:,} ({built.tokens / max(built.budget, 1):.0%}), by "
        f"{built.estimator}",
    ]
    if built.aside is not None:
        rows.append(f"asks      aside what event {built.aside} says; it is in no later request")
    if built.summary is not None:
        rows.append(f"asks      for a summary of it, try {built.summary.attempt}; see docs/compaction.md")
    if built.cut is not None:
        pruned = f", outputs before event {built.cut.pruned_before} pruned" if built.cut.pruned_before else ""
        rows.append(f"decided   {built.cut.reason}: from event {built.cut.from_seq} on{pruned}")
    return rows


def _shares(sent: Sent, found: Manifest) -> dict[str, int]:
    conversation = found.tokens - sum(found.parts.values())
    free = max(sent.built.budget - found.tokens, 0)
    return {**found.parts, "conversation": conversation, "free": free}


def _bar(sent: Sent, found: Manifest) -> list[str]:
    shares = _shares(sent, found)
    total = max(sum(shares.values()), 1)
    cells, done, drawn = "", 0, 0
    for name, char in PARTS:
        done += shares[name]
        upto = BAR_COLUMNS if name == "free" else round(done / total * BAR_COLUMNS)
        cells += char * (upto - drawn)
        drawn = upto
    legend = "  ".join(f"{char} {name} {shares[name]:,}" for name, char in PARTS if shares[name])
    return [cells, legend]


def _table(sent: Sent, found: Manifest, texts: Texts, columns: int) -> list[str]:
    columns = min(columns, 100)
    lines = [("events", "what", "tokens", "what became of it"), *_fixed(sent, found, texts)]
    lines += [_line(group) for group in groups(found)]
    lost = [row for row in found.rows if row.type == "damaged"]
    lines += [(f"{row.seq:,}", "damaged", "", row.why) for row in lost]
    first = min(max(width(line[0]) for line in lines), 17)
    last = min(max(width(line[3]) for line in lines), 34)
    what = max(columns - first - 9 - last - 6, 12)
    return [
        f"{fit(a, first)}  {fit(b, what)}  {fit(c, 9, right=True)}  {fit(d, last)}".rstrip() for a, b, c, d in lines
    ]


def _fixed(sent: Sent, found: Manifest, texts: Texts) -> list[tuple[str, str, str, str]]:
    import json

    environment = next((r for r in found.rows if r.type == "environment_changed" and r.tokens), None)
    if environment is None or sent.state.environment is None:
        return []
    at = f"{environment.seq:,}"
    tools = len(json.loads(tools_of(sent.state, texts)))
    lines = [(at, "system prompt", f"{found.parts['system']:,}", "kept")]
    if found.parts["instructions"]:
        names = ", ".join(name for name, text in recorded(sent.state.environment).items() if text is not None)
        lines.append((at, f"instructions: {names}", f"{found.parts['instructions']:,}", "kept"))
    lines.append((at, plural(tools, "tool"), f"{found.parts['tools']:,}", "kept"))
    for row in found.rows:
        if row.type == "compaction" and row.fate == "kept":
            lines.append((f"{row.seq:,}", "summary of what came before", f"{row.tokens:,}", "kept"))
        elif row.type == "environment_changed" and row.seq != environment.seq:
            lines.append((f"{row.seq:,}", "change of the surroundings", "", row.why or row.fate))
    return lines


def _line(group: Group) -> tuple[str, str, str, str]:
    title = group.title if group.turns == 1 else f"{plural(group.turns, 'turn')}: {group.title} …"
    tokens = f"{group.tokens:,}" if group.tokens else "-"
    return f"{group.first:,}-{group.last:,}", one_line(title, 200), tokens, group.says


def as_object(session: str, sent: Sent, texts: Texts) -> dict[str, Any]:
    """Return all that is known of a request, for programs."""
    found, built = manifest_of(sent, texts), sent.built
    return {
        "session": session,
        "seq": sent.event.seq,
        "ts": sent.event.ts,
        "model": sent.state.model,
        "wire": sent.rebuilt.wire,
        "sha256": built.request_sha256,
        "bytes": built.bytes,
        "exact": sent.exact,
        "problem": sent.problem or None,
        "budget": built.budget,
        "tokens": built.tokens,
        "estimator": built.estimator,
        "view": asdict(sent.rebuilt.view),
        "cut": built.cut.model_dump(exclude_unset=True) if built.cut else None,
        "parts": _shares(sent, found),
        "events": [asdict(row) for row in found.rows],
    }


def _difference_rows(old: Sent, new: Sent, found: Difference) -> list[str]:
    share = found.same_bytes / max(len(new.body), 1)
    kept = len(new.rebuilt.prompt.messages) - len(found.added) - found.same_messages
    lines = [
        f"from event {old.event.seq} ({len(old.body):,} bytes) to event {new.event.seq} ({len(new.body):,} bytes)",
        f"same from the start: {found.same_bytes:,} bytes ({share:.1%} of the newer), "
        f"{plural(found.same_messages, 'message')}" + (f"; {kept} more the same further on" if kept else ""),
        *(f"changed: {what}" for what in found.other),
    ]
    for sign, messages in (("-", found.removed), ("+", found.added)):
        lines += [_message_row(sign, m) for m in messages[:SHOWN_MESSAGES]]
        if len(messages) > SHOWN_MESSAGES:
            lines.append(f"{sign} … and {len(messages) - SHOWN_MESSAGES:,} more")
    return lines


def _message_row(sign: str, message: Message) -> str:
    text = one_line(message.text, 200) or ", ".join(f"{c.name} {one_line(c.arguments, 60)}" for c in message.calls)
    return f"{sign} {message.seq:>6}  {message.role:<9} {fit(text, 60).rstrip()}"


def _difference_json(old: Sent, new: Sent, found: Difference) -> dict[str, Any]:
    def told(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        return [{"seq": m.seq, "role": m.role, "bytes": len(m.text.encode())} for m in messages]

    return {
        "old": old.event.seq,
        "new": new.event.seq,
        "same_bytes": found.same_bytes,
        "old_bytes": len(old.body),
        "new_bytes": len(new.body),
        "same_messages": found.same_messages,
        "removed": told(found.removed),
        "added": told(found.added),
        "changed": list(found.other),
    }
